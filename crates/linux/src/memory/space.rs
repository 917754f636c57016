//! Mapping and unmapping.

use std::ops::Range;

use kvrm_engine::EngineError;

use super::areas::MOST_AREAS;
use super::charged::{Budget, Charged};
use super::written::{Written, is_watched};
use super::{
    Area, Areas, BOTTOM, Backing, Label, MAPPINGS, PAGE, Permissions, STACK, TOP, page_down,
    page_up,
};
use crate::Errno;
use crate::answer::{Answer, Refusal};
use crate::guest::Guest;

/// Where something is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where there is room, at this address if it is free.
    Anywhere(u64),
    /// There, instead of what is there.
    Fixed(u64),
    /// There, if nothing is.
    Free(u64),
}

/// The memory of a process, and the machine that has it.
pub struct Memory {
    /// The machine.
    pub guest: Box<dyn Guest>,
    pub(super) areas: Areas,
    pub(super) heap: Range<u64>,
    /// Pages that count towards the limit.
    pub(super) charged: Charged,
    pub(super) written: Written,
}

impl Memory {
    /// Nothing mapped. What can be accessed is taken from `budget`.
    pub fn new(guest: Box<dyn Guest>, budget: &Budget) -> Memory {
        let (areas, written) = (Areas::default(), Written::default());
        Memory { guest, areas, heap: 0..0, charged: Charged::new(budget), written }
    }

    /// A copy for a new process.
    pub fn fork(&mut self) -> Answer<Memory> {
        let charged = self.charged.fork()?;
        let guest = self.guest.fork().map_err(out_of_memory)?;
        Ok(self.copy(guest, charged))
    }

    /// A copy for another run, whose budget has room for it.
    pub(crate) fn fork_to(&mut self, budget: &Budget) -> Result<Memory, EngineError> {
        let charged = self.charged.copy(budget).expect("it is as large as what it is charged for");
        let guest = self.guest.fork()?;
        Ok(self.copy(guest, charged))
    }

    /// The same with a copy of the machine.
    fn copy(&self, guest: Box<dyn Guest>, charged: Charged) -> Memory {
        let (areas, heap, written) = (self.areas.clone(), self.heap.clone(), self.written.clone());
        Memory { guest, areas, heap, charged, written }
    }

    /// Brings everything to another machine, whose memory is empty.
    pub(crate) fn change_guest(&mut self, mut guest: Box<dyn Guest>) -> Answer<()> {
        for (start, area) in self.areas.iter() {
            let access = effective(area);
            if access != Permissions::NONE {
                guest.protect(start, area.end - start, access)?;
            }
        }
        self.go_on_writing(&mut *guest)?;
        let mut page = [0; PAGE as usize];
        for part in self.filled(0..TOP) {
            for at in part.step_by(PAGE as usize) {
                self.guest.read(at, &mut page)?;
                // Those of zeros take no memory.
                if page.iter().any(|byte| *byte != 0) {
                    guest.write(at, &page)?;
                }
            }
        }
        self.guest = guest;
        Ok(())
    }

    /// What is mapped.
    pub fn areas(&self) -> &Areas {
        &self.areas
    }

    /// Bytes that count towards the limit: those that can be accessed, or could since they were mapped.
    pub fn used(&self) -> u64 {
        self.charged.bytes()
    }

    /// Parts of a range that may hold something other than zeros.
    pub(crate) fn filled(&self, range: Range<u64>) -> Vec<Range<u64>> {
        self.charged.within(range).collect()
    }

    // Mapping.

    /// Maps `len` bytes, all of them zero; the address. Whatever `area` says of its end does not count.
    pub fn map(&mut self, placement: Placement, len: u64, area: Area) -> Answer {
        let len = page_up(len).filter(|len| *len > 0).ok_or(Errno::NOMEM)?;
        let at = self.place(placement, len)?;
        if self.areas.len() >= MOST_AREAS {
            return Err(Errno::NOMEM.into());
        }
        self.clear(at..at + len)?;
        self.add(at, Area { end: at + len, ..area })?;
        Ok(at)
    }

    /// Finds out where to map so many pages.
    fn place(&self, placement: Placement, len: u64) -> Answer {
        let fits = |at: u64| at >= BOTTOM && at.checked_add(len).is_some_and(|end| end <= TOP);
        let is_free = |at: u64| self.areas.within(at..at + len).next().is_none();
        match placement {
            Placement::Anywhere(hint) => {
                let hint = page_down(hint);
                if fits(hint) && is_free(hint) {
                    return Ok(hint);
                }
                self.areas.room(MAPPINGS, len).ok_or(Errno::NOMEM.into())
            }
            Placement::Fixed(at) | Placement::Free(at) if !at.is_multiple_of(PAGE) => {
                Err(Errno::INVAL.into())
            }
            Placement::Fixed(at) | Placement::Free(at) if at < BOTTOM => Err(Errno::PERM.into()),
            Placement::Fixed(at) | Placement::Free(at) if !fits(at) => Err(Errno::NOMEM.into()),
            Placement::Free(at) if !is_free(at) => Err(Errno::EXIST.into()),
            Placement::Fixed(at) | Placement::Free(at) => Ok(at),
        }
    }

    /// Adds an area of zeros where nothing is.
    fn add(&mut self, start: u64, area: Area) -> Answer<()> {
        let (len, access) = (area.end - start, effective(&area));
        if access != Permissions::NONE {
            self.charged.add(start..area.end)?;
            self.guest.protect(start, len, access)?;
        }
        self.areas.insert(start, area);
        Ok(())
    }

    /// Unmaps what is there.
    pub fn unmap(&mut self, addr: u64, len: u64) -> Answer {
        let range = whole_pages(addr, len).ok_or(Errno::INVAL)?;
        self.may_cut(&range)?;
        self.clear(range)?;
        Ok(0)
    }

    /// Fails if there are too many areas to cut those at the ends of a range.
    fn may_cut(&self, range: &Range<u64>) -> Result<(), Errno> {
        let is_cut = |at: u64| self.areas.find(at).is_some_and(|(start, _)| start < at);
        let more = usize::from(is_cut(range.start)) + usize::from(is_cut(range.end));
        let fits = more == 0 || self.areas.len() + more <= MOST_AREAS;
        if fits { Ok(()) } else { Err(Errno::NOMEM) }
    }

    fn clear(&mut self, range: Range<u64>) -> Answer<()> {
        self.end_writing(range.clone())?;
        for (start, area) in self.areas.remove(range) {
            let len = area.end - start;
            if effective(&area) != Permissions::NONE {
                self.guest.protect(start, len, Permissions::NONE)?;
            }
            for part in self.filled(start..area.end) {
                self.guest.discard(part.start, part.end - part.start)?;
            }
            self.charged.remove(start..area.end);
        }
        Ok(())
    }

    /// Changes what may be done with pages, all of which must be mapped.
    pub fn protect(&mut self, addr: u64, len: u64, access: Permissions) -> Answer {
        if len == 0 {
            return Ok(0);
        }
        let range = whole_pages(addr, len).ok_or(Errno::NOMEM)?;
        self.may_cut(&range)?;
        let end = range.end;
        let mut at = range.start;
        while at < end {
            let (_, area) = self.areas.find(at).ok_or(Errno::NOMEM)?;
            if access != Permissions::NONE && !area.beyond {
                self.charged.add(at..area.end.min(end))?;
            }
            at = area.end;
        }
        self.end_writing(range.clone())?;
        for (start, area) in self.areas.remove(range) {
            let changed = Area { access, ..area };
            let (before, after) = (effective(&area), effective(&changed));
            if before != after {
                self.guest.protect(start, area.end - start, after)?;
            }
            self.areas.insert(start, changed);
        }
        Ok(0)
    }

    /// Says of whole pages of a file whether they lie behind its end, where nothing is.
    pub fn set_beyond(&mut self, range: Range<u64>, beyond: bool) -> Answer<()> {
        self.may_cut(&range)?;
        if !beyond {
            self.charged.add(range.clone())?;
        }
        self.end_writing(range.clone())?;
        for (start, area) in self.areas.remove(range) {
            let changed = Area { beyond, ..area };
            let (before, after) = (effective(&area), effective(&changed));
            if before != after {
                self.guest.protect(start, area.end - start, after)?;
            }
            if beyond {
                self.guest.discard(start, area.end - start)?;
                self.charged.remove(start..area.end);
            }
            self.areas.insert(start, changed);
        }
        Ok(())
    }

    /// Makes pages zero that are the process's own.
    pub fn forget(&mut self, addr: u64, len: u64) -> Answer {
        let range = whole_pages(addr, len).ok_or(Errno::INVAL)?;
        self.areas
            .allows(range.start, range.end - range.start, Permissions::NONE)
            .map_err(|_| Errno::NOMEM)?;
        let parts: Vec<Range<u64>> = self
            .areas
            .within(range.clone())
            .filter(|(_, area)| area.backing == Backing::Anonymous)
            .map(|(start, area)| start.max(range.start)..area.end.min(range.end))
            .collect();
        for part in parts {
            self.guest.discard(part.start, part.end - part.start)?;
        }
        Ok(0)
    }

    /// Moves or resizes a mapping; its new address. What is new lies behind the end of its file, if it has one, until it
    /// is brought.
    pub fn remap(&mut self, old: Range<u64>, len: u64, to: Remap) -> Answer {
        let (start, area) = self.areas.find(old.start).ok_or(Errno::FAULT)?;
        let (area, old_len) = (Area { beyond: false, ..*area }, old.end - old.start);
        let end = self.areas.end_of_mapping(old.start).ok_or(Errno::FAULT)?;
        if end < old.end {
            return Err(Errno::FAULT.into());
        }
        let backing = match area.backing {
            Backing::Anonymous => Backing::Anonymous,
            other => other.skip(old.start - start),
        };
        if let Remap::Fixed(at) = to {
            return self.move_to(old, Placement::Fixed(at), len, Area { backing, ..area });
        }
        if len <= old_len {
            self.clear(old.start + len..old.end)?;
            return Ok(old.start);
        }
        let more = old.end..old.start.checked_add(len).ok_or(Errno::NOMEM)?;
        if more.end <= TOP && end == old.end && self.areas.within(more.clone()).next().is_none() {
            let (backing, beyond) = (backing.skip(old_len), is_file(backing));
            self.add(more.start, Area { end: more.end, backing, beyond, ..area })?;
            return Ok(old.start);
        }
        match to {
            Remap::Stay => Err(Errno::NOMEM.into()),
            Remap::Move | Remap::Fixed(_) => {
                self.move_to(old, Placement::Anywhere(0), len, Area { backing, ..area })
            }
        }
    }

    fn move_to(&mut self, old: Range<u64>, to: Placement, len: u64, area: Area) -> Answer {
        let kept = old.start..old.end.min(old.start + len);
        let filled = self.filled(kept);
        let held: u64 = filled.iter().map(|part| part.end - part.start).sum();
        if area.access != Permissions::NONE {
            self.charged.check(len - held)?;
        }
        self.may_cut(&old)?;
        let old_len = old.end - old.start;
        let areas = self.areas.within(old.clone()).filter(|(_, area)| area.beyond);
        let parts = areas.map(|(start, area)| start.max(old.start)..area.end.min(old.end));
        let mut beyond: Vec<Range<u64>> =
            parts.map(|part| part.start - old.start..part.end - old.start).collect();
        if is_file(area.backing) && len > old_len {
            beyond.push(old_len..len);
        }
        let at = self.map(to, len, Area { access: Permissions::NONE, ..area })?;
        for part in &filled {
            self.transfer(part.start, at + (part.start - old.start), part.end - part.start)?;
        }
        self.clear(old.clone())?;
        for part in filled {
            self.charged.add(at + (part.start - old.start)..at + (part.end - old.start))?;
        }
        self.protect(at, len, area.access)?;
        for part in beyond {
            let part = at + part.start..at + part.end.min(len);
            if !part.is_empty() {
                self.set_beyond(part, true)?;
            }
        }
        Ok(at)
    }

    /// Moves bytes, a piece at a time; pieces of zeros take no memory.
    fn transfer(&mut self, from: u64, to: u64, len: u64) -> Answer<()> {
        let mut piece = vec![0; len.min(1 << 20) as usize];
        for done in (0..len).step_by(1 << 20) {
            let piece = &mut piece[..(len - done).min(1 << 20) as usize];
            self.guest.read(from + done, piece)?;
            self.guest.discard(from + done, piece.len() as u64)?;
            for (index, page) in piece.chunks(PAGE as usize).enumerate() {
                if page.iter().any(|byte| *byte != 0) {
                    self.guest.write(to + done + index as u64 * PAGE, page)?;
                }
            }
        }
        Ok(())
    }

    // The heap and the stack.

    /// Says where the heap begins.
    pub fn begin_heap(&mut self, at: u64) {
        self.heap = at..at;
    }

    /// Moves the end of the heap, if there is room and `to` is behind its beginning; where it is then.
    pub fn set_heap_end(&mut self, to: u64) -> Answer {
        let [old, new] = [self.heap.end, to].map(|end| page_up(end).unwrap_or(TOP));
        if to < self.heap.start || to > TOP {
            return Ok(self.heap.end);
        }
        if new < old {
            self.clear(new..old)?;
        } else if new > old {
            let label = Label::Heap;
            let access = Permissions::READ | Permissions::WRITE;
            let area = Area { end: new, access, backing: Backing::Anonymous, beyond: false, label };
            if self.areas.within(old..new).next().is_some() || self.add(old, area).is_err() {
                return Ok(self.heap.end);
            }
        }
        self.heap.end = to;
        Ok(to)
    }

    /// Maps the first thread's stack; the address behind it.
    pub fn map_stack(&mut self) -> Answer {
        let area = Area {
            end: 0,
            access: Permissions::READ | Permissions::WRITE,
            backing: Backing::Anonymous,
            beyond: false,
            label: Label::Stack,
        };
        let usual = MAPPINGS - STACK;
        let is_free = self.areas.within(usual - PAGE..MAPPINGS).next().is_none();
        let placement = if is_free { Placement::Fixed(usual) } else { Placement::Anywhere(0) };
        let at = self.map(placement, STACK, area)?;
        Ok(at + STACK)
    }

    // Accesses of system calls.

    /// Reads what the guest may read. No bytes can be read anywhere.
    pub fn read(&self, addr: u64, bytes: &mut [u8]) -> Answer<()> {
        self.allows(addr, bytes.len() as u64, Permissions::READ)?;
        if bytes.is_empty() {
            return Ok(());
        }
        Ok(self.guest.read(addr, bytes)?)
    }

    /// Writes what the guest may write. No bytes can be written anywhere.
    pub fn write(&mut self, addr: u64, bytes: &[u8]) -> Answer<()> {
        self.allows(addr, bytes.len() as u64, Permissions::WRITE)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.begin_writing_all(addr, bytes.len() as u64)?;
        Ok(self.guest.write(addr, bytes)?)
    }

    /// Checks an access that is about to be made.
    pub fn allows(&self, addr: u64, len: u64, access: Permissions) -> Result<(), Errno> {
        self.areas.allows(addr, len, access).map_err(|_| Errno::FAULT)
    }

    /// How many of `len` bytes may be accessed from `addr` on.
    pub fn accessible(&self, addr: u64, len: u64, access: Permissions) -> u64 {
        self.areas
            .allows(addr, len, access)
            .map_or_else(|first| first.saturating_sub(addr), |()| len)
    }

    /// Reads bytes up to a zero; `ENAMETOOLONG` if there is none in the first `most` bytes.
    pub fn read_string(&self, addr: u64, most: usize) -> Answer<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < most {
            let at = addr + text.len() as u64;
            let piece = (PAGE - at % PAGE).min((most - text.len()) as u64);
            let mut bytes = vec![0; piece as usize];
            self.allows(at, piece, Permissions::READ)?;
            if let Some(end) = self.guest.read_text(at, &mut bytes)? {
                text.extend_from_slice(&bytes[..end]);
                return Ok(text);
            }
            text.extend_from_slice(&bytes);
        }
        Err(Errno::NAMETOOLONG.into())
    }

    /// Reads a number of 8 bytes.
    pub fn read_u64(&self, addr: u64) -> Answer {
        let mut bytes = [0; 8];
        self.read(addr, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a number of 4 bytes.
    pub fn read_u32(&self, addr: u64) -> Answer<u32> {
        let mut bytes = [0; 4];
        self.read(addr, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

/// A host that refuses memory for another process is a machine whose memory is full.
pub(crate) fn out_of_memory(error: EngineError) -> Refusal {
    match error {
        EngineError::Memory { .. } | EngineError::MappedMemory(_) => Errno::NOMEM.into(),
        error => Refusal::Host(error),
    }
}

/// Where a mapping goes that is resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remap {
    /// It stays where it is.
    Stay,
    /// It moves if it must.
    Move,
    /// It moves there.
    Fixed(u64),
}

fn is_file(backing: Backing) -> bool {
    match backing {
        Backing::Anonymous | Backing::Shared { .. } => false,
        Backing::File { .. } => true,
    }
}

/// What the machine lets a guest do with an area, apart from pages that are being written.
pub(super) fn effective(area: &Area) -> Permissions {
    match area.beyond {
        true => Permissions::NONE,
        false if is_watched(area) => area.access.without(Permissions::WRITE),
        false => area.access,
    }
}

/// The pages of a range that begins with one; `None` if it does not or is not within memory.
fn whole_pages(addr: u64, len: u64) -> Option<Range<u64>> {
    let end = page_up(addr.checked_add(len).filter(|end| *end <= TOP)?)?;
    (addr.is_multiple_of(PAGE) && addr < end).then_some(addr..end)
}
