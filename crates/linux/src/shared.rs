//! Memory that processes share with those forked from them, and files that are mapped to be changed.
//!
//! Every process has a machine of its own, and one of them runs at a time. So what one has written is brought to the others
//! when it has run: pages that differ from what was last known go to the segment or file, and from there to all other
//! memories that show them.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::answer::Answer;
use crate::kernel::Kernel;
use crate::memory::{Area, Backing, PAGE, TOP, page_up};
use crate::thread::Tid;
use crate::vfs::NodeId;

/// Shared anonymous memory.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// What pages hold, by segment and offset; those that are not there are zero.
    pages: BTreeMap<(u64, u64), Box<[u8]>>,
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
        let alone = self.memories.len() == 1;
        self.sync_areas(number, |backing| match backing {
            Backing::Anonymous => false,
            Backing::Shared { .. } => !alone,
            Backing::File { shared, .. } => shared,
        });
    }

    /// The same for a process that is about to share its memory with another.
    pub(crate) fn sync_for_fork(&mut self, number: u32) {
        self.sync_areas(number, Backing::is_shared);
    }

    fn sync_areas(&mut self, number: u32, counts: impl Fn(Backing) -> bool) {
        let Some(held) = self.memories.get(&number) else { return };
        if !held.memory.areas().has_shared() {
            return;
        }
        let areas: Vec<(u64, Area)> = held
            .memory
            .areas()
            .iter()
            .filter(|(_, area)| is_shared(area) && counts(area.backing))
            .map(|(start, area)| (start, *area))
            .collect();
        for (start, area) in areas {
            let filled = self.memories[&number].memory.filled(start..area.end);
            for at in filled.into_iter().flat_map(|part| part.step_by(PAGE as usize)) {
                let backing = area.backing.skip(at - start);
                self.sync_page(number, &Shown { at, backing });
            }
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

    fn sync_page(&mut self, number: u32, shown: &Shown) {
        let mut bytes = vec![0; PAGE as usize];
        let held = &self.memories[&number];
        if held.memory.guest.read(shown.at, &mut bytes).is_err() {
            return;
        }
        let is_new = match shown.backing {
            Backing::Anonymous => false,
            Backing::Shared { segment, offset } => self.segments.update((segment, offset), &bytes),
            Backing::File { node, offset, .. } => {
                let mut old = vec![0; PAGE as usize];
                let Ok(len) =
                    self.with_vfs(0, |vfs, processes| vfs.read(processes, node, offset, &mut old))
                else {
                    return;
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
    }

    /// Brings a page to all other memories that show it.
    fn show(&mut self, writer: u32, backing: Backing, bytes: &[u8]) {
        for (number, held) in &mut self.memories {
            if *number == writer {
                continue;
            }
            let areas: Vec<(u64, Area)> = held
                .memory
                .areas()
                .iter()
                .filter(|(_, area)| is_shared(area))
                .map(|(start, area)| (start, *area))
                .collect();
            for (start, area) in areas {
                let Some(at) = position(start, &area, backing) else { continue };
                // As above.
                let _ = held.memory.guest.write(at, bytes);
            }
        }
    }

    /// What a process has written to memory that shows a file is in the file before anybody asks.
    pub(crate) fn sync_before_call(&mut self, tid: Tid) {
        let number = self.process_of(tid).memory;
        if self.has_shared(number) {
            self.sync_shared(number);
        }
    }

    fn has_shared(&self, number: u32) -> bool {
        self.memories[&number].memory.areas().has_shared()
    }

    /// What was written to a file is seen in memory that shows it.
    pub(crate) fn file_written(&mut self, node: NodeId, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        for held in self.memories.values_mut() {
            let shown: Vec<(u64, Area)> = held
                .memory
                .areas()
                .iter()
                .filter(|(_, area)| is_shared(area))
                .map(|(start, area)| (start, *area))
                .collect();
            for (start, area) in shown {
                let Backing::File { node: other, offset: first, .. } = area.backing else {
                    continue;
                };
                let (from, to) = (offset.max(first), end.min(first + (area.end - start)));
                if other == node && from < to {
                    let part = &bytes[(from - offset) as usize..(to - offset) as usize];
                    // Failures of the host come up when the process runs next.
                    let _ = held.memory.guest.write(start + (from - first), part);
                }
            }
        }
    }

    /// A file has another size: pages behind its end cannot be accessed, and those before it can.
    pub(crate) fn file_resized(&mut self, node: NodeId) -> Answer<()> {
        let size = self.with_vfs(0, |vfs, _| vfs.stat(node))?.size;
        let numbers: Vec<u32> = self.memories.keys().copied().collect();
        for number in numbers {
            let areas: Vec<(u64, Area)> = self.memories[&number]
                .memory
                .areas()
                .iter()
                .map(|(start, area)| (start, *area))
                .collect();
            for (start, area) in areas {
                let Backing::File { node: other, offset, .. } = area.backing else { continue };
                if other == node {
                    self.area_resized(number, start, area, size.saturating_sub(offset))?;
                }
            }
        }
        Ok(())
    }

    /// `there` are the bytes from the area's beginning to the end of its file.
    fn area_resized(&mut self, number: u32, start: u64, area: Area, there: u64) -> Answer<()> {
        let end = start.saturating_add(page_up(there).unwrap_or(TOP)).min(area.end);
        match area.beyond {
            false if end < area.end => {
                let memory = &mut self.memories.get_mut(&number).expect("it was just there").memory;
                memory.set_beyond(end..area.end, true)
            }
            true if start < end => {
                let Backing::File { node, offset, .. } = area.backing else { return Ok(()) };
                for at in (start..end).step_by(PAGE as usize) {
                    let mut page = vec![0; PAGE as usize];
                    let from = offset + (at - start);
                    self.with_vfs(0, |vfs, processes| vfs.read(processes, node, from, &mut page))?;
                    self.memories
                        .get_mut(&number)
                        .expect("as above")
                        .memory
                        .guest
                        .write(at, &page)?;
                }
                self.memories
                    .get_mut(&number)
                    .expect("as above")
                    .memory
                    .set_beyond(start..end, false)
            }
            false | true => Ok(()),
        }
    }

    /// True if an access failed because it lies behind the end of a file that has grown since, and was mended.
    pub(crate) fn mend_access(&mut self, tid: Tid, addr: u64) -> Answer<bool> {
        let Some((start, area)) = self.held_of(tid).memory.areas().find(addr) else {
            return Ok(false);
        };
        let Backing::File { node, offset, .. } = area.backing else { return Ok(false) };
        let at = offset + (addr - start);
        if !area.beyond || at >= self.with_vfs(tid, |vfs, _| vfs.stat(node))?.size {
            return Ok(false);
        }
        self.file_resized(node)?;
        Ok(true)
    }

    /// Files that a forked process has mapped stay as long as it does.
    pub(crate) fn retain_mapped(&mut self, number: u32, shares_memory: bool) {
        if shares_memory {
            return;
        }
        let nodes: Vec<_> = self.memories[&number]
            .memory
            .areas()
            .iter()
            .filter_map(|(_, area)| match area.backing {
                Backing::File { node, .. } => Some(node),
                Backing::Anonymous | Backing::Shared { .. } => None,
            })
            .collect();
        for node in nodes {
            // It is there, because it is mapped.
            let _ = self.vfs.retain(node);
        }
    }
}

fn is_shared(area: &Area) -> bool {
    !area.beyond && area.backing.is_shared()
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
