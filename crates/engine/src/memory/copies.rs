//! Copies that lanes have of pages, in frames.

use std::ops::Range;

use kvrm_mem::PAGE;

use super::{DeviceMemory, Entry, FramePart, PAGE_WORDS};
use crate::EngineError;

/// Parts of frames that are read together.
const PARTS_AT_ONCE: usize = 256;

/// Bytes of a page of which some lanes of a group have copies.
pub(super) struct Piece {
    pub(super) group: usize,
    /// A bit for each lane.
    pub(super) lanes: u32,
    part: FramePart,
    /// Bytes of the first word before them.
    pub(super) skip: usize,
    /// Their range in a lane's bytes.
    pub(super) bytes: Range<usize>,
}

impl Piece {
    /// Returns the bytes from `start` on, if there are copies.
    pub(super) fn new(
        group: usize,
        entry: Entry,
        start: usize,
        bytes: Range<usize>,
    ) -> Option<Piece> {
        let [frame, lanes] = entry;
        let words = start / 8..(start + bytes.len()).div_ceil(8);
        let part = FramePart { frame, words };
        (lanes != 0).then_some(Piece { group, lanes, part, skip: start % 8, bytes })
    }
}

/// Reads the contents of the frames for each of the pieces.
pub(super) fn read_pieces<M: DeviceMemory + ?Sized>(
    memory: &M,
    group: usize,
    pieces: &[Piece],
) -> Result<Vec<Vec<u8>>, EngineError> {
    let parts: Vec<_> = pieces.iter().map(|piece| piece.part.clone()).collect();
    let data = memory.read_frames(&parts)?;
    let mut rest = &data[..];
    let each = |part: FramePart| {
        let (words, after) = rest.split_at(8 * group * part.words.len());
        rest = after;
        words.to_vec()
    };
    Ok(parts.into_iter().map(each).collect())
}

/// Reads what lanes have written of pages that lie one after the other in the image, which is in `bytes` already, lane after
/// lane.
pub(super) fn read_copies<M: DeviceMemory + ?Sized>(
    memory: &M,
    lanes: &Range<usize>,
    addr: u64,
    bytes: &mut [u8],
) -> Result<(), EngineError> {
    let Some(group) = memory.group().filter(|_| memory.has_copies()) else { return Ok(()) };
    let len = bytes.len() / lanes.len();
    let groups = lanes.start / group..lanes.end.div_ceil(group);
    let (first_page, end_page) = (addr / PAGE, (addr + len as u64).div_ceil(PAGE));
    let entries = memory.entries(groups.clone(), first_page..end_page)?;
    let mut pieces = Vec::new();
    for (number, table) in groups.zip(entries.chunks_exact((end_page - first_page) as usize)) {
        for ((_, start, bytes), entry) in pages(addr, len).zip(table) {
            let copies = entry[1] & seats_of(lanes, number, group);
            pieces.extend(Piece::new(number, [entry[0], copies], start, bytes));
        }
    }
    for pieces in pieces.chunks(PARTS_AT_ONCE) {
        for (piece, words) in pieces.iter().zip(read_pieces(memory, group, pieces)?) {
            for seat in seats(piece.lanes) {
                let row = (piece.group * group + seat - lanes.start) * len;
                get(&words, group, seat, piece.skip, &mut bytes[row..][piece.bytes.clone()]);
            }
        }
    }
    Ok(())
}

/// Gives lanes their own copies of a page, and changes bytes of it: in each to those of a row, lane after lane.
pub(super) fn write_copies<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    lanes: &Range<usize>,
    page: u64,
    start: usize,
    rows: &[&[u8]],
) -> Result<(), EngineError> {
    let group = memory.group().expect("only private memory has copies");
    let entries = copy_page(memory, group, lanes, page)?;
    let groups = lanes.start / group..lanes.end.div_ceil(group);
    let mut pieces = Vec::new();
    for (number, entry) in groups.zip(entries) {
        let copies = entry[1] & seats_of(lanes, number, group);
        pieces.extend(Piece::new(number, [entry[0], copies], start, 0..rows[0].len()));
    }
    change_copies(memory, group, &pieces, |lane| rows[lane - lanes.start])
}

/// Changes a page in all copies.
pub(super) fn change_all_copies<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    page: u64,
    start: usize,
    bytes: &[u8],
) -> Result<(), EngineError> {
    let Some(group) = memory.group().filter(|_| memory.has_copies()) else { return Ok(()) };
    let entries = memory.entries(0..memory.lanes().div_ceil(group), page..page + 1)?;
    let pieces = entries.iter().enumerate();
    let pieces: Vec<_> = pieces
        .filter_map(|(number, entry)| Piece::new(number, *entry, start, 0..bytes.len()))
        .collect();
    change_copies(memory, group, &pieces, |_| bytes)
}

/// Changes copies of a page: each lane's to its bytes.
pub(super) fn change_copies<'a, M: DeviceMemory + ?Sized>(
    memory: &mut M,
    group: usize,
    pieces: &[Piece],
    bytes: impl Fn(usize) -> &'a [u8],
) -> Result<(), EngineError> {
    for pieces in pieces.chunks(PARTS_AT_ONCE) {
        for (piece, mut words) in pieces.iter().zip(read_pieces(memory, group, pieces)?) {
            for seat in seats(piece.lanes) {
                put(&mut words, group, seat, piece.skip, bytes(piece.group * group + seat));
            }
            memory.write_frame(&piece.part, &words)?;
        }
    }
    Ok(())
}

/// Gives lanes their own copies of a page; returns the entries of their groups' page tables for it.
pub(super) fn copy_page<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    group: usize,
    lanes: &Range<usize>,
    page: u64,
) -> Result<Vec<Entry>, EngineError> {
    let groups = lanes.start / group..lanes.end.div_ceil(group);
    let mut entries = memory.entries(groups.clone(), page..page + 1)?;
    let missing = |number: usize, entry: &Entry| seats_of(lanes, number, group) & !entry[1];
    if groups.clone().zip(&entries).all(|(number, entry)| missing(number, entry) == 0) {
        return Ok(entries);
    }
    let mut image = vec![0; PAGE as usize];
    memory.read_flat(page * PAGE, &mut image)?;
    // In the layout of a frame, for all lanes.
    let spread: Vec<u8> = image.chunks_exact(8).flat_map(|word| word.repeat(group)).collect();
    let new = entries.iter().filter(|entry| entry[0] == 0).count();
    let mut frames = if new > 0 { memory.take_frames(new)?.. } else { 0.. };
    for (number, entry) in groups.clone().zip(&mut entries) {
        let copied = missing(number, entry);
        if entry[0] == 0 {
            entry[0] = frames.next().expect("taken above");
            let part = FramePart { frame: entry[0], words: 0..PAGE_WORDS };
            memory.write_frame(&part, &spread)?;
        } else if copied != 0 {
            let part = FramePart { frame: entry[0], words: 0..PAGE_WORDS };
            let mut words = memory.read_frames(std::slice::from_ref(&part))?;
            seats(copied).for_each(|seat| put(&mut words, group, seat, 0, &image));
            memory.write_frame(&part, &words)?;
        }
        entry[1] |= copied;
    }
    memory.set_entries(groups, page..page + 1, &entries)?;
    Ok(entries)
}

/// Returns the seats of a range's lanes in a group, as bits.
pub(super) fn seats_of(lanes: &Range<usize>, number: usize, group: usize) -> u32 {
    let first = number * group;
    let start = lanes.start.max(first) - first;
    let end = lanes.end.min(first + group) - first;
    (start..end).fold(0, |bits, seat| bits | 1 << seat)
}

/// Returns the seats whose bits are set.
pub(super) fn seats(bits: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |seat| bits >> seat & 1 != 0)
}

/// Writes a lane's bytes into the words of its group; the first comes after `skip` other bytes of the lane.
pub(super) fn put(words: &mut [u8], group: usize, seat: usize, skip: usize, bytes: &[u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let (at, count) = place(group, seat, skip + done, bytes.len() - done);
        words[at..at + count].copy_from_slice(&bytes[done..done + count]);
        done += count;
    }
}

/// Reads a lane's bytes from the words of its group.
pub(super) fn get(words: &[u8], group: usize, seat: usize, skip: usize, bytes: &mut [u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let (at, count) = place(group, seat, skip + done, bytes.len() - done);
        bytes[done..done + count].copy_from_slice(&words[at..at + count]);
        done += count;
    }
}

/// Returns where a lane's byte is, and how many of the following bytes, up to `len`, are adjacent.
fn place(group: usize, seat: usize, byte: usize, len: usize) -> (usize, usize) {
    let (word, offset) = (byte / 8, byte % 8);
    ((word * group + seat) * 8 + offset, len.min(8 - offset))
}

/// Splits a range of addresses by page: page, offset in it, and range of the bytes.
pub(super) fn pages(addr: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = addr + done as u64;
        let (page, start) = (at / PAGE, (at % PAGE) as usize);
        let part = (len - done).min(PAGE as usize - start);
        done += part;
        (part > 0).then(|| (page, start, done - part..done))
    })
}
