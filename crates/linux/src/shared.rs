//! Memory that processes share with those forked from them, and files that are mapped to be changed.
//!
//! Every process has a machine of its own, and one of them runs at a time. So what one has written is brought to the others
//! when it has run: pages that it may have written, and that differ from what was last known, go to the segment or file, and
//! from there to all other memories that show them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kernel::Kernel;
use crate::memory::{Area, Backing, PAGE};
use crate::thread::Tid;

/// Shared anonymous memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Segments {
    /// What pages hold, by segment and offset; those that are not there are zero.
    pages: BTreeMap<(u64, u64), Arc<[u8]>>,
    last: u64,
    /// So many pages are kept before those are looked for that nobody shows any more.
    most: usize,
}

impl Segments {
    /// A new one; its number.
    pub(crate) fn add(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// False if those of a snapshot are not such as a run has.
    pub(crate) fn are_possible(&self) -> bool {
        let page = |(_, offset): &(u64, u64)| offset.is_multiple_of(PAGE) && *offset < 1 << 62;
        let whole = self.pages.iter().all(|(at, bytes)| page(at) && bytes.len() as u64 == PAGE);
        whole && self.last < 1 << 62 && self.most <= 2 * self.pages.len() + 1024
    }

    /// True if a page holds other bytes than were known, which it has from now on.
    fn update(&mut self, page: (u64, u64), bytes: &[u8]) -> bool {
        let same = match self.pages.get(&page) {
            Some(old) => **old == *bytes,
            None => bytes.iter().all(|byte| *byte == 0),
        };
        if !same {
            self.pages.insert(page, bytes.into());
        }
        !same
    }

    /// Forgets pages outside of these parts of segments, which are sorted by segment and offset.
    fn retain(&mut self, shown: &[(u64, Range<u64>)]) {
        self.pages.retain(|(segment, offset), _| {
            let behind =
                shown.partition_point(|(other, part)| (*other, part.start) <= (*segment, *offset));
            let last = behind.checked_sub(1).map(|index| &shown[index]);
            last.is_some_and(|(other, part)| other == segment && part.contains(offset))
        });
        self.most = 2 * self.pages.len() + 1024;
    }
}

/// A page that is shown in a memory.
struct Shown {
    at: u64,
    backing: Backing,
}

impl Kernel {
    /// Brings what a memory's process has written to those who share it. Failures of the host come up when it runs next.
    pub(crate) fn sync_shared(&mut self, number: u32) {
        let Some(held) = self.memories.get(&number) else { return };
        for (at, start, area) in held.memory.written() {
            let backing = area.backing.skip(at - start);
            let had_changed = self.sync_page(number, &Shown { at, backing });
            let held = self.memories.get_mut(&number).expect("it was just there");
            // As above.
            let _ = held.memory.looked_at(at, had_changed);
        }
        if self.segments.pages.len() > self.segments.most {
            self.forget_segments();
        }
    }

    /// Forgets pages of segments that no memory shows any more.
    fn forget_segments(&mut self) {
        let areas = self.memories.values().flat_map(|held| held.memory.areas().iter());
        let mut shown: Vec<(u64, Range<u64>)> = areas
            .filter_map(|(start, area)| match area.backing {
                Backing::Shared { segment, offset } => {
                    Some((segment, offset..offset + (area.end - start)))
                }
                Backing::Anonymous | Backing::File { .. } => None,
            })
            .collect();
        shown.sort_by_key(|(segment, part)| (*segment, part.start, part.end));
        // Those that overlap become one, so that the last one before a page has it if any has.
        shown.dedup_by(|next, last| {
            let joins = next.0 == last.0 && next.1.start <= last.1.end;
            last.1.end = if joins { last.1.end.max(next.1.end) } else { last.1.end };
            joins
        });
        self.segments.retain(&shown);
    }

    /// Brings a page to those who share it; true if it had changed.
    fn sync_page(&mut self, number: u32, shown: &Shown) -> bool {
        let mut bytes = vec![0; PAGE as usize];
        let held = &self.memories[&number];
        if held.memory.guest.read(shown.at, &mut bytes).is_err() {
            return false;
        }
        let is_new = match shown.backing {
            Backing::Anonymous => false,
            Backing::Shared { segment, offset } => self.segments.update((segment, offset), &bytes),
            Backing::File { node, offset, .. } => {
                let mut old = vec![0; PAGE as usize];
                let Ok(len) =
                    self.with_vfs(0, |vfs, processes| vfs.read(processes, node, offset, &mut old))
                else {
                    return false;
                };
                let same = old[..len] == bytes[..len];
                if !same {
                    // A file that cannot be written any more keeps what it has.
                    let _ = self.with_vfs(0, |vfs, _| vfs.write(node, offset, &bytes[..len]));
                }
                !same
            }
        };
        if is_new {
            self.show(number, shown.backing, &bytes);
        }
        is_new
    }

    /// Brings a page to all other memories that show it.
    fn show(&mut self, writer: u32, backing: Backing, bytes: &[u8]) {
        for (number, held) in &mut self.memories {
            if *number == writer {
                continue;
            }
            for (start, area) in held.memory.areas().shared() {
                let Some(at) = position(start, &area, backing) else { continue };
                // As above.
                let _ = held.memory.guest.write(at, bytes);
            }
        }
    }

    /// What a process has written to memory that shows a file is in the file before anybody asks.
    pub(crate) fn sync_before_call(&mut self, tid: Tid) {
        let number = self.process_of(tid).memory;
        self.sync_shared(number);
    }
}

/// Where an area shows a page, if it does.
fn position(start: u64, area: &Area, page: Backing) -> Option<u64> {
    let (first, wanted) =
        match (area.backing, page) {
            (
                Backing::Shared { segment: a, offset: x },
                Backing::Shared { segment: b, offset: y },
            ) if a == b => (x, y),
            (
                Backing::File { node: a, offset: x, .. },
                Backing::File { node: b, offset: y, .. },
            ) if a == b => (x, y),
            _ => return None,
        };
    let at = start.checked_add(wanted.checked_sub(first)?)?;
    (at < area.end).then_some(at)
}
