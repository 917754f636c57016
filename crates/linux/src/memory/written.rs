//! Which pages of shared memory are being written. The machine lets a guest write those alone, and the first write to
//! another is a fault that adds it. So nobody has to look through all of the memory for what has changed.

use std::collections::BTreeMap;
use std::ops::Range;

use super::space::effective;
use super::{Area, Memory, PAGE, Permissions, page_down};
use crate::answer::Answer;
use crate::guest::Guest;

/// A page is looked at so often in vain before it has to be added again.
const PATIENCE: u8 = 16;

/// Pages that may be written, and how often each was looked at in vain.
#[derive(Clone, Debug, Default)]
pub(super) struct Written(BTreeMap<u64, u8>);

impl Memory {
    /// Lets the guest write a page of shared memory; false if it could do so already, or may not.
    pub(crate) fn begin_writing(&mut self, addr: u64) -> Answer<bool> {
        let at = page_down(addr);
        let Some((_, area)) = self.areas.find(at) else { return Ok(false) };
        let access = area.access;
        let is_new = is_watched(area) && !self.written.0.contains_key(&at);
        if is_new {
            self.guest.protect(at, PAGE, access)?;
            self.written.0.insert(at, 0);
        }
        Ok(is_new)
    }

    /// The same for all pages that a system call writes.
    pub(super) fn begin_writing_all(&mut self, addr: u64, len: u64) -> Answer<()> {
        if !self.areas.has_shared() {
            return Ok(());
        }
        for at in (page_down(addr)..addr + len).step_by(PAGE as usize) {
            self.begin_writing(at)?;
        }
        Ok(())
    }

    /// Pages that may be written, with their areas and where these begin.
    pub(crate) fn written(&self) -> Vec<(u64, u64, Area)> {
        let pages = self.written.0.keys();
        let found =
            pages.filter_map(|at| self.areas.find(*at).map(|(start, area)| (*at, start, *area)));
        found.collect()
    }

    /// Says that a page was looked at, and whether it had changed. If it has not for long, it is not written any more.
    pub(crate) fn looked_at(&mut self, at: u64, had_changed: bool) -> Answer<()> {
        let Some(in_vain) = self.written.0.get_mut(&at) else { return Ok(()) };
        *in_vain = if had_changed { 0 } else { *in_vain + 1 };
        if *in_vain < PATIENCE { Ok(()) } else { self.end_writing(at..at + PAGE) }
    }

    /// Does not let the guest write pages until it begins again. All of them were looked at.
    pub(super) fn end_writing(&mut self, range: Range<u64>) -> Answer<()> {
        let pages: Vec<u64> = self.written.0.range(range).map(|(at, _)| *at).collect();
        for at in pages {
            self.written.0.remove(&at);
            let access = self.areas.find(at).map_or(Permissions::NONE, |(_, area)| effective(area));
            self.guest.protect(at, PAGE, access)?;
        }
        Ok(())
    }

    /// Lets the guest of another machine write the same pages.
    pub(super) fn go_on_writing(&self, guest: &mut dyn Guest) -> Answer<()> {
        for (at, _, area) in self.written() {
            guest.protect(at, PAGE, area.access)?;
        }
        Ok(())
    }
}

/// True if writes to an area have to be known.
pub(super) fn is_watched(area: &Area) -> bool {
    area.backing.is_shared() && !area.beyond && area.access.contains(Permissions::WRITE)
}
