//! Many small reads and changes of lanes' memory, in few transfers: when very many lanes have stopped, the time of each would
//! be most of all.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kvrm_mem::PAGE;

use super::copies::pages;
use super::{DeviceMemory, Entry, FramePart, PAGE_WORDS, PageMap};
use crate::{EngineError, MemoryChange, Piece};

/// Words of 64 bits that lie one after the other for a lane: in the image, or in the lane's part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The frame, and the lane's place in its group; `None` for the image.
    pub frame: Option<(u32, usize)>,
    /// The first word: of the page, or of the image.
    pub word: u64,
    /// How many.
    pub len: usize,
}

/// A page of the image that a lane gets a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCopy {
    /// The slot.
    pub slot: u32,
    /// The frame.
    pub frame: u32,
    /// The lane's place in its group.
    pub seat: usize,
}

/// A word's new value, and which of its bits change.
pub type Masked = (u64, u64);

/// The tables of all groups of mapped memory.
struct Tables {
    entries: Vec<Entry>,
    group: usize,
    slots: usize,
    changed: BTreeSet<usize>,
}

impl Tables {
    fn read<M: DeviceMemory + ?Sized>(memory: &M, map: &PageMap) -> Result<Tables, EngineError> {
        let group = memory.group().expect("mapped memory of lanes has groups");
        let (groups, slots) = (memory.lanes().div_ceil(group), map.count());
        let entries = match slots {
            0 => Vec::new(),
            _ => memory.entries(0..groups, 0..slots as u64)?,
        };
        Ok(Tables { entries, group, slots, changed: BTreeSet::new() })
    }

    fn seat(&self, lane: usize) -> usize {
        lane % self.group
    }

    fn at(&self, lane: usize, slot: u32) -> usize {
        lane / self.group * self.slots + slot as usize
    }

    /// The frame of a slot, if the lane has a copy there.
    fn owned(&self, lane: usize, slot: u32) -> Option<u32> {
        let [frame, owners] = self.entries[self.at(lane, slot)];
        (owners >> self.seat(lane) & 1 != 0).then_some(frame)
    }

    fn set_owned(&mut self, lane: usize, slot: u32, owned: bool) {
        let (at, bit) = (self.at(lane, slot), 1 << self.seat(lane));
        let owners = &mut self.entries[at][1];
        let new = if owned { *owners | bit } else { *owners & !bit };
        if new != *owners {
            *owners = new;
            self.changed.insert(at / self.slots);
        }
    }

    fn write<M: DeviceMemory + ?Sized>(&self, memory: &mut M) -> Result<(), EngineError> {
        let changed: Vec<usize> = self.changed.iter().copied().collect();
        for run in changed.chunk_by(|a, b| a + 1 == *b) {
            let (first, end) = (run[0], run[0] + run.len());
            let entries = &self.entries[first * self.slots..end * self.slots];
            memory.set_entries(first..end, 0..self.slots as u64, entries)?;
        }
        Ok(())
    }
}

/// Reads pieces of lanes' mapped memory.
pub(super) fn read<M: DeviceMemory + ?Sized>(
    memory: &M,
    pieces: &[Piece],
) -> Result<Vec<Vec<u8>>, EngineError> {
    let map = memory.map().expect("memory is mapped");
    let tables = Tables::read(memory, map)?;
    let (mut runs, mut places) = (Vec::new(), Vec::new());
    for (number, piece) in pieces.iter().enumerate() {
        for (page, start, bytes) in pages(piece.addr, piece.len) {
            let Some(slot) = map.slot(page) else { continue };
            let (word, end) = (start / 8, (start + bytes.len()).div_ceil(8));
            let frame =
                tables.owned(piece.lane, slot).map(|frame| (frame, tables.seat(piece.lane)));
            let page_word = if frame.is_some() { 0 } else { u64::from(slot) * PAGE_WORDS as u64 };
            runs.push(Run { frame, word: page_word + word as u64, len: end - word });
            places.push((number, start % 8, bytes));
        }
    }
    let words = memory.gather(&runs)?;
    let mut results: Vec<Vec<u8>> = pieces.iter().map(|piece| vec![0; piece.len]).collect();
    let mut rest = &words[..];
    for (run, (number, skip, bytes)) in runs.iter().zip(places) {
        let (words, after) = rest.split_at(run.len);
        rest = after;
        let data = words.iter().flat_map(|word| word.to_le_bytes()).skip(skip);
        results[number][bytes].iter_mut().zip(data).for_each(|(byte, new)| *byte = new);
    }
    Ok(results)
}

/// What becomes of a lane's page.
#[derive(Default)]
struct PageChange {
    /// The lane has a copy afterwards.
    owned: bool,
    /// It gets that from the image.
    copied: bool,
    /// All of it is zero, apart from the words.
    cleared: bool,
    words: BTreeMap<u32, Masked>,
}

/// Makes changes in the mapped memory of lanes, apart from permissions. False if there is no room for all, and nothing was
/// done.
pub(super) fn change<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    changes: &[(usize, Vec<MemoryChange>)],
) -> Result<bool, EngineError> {
    match memory.add_slots(&written_pages(changes)) {
        Err(EngineError::DeviceFull(_)) => return Ok(false),
        added => added?,
    }
    let map = memory.map().expect("memory is mapped");
    let mut tables = Tables::read(memory, map)?;
    let mut made = Vec::new();
    for (lane, changes) in changes {
        for (slot, change) in page_changes(map, &tables, *lane, changes) {
            made.push((*lane, slot, change));
        }
    }
    if !make_frames(memory, &mut tables, &made)? {
        return Ok(false);
    }
    let (mut copies, mut runs, mut words) = (Vec::new(), Vec::new(), Vec::new());
    for (lane, slot, change) in made {
        tables.set_owned(lane, slot, change.owned);
        if !change.owned {
            continue;
        }
        let (frame, seat) = (tables.entries[tables.at(lane, slot)][0], tables.seat(lane));
        if change.copied {
            copies.push(PageCopy { slot, frame, seat });
        }
        let zeros = (0..PAGE_WORDS as u32).filter(|_| change.cleared).map(|word| (word, (0, !0)));
        let mut all: BTreeMap<u32, Masked> = zeros.collect();
        for (word, (value, mask)) in change.words {
            let mask = if change.cleared { !0 } else { mask };
            all.insert(word, (value, mask));
        }
        let all: Vec<_> = all.into_iter().collect();
        for run in all.chunk_by(|(word, _), (next, _)| word + 1 == *next) {
            runs.push(Run { frame: Some((frame, seat)), word: run[0].0.into(), len: run.len() });
            words.extend(run.iter().map(|(_, masked)| *masked));
        }
    }
    memory.copy_pages(&copies)?;
    memory.scatter(&runs, &words)?;
    tables.write(memory)?;
    Ok(true)
}

/// The pages that are written.
fn written_pages(changes: &[(usize, Vec<MemoryChange>)]) -> Vec<u64> {
    let mut written = BTreeSet::new();
    for change in changes.iter().flat_map(|(_, changes)| changes) {
        if let MemoryChange::Write { addr, bytes } = change {
            written.extend(pages(*addr, bytes.len()).map(|(page, ..)| page));
        }
    }
    written.into_iter().collect()
}

/// What becomes of the pages of a lane that have slots.
fn page_changes(
    map: &PageMap,
    tables: &Tables,
    lane: usize,
    changes: &[MemoryChange],
) -> BTreeMap<u32, PageChange> {
    let mut made: BTreeMap<u32, PageChange> = BTreeMap::new();
    let begun = |slot| {
        let owned = tables.owned(lane, slot).is_some();
        PageChange { owned, ..PageChange::default() }
    };
    for change in changes {
        match change {
            MemoryChange::Protect { .. } => {}
            MemoryChange::Discard { addr, len } => {
                for (_, slot) in map.stored(addr / PAGE..(addr + len) / PAGE) {
                    let hides = map.is_image(slot);
                    let zero = PageChange { owned: hides, cleared: hides, ..PageChange::default() };
                    made.insert(slot, zero);
                }
            }
            MemoryChange::Write { addr, bytes } => {
                for (page, start, range) in pages(*addr, bytes.len()) {
                    let slot = map.slot(page).expect("added before");
                    let change = made.entry(slot).or_insert_with(|| begun(slot));
                    if !change.owned {
                        (change.owned, change.copied) = (true, true);
                    }
                    put(&mut change.words, start, &bytes[range]);
                }
            }
        }
    }
    made
}

/// Puts bytes into words.
fn put(words: &mut BTreeMap<u32, Masked>, start: usize, bytes: &[u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let (word, skip) = (((start + done) / 8) as u32, (start + done) % 8);
        let len = (8 - skip).min(bytes.len() - done);
        let mut value = [0; 8];
        value[skip..skip + len].copy_from_slice(&bytes[done..done + len]);
        let mask = !0 >> (64 - 8 * len) << (8 * skip);
        let (old, all) = words.entry(word).or_default();
        *old = *old & !mask | u64::from_le_bytes(value);
        *all |= mask;
        done += len;
    }
}

/// Takes frames for groups that have none where a lane gets a copy. False if there are not enough.
fn make_frames<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    tables: &mut Tables,
    made: &[(usize, u32, PageChange)],
) -> Result<bool, EngineError> {
    let owned = made.iter().filter(|(.., change)| change.owned);
    let places = owned.map(|(lane, slot, _)| tables.at(*lane, *slot));
    let without: BTreeSet<usize> = places.filter(|at| tables.entries[*at][0] == 0).collect();
    if without.is_empty() {
        return Ok(true);
    }
    let first = match memory.take_frames(without.len()) {
        Err(EngineError::DeviceFull(_)) => return Ok(false),
        first => first?,
    };
    for (frame, at) in (first..).zip(without) {
        // A lane that had a copy here would have a frame.
        tables.entries[at] = [frame, 0];
        tables.changed.insert(at / tables.slots);
    }
    Ok(true)
}

/// Reads runs by parts of frames, one after the other.
pub(super) fn gather<M: DeviceMemory + ?Sized>(
    memory: &M,
    runs: &[Run],
) -> Result<Vec<u64>, EngineError> {
    let frames = Frames::read(memory, runs)?;
    let mut words = Vec::new();
    for run in runs {
        match run.frame {
            Some((frame, seat)) => {
                let at = |word: u64| frames.place(frame, word, seat);
                words.extend((run.word..).take(run.len).map(|word| frames.words[at(word)]));
            }
            None => {
                let mut bytes = vec![0; 8 * run.len];
                memory.read_flat(8 * run.word, &mut bytes)?;
                words.extend(
                    bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight"))),
                );
            }
        }
    }
    Ok(words)
}

/// Changes runs by parts of frames.
pub(super) fn scatter<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    runs: &[Run],
    words: &[Masked],
) -> Result<(), EngineError> {
    let mut frames = Frames::read(memory, runs)?;
    let mut rest = words;
    for run in runs {
        let (words, after) = rest.split_at(run.len);
        rest = after;
        let (frame, seat) = run.frame.expect("lanes' own copies are changed");
        for (word, (value, mask)) in (run.word..).zip(words) {
            let at = frames.place(frame, word, seat);
            frames.words[at] = frames.words[at] & !mask | value & mask;
        }
    }
    frames.write(memory)
}

/// Copies pages of the image into parts of frames.
pub(super) fn copy_pages<M: DeviceMemory + ?Sized>(
    memory: &mut M,
    copies: &[PageCopy],
) -> Result<(), EngineError> {
    for copy in copies {
        let mut image = vec![0; PAGE as usize];
        memory.read_flat(u64::from(copy.slot) * PAGE, &mut image)?;
        let words = image.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight")));
        let words: Vec<Masked> = words.map(|word| (word, !0)).collect();
        let run = Run { frame: Some((copy.frame, copy.seat)), word: 0, len: PAGE_WORDS };
        scatter(memory, &[run], &words)?;
    }
    Ok(())
}

/// Words of frames, each for all lanes of a group.
struct Frames {
    /// The parts, and where their words begin.
    parts: Vec<(FramePart, usize)>,
    /// Which part has a word of a frame.
    index: HashMap<(u32, u64), usize>,
    words: Vec<u64>,
    group: usize,
}

impl Frames {
    /// Reads all words that runs have in frames.
    fn read<M: DeviceMemory + ?Sized>(memory: &M, runs: &[Run]) -> Result<Frames, EngineError> {
        let group = memory.group().expect("mapped memory of lanes has groups");
        let wanted: BTreeSet<(u32, u64)> = runs
            .iter()
            .filter_map(|run| Some((run.frame?.0, run)))
            .flat_map(|(frame, run)| (run.word..).take(run.len).map(move |word| (frame, word)))
            .collect();
        let wanted: Vec<(u32, u64)> = wanted.into_iter().collect();
        let (mut parts, mut index, mut at) = (Vec::new(), HashMap::new(), 0);
        for run in wanted.chunk_by(|a, b| a.0 == b.0 && a.1 + 1 == b.1) {
            let (frame, first) = run[0];
            let words = first as usize..first as usize + run.len();
            index.extend(run.iter().map(|word| (*word, parts.len())));
            parts.push((FramePart { frame, words }, at));
            at += run.len() * group;
        }
        let all: Vec<_> = parts.iter().map(|(part, _)| part.clone()).collect();
        let bytes = if all.is_empty() { Vec::new() } else { memory.read_frames(&all)? };
        let words =
            bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes")));
        Ok(Frames { parts, index, words: words.collect(), group })
    }

    /// Where a lane's word is.
    fn place(&self, frame: u32, word: u64, seat: usize) -> usize {
        let (part, at) = &self.parts[self.index[&(frame, word)]];
        at + (word as usize - part.words.start) * self.group + seat
    }

    fn write<M: DeviceMemory + ?Sized>(&self, memory: &mut M) -> Result<(), EngineError> {
        for (part, at) in &self.parts {
            let words = &self.words[*at..at + part.words.len() * self.group];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            memory.write_frame(part, &bytes)?;
        }
        Ok(())
    }
}
