//! Files in memory that shows them.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::answer::Answer;
use crate::kernel::Kernel;
use crate::memory::{Area, Backing, Memory, TOP, page_up};
use crate::thread::Tid;
use crate::vfs::NodeId;

/// Bytes of a file that are brought to memory at a time.
const PIECE: u64 = 1 << 20;

impl Kernel {
    /// A file that a memory shows stays as long as it does.
    pub(crate) fn retain_shown(&mut self, number: u32, node: NodeId) -> Answer<()> {
        let held = self.memories.get_mut(&number).expect("somebody has it");
        if held.files.insert(node) {
            self.vfs.retain(node).inspect_err(|_| {
                held.files.remove(&node);
            })?;
        }
        Ok(())
    }

    /// The same for all files that a memory shows which was just copied.
    pub(crate) fn retain_all_shown(&mut self, number: u32) {
        for node in files_of(&self.memories[&number].memory, 0..TOP) {
            // It is there, because it is mapped.
            let _ = self.retain_shown(number, node);
        }
    }

    /// Changes what is mapped in a part of a memory, and lets go of files that it does not show any more.
    pub(crate) fn change_areas<T>(
        &mut self,
        number: u32,
        part: Range<u64>,
        change: impl FnOnce(&mut Memory) -> Answer<T>,
    ) -> Answer<T> {
        let held = self.memories.get_mut(&number).expect("somebody has it");
        let had_files = !files_of(&held.memory, part).is_empty();
        let changed = change(&mut held.memory)?;
        if had_files {
            let shown = files_of(&held.memory, 0..TOP);
            let gone: Vec<NodeId> = held.files.difference(&shown).copied().collect();
            held.files.retain(|node| shown.contains(node));
            gone.into_iter().for_each(|node| self.vfs.release(node));
        }
        Ok(changed)
    }

    /// Copies a file's bytes to a thread's memory, where pages are zero; holes are left out.
    pub(crate) fn bring(
        &mut self,
        tid: Tid,
        node: NodeId,
        offset: u64,
        at: u64,
        len: u64,
    ) -> Answer<()> {
        let mut piece = vec![0; PIECE.min(len) as usize];
        let mut done = 0;
        while done < len {
            let data = self.vfs.seek_data(node, offset + done);
            let Some(data) = data.ok().map(|data| data - offset).filter(|at| *at < len) else {
                break;
            };
            done = data;
            let most = piece.len().min((len - done) as usize);
            let got = self.read_node(tid, node, offset + done, &mut piece[..most])?;
            if got == 0 {
                break;
            }
            self.held_of(tid).memory.guest.write(at + done, &piece[..got])?;
            done += got as u64;
        }
        Ok(())
    }

    /// What was written to a file is seen in memory that shows it.
    pub(crate) fn file_written(&mut self, node: NodeId, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        for held in self.memories.values_mut() {
            for (start, area) in held.memory.areas().shared() {
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

    /// A file may have become shorter: pages behind its end cannot be accessed any more.
    pub(crate) fn file_shortened(&mut self, node: NodeId) -> Answer<()> {
        let size = self.vfs.stat(node)?.size;
        for held in self.memories.values_mut() {
            for (start, area) in areas_of(&held.memory, node) {
                let end = end_of_file(start, &area, size);
                if !area.beyond && end < area.end {
                    held.memory.set_beyond(end..area.end, true)?;
                }
            }
        }
        Ok(())
    }

    /// True if an access failed because it is the first write to shared memory, or lies behind the end of a file that has
    /// grown since, and was mended.
    pub(crate) fn mend_access(&mut self, tid: Tid, addr: u64) -> Answer<bool> {
        Ok(self.held_of(tid).memory.begin_writing(addr)? || self.show_more(tid, addr)?)
    }

    /// True if something of a file is shown now at an address that was behind its end.
    pub(crate) fn show_more(&mut self, tid: Tid, addr: u64) -> Answer<bool> {
        let found = self.held_of(tid).memory.areas().find(addr);
        let Some((start, area)) = found.map(|(start, area)| (start, *area)) else {
            return Ok(false);
        };
        let Backing::File { node, offset, .. } = area.backing else { return Ok(false) };
        let size = self.vfs.stat(node)?.size;
        let end = end_of_file(start, &area, size);
        if !area.beyond || addr >= end {
            return Ok(false);
        }
        // It is charged for before it is filled.
        self.held_of(tid).memory.set_beyond(start..end, false)?;
        self.bring(tid, node, offset, start, (end - start).min(size - offset))?;
        Ok(true)
    }
}

/// Files that a part of a memory shows.
fn files_of(memory: &Memory, part: Range<u64>) -> BTreeSet<NodeId> {
    let areas = memory.areas().within(part);
    areas
        .filter_map(|(_, area)| match area.backing {
            Backing::File { node, .. } => Some(node),
            Backing::Anonymous | Backing::Shared { .. } => None,
        })
        .collect()
}

/// Areas that show a file.
fn areas_of(memory: &Memory, node: NodeId) -> Vec<(u64, Area)> {
    let shows =
        |area: &Area| matches!(area.backing, Backing::File { node: other, .. } if other == node);
    let areas = memory.areas().iter().filter(|(_, area)| shows(area));
    areas.map(|(start, area)| (start, *area)).collect()
}

/// The address in an area that shows a file from which on there is no page of the file.
fn end_of_file(start: u64, area: &Area, size: u64) -> u64 {
    let Backing::File { offset, .. } = area.backing else { return area.end };
    let there = page_up(size.saturating_sub(offset)).unwrap_or(TOP);
    start.saturating_add(there).min(area.end)
}
