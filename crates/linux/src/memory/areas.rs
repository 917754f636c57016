//! Areas of memory that were mapped together.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{BOTTOM, PAGE, Permissions, TOP};
use crate::vfs::NodeId;

/// Areas that a process may have, as Linux's `vm.max_map_count`.
pub(super) const MOST_AREAS: usize = 65_530;
/// No file or segment is as long as this.
const FAR: u64 = 1 << 62;

/// What an area shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Backing {
    /// Memory of the process's own.
    Anonymous,
    /// Memory that it shares with the processes forked from it: a segment.
    Shared {
        /// Its number.
        segment: u64,
        /// The offset of the area's first byte.
        offset: u64,
    },
    /// A copy of a file's bytes.
    File {
        /// The file.
        node: NodeId,
        /// The offset of the area's first byte.
        offset: u64,
        /// Changes go to the file.
        shared: bool,
    },
}

impl Backing {
    /// True if others see what is written.
    pub fn is_shared(self) -> bool {
        match self {
            Backing::Anonymous => false,
            Backing::Shared { .. } => true,
            Backing::File { shared, .. } => shared,
        }
    }

    /// The same, from so many bytes further on.
    pub(crate) fn skip(self, bytes: u64) -> Backing {
        match self {
            Backing::Anonymous => self,
            Backing::Shared { segment, offset } => {
                Backing::Shared { segment, offset: offset + bytes }
            }
            Backing::File { node, offset, shared } => {
                Backing::File { node, offset: offset + bytes, shared }
            }
        }
    }
}

/// What an area is for, as `/proc/self/maps` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Label {
    /// It does not tell.
    #[default]
    None,
    /// The heap.
    Heap,
    /// The first thread's stack.
    Stack,
    /// The code that handlers of signals return to.
    SignalReturn,
}

impl Label {
    /// The text.
    pub fn text(self) -> &'static str {
        match self {
            Label::None => "",
            Label::Heap => "[heap]",
            Label::Stack => "[stack]",
            Label::SignalReturn => "[sigreturn]",
        }
    }
}

/// Pages that were mapped together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    /// The address behind the last byte.
    pub end: u64,
    /// What the guest may do with it.
    #[serde(with = "crate::snapshot::permissions")]
    pub access: Permissions,
    /// What it shows.
    pub backing: Backing,
    /// It lies behind the end of its file, where accesses raise SIGBUS.
    pub beyond: bool,
    /// What it is for.
    pub label: Label,
}

/// The areas of a process, which do not overlap, by their first address.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<u64, Area>", into = "BTreeMap<u64, Area>")]
pub struct Areas {
    areas: BTreeMap<u64, Area>,
    /// How many are shared.
    shared: usize,
}

impl From<Areas> for BTreeMap<u64, Area> {
    fn from(areas: Areas) -> BTreeMap<u64, Area> {
        areas.areas
    }
}

/// Areas from elsewhere: they must be such as a kernel makes.
impl TryFrom<BTreeMap<u64, Area>> for Areas {
    type Error = &'static str;

    fn try_from(areas: BTreeMap<u64, Area>) -> Result<Areas, &'static str> {
        let mut free = BOTTOM;
        for (start, area) in &areas {
            let (is_whole, last) = match area.backing {
                Backing::Anonymous => (true, 0),
                Backing::Shared { offset, .. } | Backing::File { offset, .. } => {
                    (offset.is_multiple_of(PAGE), offset)
                }
            };
            let is_whole = is_whole && start.is_multiple_of(PAGE) && area.end.is_multiple_of(PAGE);
            if !is_whole || *start < free || *start >= area.end || area.end > TOP || last >= FAR {
                return Err("areas of memory are not as they can be");
            }
            free = area.end;
        }
        if areas.len() > MOST_AREAS {
            return Err("there are too many areas of memory");
        }
        let shared = areas.values().filter(|area| area.backing.is_shared()).count();
        Ok(Areas { areas, shared })
    }
}

impl Areas {
    /// The area with an address, and where it begins.
    pub fn find(&self, addr: u64) -> Option<(u64, &Area)> {
        let (start, area) = self.areas.range(..=addr).next_back()?;
        (addr < area.end).then_some((*start, area))
    }

    /// All areas in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Area)> {
        self.areas.iter().map(|(start, area)| (*start, area))
    }

    /// Copies of those that are shared with other processes or with files, as far as the files go.
    pub fn shared(&self) -> Vec<(u64, Area)> {
        // Most processes have none, and are asked at every system call.
        if self.shared == 0 {
            return Vec::new();
        }
        let is_shared = |area: &Area| !area.beyond && area.backing.is_shared();
        let shared = self.iter().filter(|(_, area)| is_shared(area));
        shared.map(|(start, area)| (start, *area)).collect()
    }

    /// True if there are any that are shared.
    pub(super) fn has_shared(&self) -> bool {
        self.shared > 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.areas.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.areas.is_empty()
    }

    /// Those that have some of the addresses, in order.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Area)> {
        let first = self.find(range.start).map_or(range.start, |(start, _)| start);
        self.areas.range(first..range.end.max(first)).map(|(start, area)| (*start, area))
    }

    /// Adds an area where nothing is. Neighbours that continue one another become one.
    pub fn insert(&mut self, mut start: u64, mut area: Area) {
        debug_assert!(self.within(start..area.end).next().is_none());
        if let Some((before, left)) = self.areas.range(..start).next_back()
            && left.end == start
            && continues(*before, left, &area)
        {
            start = *before;
            area.backing = left.backing;
        }
        if let Some(right) = self.areas.get(&area.end)
            && continues(start, &area, right)
        {
            let old = area.end;
            area.end = right.end;
            self.take(old);
        }
        self.put(start, area);
    }

    fn put(&mut self, start: u64, area: Area) {
        let replaced = self.areas.insert(start, area);
        self.shared += usize::from(area.backing.is_shared());
        self.shared -= usize::from(replaced.is_some_and(|old| old.backing.is_shared()));
    }

    fn take(&mut self, start: u64) -> Option<Area> {
        let area = self.areas.remove(&start)?;
        self.shared -= usize::from(area.backing.is_shared());
        Some(area)
    }

    /// Takes a range out, and cuts areas at its ends; what was there.
    pub fn remove(&mut self, range: Range<u64>) -> Vec<(u64, Area)> {
        self.cut(range.start);
        self.cut(range.end);
        let starts: Vec<u64> = self.areas.range(range).map(|(start, _)| *start).collect();
        let take = |start: u64| (start, self.take(start).expect("it was just found"));
        starts.into_iter().map(take).collect()
    }

    /// Makes an area end and another begin at an address.
    fn cut(&mut self, at: u64) {
        let Some((start, area)) = self.find(at).map(|(start, area)| (start, *area)) else { return };
        if start < at {
            self.put(start, Area { end: at, ..area });
            self.put(at, Area { backing: area.backing.skip(at - start), ..area });
        }
    }

    /// The lowest address from `from` on with so much room.
    pub fn room(&self, from: u64, len: u64) -> Option<u64> {
        let mut at = from.max(BOTTOM);
        for (start, area) in self.within(at..TOP) {
            if at.checked_add(len)? <= start {
                return Some(at);
            }
            at = at.max(area.end);
        }
        (at.checked_add(len)? <= TOP).then_some(at)
    }

    /// The end of what was mapped together, from an address on. Parts of it may lie behind the end of its file.
    pub(super) fn end_of_mapping(&self, addr: u64) -> Option<u64> {
        let (mut start, mut area) = self.find(addr).map(|(start, area)| (start, *area))?;
        while let Some(next) = self.areas.get(&area.end)
            && continues(start, &Area { beyond: next.beyond, ..area }, next)
        {
            (start, area) = (area.end, *next);
        }
        Some(area.end)
    }

    /// True if all of a range may be accessed so; otherwise the first address that may not.
    pub fn allows(&self, addr: u64, len: u64, access: Permissions) -> Result<(), u64> {
        let end = addr.checked_add(len).ok_or(addr)?;
        let mut at = addr;
        while at < end {
            match self.find(at) {
                Some((_, area)) if area.access.contains(access) && !area.beyond => at = area.end,
                _ => return Err(at),
            }
        }
        Ok(())
    }
}

/// True if an area goes on where another one ends.
fn continues(start: u64, left: &Area, right: &Area) -> bool {
    let same =
        left.access == right.access && left.label == right.label && left.beyond == right.beyond;
    same && left.backing.skip(left.end - start) == right.backing
}
