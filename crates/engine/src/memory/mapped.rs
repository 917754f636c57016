//! Mapped memory on a device, as the host reads and writes it. It is the memory of one lane.

use std::ops::Range;

use kvrm_ir::Access;
use kvrm_mem::{PAGE, Permissions};

use super::{DeviceMemory, PageMap, Piece, change_copies, pages};
use crate::{EngineError, Lacking, Stop};

/// The only lane, and its group.
const LANE: Range<usize> = 0..1;

/// A part of a range of addresses: where it is stored, if it is, and which of the bytes it has.
type Part = (Option<u64>, Range<usize>);

/// Reads memory: zeros where nothing is stored.
pub(super) fn read<M: DeviceMemory + ?Sized>(
    memory: &M,
    addr: u64,
    bytes: &mut [u8],
) -> Result<(), EngineError> {
    for (stored, range) in parts(map(memory), addr, bytes.len()) {
        match stored {
            Some(at) => memory.read_stored(LANE, at, &mut bytes[range])?,
            None => bytes[range].fill(0),
        }
    }
    Ok(())
}

/// Writes memory. What the lane has no copy of goes to the image: there is no other lane that sees it.
pub(super) fn write<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    addr: u64,
    bytes: &[u8],
) -> Result<(), EngineError> {
    add(memory, addr, bytes.len())?;
    for (stored, range) in parts(map(memory), addr, bytes.len()) {
        write_stored(memory, stored.expect("just added"), &bytes[range])?;
    }
    Ok(())
}

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

/// Gives the pages of a range slots.
pub(super) fn add<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    addr: u64,
    len: usize,
) -> Result<(), EngineError> {
    for (page, ..) in pages(addr, len) {
        map_mut(memory).add(page);
    }
    memory.make_room()
}

/// Lets an access proceed that a kernel could not make, or says why it may not.
pub(super) fn admit<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    access: Access,
    addr: u64,
) -> Result<Option<Stop>, EngineError> {
    if let Err(refused) = map_mut(memory).admit(access, addr) {
        return Ok(Some(Stop::from_fault(access, refused)));
    }
    match memory.make_room() {
        Err(EngineError::DeviceFull(_)) => Ok(Some(Stop::OutOfMemory { lacking: Lacking::Pages })),
        made => made.map(|()| None),
    }
}

/// Makes whole pages zero. Those that nobody may access any more give their slots back.
pub(super) fn discard<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    addr: u64,
    len: u64,
) -> Result<(), EngineError> {
    let stored = map(memory).stored(addr / PAGE..(addr + len) / PAGE);
    for run in stored.chunk_by(|(_, slot), (_, next)| slot + 1 == *next) {
        let slots = u64::from(run[0].1)..u64::from(run[0].1) + run.len() as u64;
        if memory.has_copies() {
            let mut entries = memory.entries(LANE, slots.clone())?;
            entries.iter_mut().for_each(|entry| entry[1] = 0);
            memory.set_entries(LANE, slots.clone(), &entries)?;
        }
        memory.write_flat(slots.start * PAGE, &vec![0; run.len() * PAGE as usize])?;
    }
    let map = map_mut(memory);
    for (page, _) in stored {
        if map.permissions(page) == Permissions::NONE {
            map.remove(page);
        }
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
