//! Mapped memory on a device, as the host reads and writes it.
//!
//! Where it is that of one lane, what the host writes goes to the slots, so that the lane needs no copy. Where lanes have
//! their own, slots hold the image, and what lanes or the host write for a lane is in the lane's copy.

use std::ops::Range;

use kvrm_mem::{PAGE, Permissions};

use super::copies::{Piece, change_all_copies, change_copies, copy_page, pages, write_copies};
use super::{DeviceMemory, ENTRIES_AT_ONCE, PageMap};
use crate::EngineError;

/// The only lane, and its group.
const LANE: Range<usize> = 0..1;

/// A part of a range of addresses: where it is stored, if it is, and which of the bytes it has.
type Part = (Option<u64>, Range<usize>);

/// Reads memory of lanes: zeros where nothing is stored.
pub(super) fn read<M: DeviceMemory + ?Sized>(
    memory: &M,
    lanes: Range<usize>,
    addr: u64,
    bytes: &mut [u8],
) -> Result<(), EngineError> {
    let len = bytes.len() / lanes.len();
    for (stored, range) in parts(map(memory), addr, len) {
        let Some(at) = stored else {
            bytes.chunks_exact_mut(len).for_each(|row| row[range.clone()].fill(0));
            continue;
        };
        if range.len() == len {
            return memory.read_stored(lanes, at, bytes);
        }
        let mut part = vec![0; lanes.len() * range.len()];
        memory.read_stored(lanes.clone(), at, &mut part)?;
        for (row, part) in bytes.chunks_exact_mut(len).zip(part.chunks_exact(range.len())) {
            row[range.clone()].copy_from_slice(part);
        }
    }
    Ok(())
}

/// Writes memory of lanes.
pub(super) fn write<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    lanes: Range<usize>,
    addr: u64,
    bytes: &[u8],
) -> Result<(), EngineError> {
    let len = bytes.len() / lanes.len();
    add_range(memory, addr, len)?;
    if !map(memory).is_private() {
        for (stored, range) in parts(map(memory), addr, len) {
            write_stored(memory, stored.expect("just added"), &bytes[range])?;
        }
        return Ok(());
    }
    for (page, start, range) in pages(addr, len) {
        let slot = map(memory).slot(page).expect("just added").into();
        let rows: Vec<_> = bytes.chunks_exact(len).map(|row| &row[range.clone()]).collect();
        write_copies(memory, &lanes, slot, start, &rows)?;
    }
    Ok(())
}

/// Changes the image, and the copies that lanes have of its pages.
pub(super) fn write_image<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    addr: u64,
    bytes: &[u8],
) -> Result<(), EngineError> {
    if !map(memory).is_private() {
        return write(memory, LANE, addr, bytes);
    }
    add_range(memory, addr, bytes.len())?;
    for (page, start, range) in pages(addr, bytes.len()) {
        let slot = u64::from(map(memory).slot(page).expect("just added"));
        map_mut(memory).note_image(page);
        memory.write_flat(slot * PAGE + start as u64, &bytes[range.clone()])?;
        change_all_copies(memory, slot, start, &bytes[range])?;
    }
    Ok(())
}

/// Writes the memory of the only lane. What it has no copy of goes to the slots: there is no other lane that sees them.
fn write_stored<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    addr: u64,
    bytes: &[u8],
) -> Result<(), EngineError> {
    if !memory.has_copies() {
        return memory.write_flat(addr, bytes);
    }
    let group = memory.group().expect("mapped memory has copies");
    let slots = addr / PAGE..(addr + bytes.len() as u64).div_ceil(PAGE);
    let entries = memory.entries(LANE, slots)?;
    for ((page, start, range), entry) in pages(addr, bytes.len()).zip(entries) {
        match Piece::new(0, entry, start, range.clone()) {
            Some(piece) => change_copies(memory, group, &[piece], |_| &bytes[range.clone()])?,
            None => memory.write_flat(page * PAGE + start as u64, &bytes[range])?,
        }
    }
    Ok(())
}

/// Gives a lane slots for the pages of a range that it is about to write, and its own copies.
pub(super) fn own<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    lane: usize,
    addr: u64,
    len: u64,
) -> Result<(), EngineError> {
    add_range(memory, addr, len as usize)?;
    if !map(memory).is_private() {
        return Ok(());
    }
    let group = memory.group().expect("mapped memory has copies");
    for (page, ..) in pages(addr, len as usize) {
        let slot = map(memory).slot(page).expect("just added").into();
        copy_page(memory, group, &(lane..lane + 1), slot)?;
    }
    Ok(())
}

/// Gives the pages of a range slots.
fn add_range<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    addr: u64,
    len: usize,
) -> Result<(), EngineError> {
    let pages: Vec<u64> = pages(addr, len).map(|(page, ..)| page).collect();
    add(memory, &pages)
}

/// Gives pages slots, those that have none.
pub(super) fn add<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    pages: &[u64],
) -> Result<(), EngineError> {
    let missing = |map: &PageMap| -> Vec<u64> {
        pages.iter().copied().filter(|page| map.slot(*page).is_none()).collect()
    };
    let mut new = missing(map(memory));
    if new.is_empty() {
        return Ok(());
    }
    if map(memory).count_with(new.len()) > memory.room() && map(memory).is_private() {
        reclaim(memory)?;
        // Some of the pages may have had slots that nobody needed.
        new = missing(map(memory));
    }
    memory.make_room(map(memory).count_with(new.len()))?;
    map_mut(memory).add(&new);
    Ok(())
}

/// Takes slots away of which no lane has a copy, and the image has nothing: lanes find zeros without.
fn reclaim<M: DeviceMemory + ?Sized>(memory: &mut M) -> Result<(), EngineError> {
    let Some(group) = memory.group() else { return Ok(()) };
    let (groups, slots) = (memory.lanes().div_ceil(group), map(memory).count());
    if slots == 0 {
        return Ok(());
    }
    let mut owned = vec![false; slots];
    let step = (ENTRIES_AT_ONCE / slots).max(1);
    for first in (0..groups).step_by(step) {
        let entries = memory.entries(first..groups.min(first + step), 0..slots as u64)?;
        for table in entries.chunks_exact(slots) {
            owned.iter_mut().zip(table).for_each(|(owned, entry)| *owned |= entry[1] != 0);
        }
    }
    let map = map_mut(memory);
    for (page, slot) in map.stored(0..u64::MAX) {
        if !owned[slot as usize] && !map.is_image(slot) {
            map.remove(page);
        }
    }
    Ok(())
}

/// Makes whole pages of a lane zero.
pub(super) fn discard<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    lane: usize,
    addr: u64,
    len: u64,
) -> Result<(), EngineError> {
    let stored = map(memory).stored(addr / PAGE..(addr + len) / PAGE);
    for run in stored.chunk_by(|(_, slot), (_, next)| slot + 1 == *next) {
        let slots = u64::from(run[0].1)..u64::from(run[0].1) + run.len() as u64;
        drop_copies(memory, lane, slots.clone())?;
        match map(memory).is_private() {
            true => hide_image(memory, lane, slots)?,
            false => memory.write_flat(slots.start * PAGE, &vec![0; run.len() * PAGE as usize])?,
        }
    }
    let map = map_mut(memory);
    for (page, _) in stored {
        if !map.is_private() && map.permissions(lane, page) == Permissions::NONE {
            map.remove(page);
        }
    }
    Ok(())
}

/// Drops a lane's copies of slots.
fn drop_copies<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    lane: usize,
    slots: Range<u64>,
) -> Result<(), EngineError> {
    let Some(group) = memory.group().filter(|_| memory.has_copies()) else { return Ok(()) };
    let (groups, bit) = (lane / group..lane / group + 1, 1 << (lane % group));
    let mut entries = memory.entries(groups.clone(), slots.clone())?;
    if entries.iter().any(|entry| entry[1] & bit != 0) {
        entries.iter_mut().for_each(|entry| entry[1] &= !bit);
        memory.set_entries(groups, slots, &entries)?;
    }
    Ok(())
}

/// Gives a lane copies full of zeros where the image has something.
fn hide_image<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    lane: usize,
    slots: Range<u64>,
) -> Result<(), EngineError> {
    for slot in slots.filter(|slot| map(memory).is_image(*slot as u32)).collect::<Vec<_>>() {
        write_copies(memory, &(lane..lane + 1), slot, 0, &[&[0; PAGE as usize]])?;
    }
    Ok(())
}

/// Splits a range of addresses where what is stored does not go on.
fn parts(map: &PageMap, addr: u64, len: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (page, start, range) in pages(addr, len) {
        let stored = map.slot(page).map(|slot| u64::from(slot) * PAGE + start as u64);
        match parts.last_mut() {
            Some((last, bytes)) if last.map(|at| at + bytes.len() as u64) == stored => {
                bytes.end = range.end;
            }
            _ => parts.push((stored, range)),
        }
    }
    parts
}

fn map<M: DeviceMemory + ?Sized>(memory: &M) -> &PageMap {
    memory.map().expect("memory is mapped")
}

fn map_mut<M: DeviceMemory + ?Sized>(memory: &mut M) -> &mut PageMap {
    memory.map_mut().expect("memory is mapped")
}
