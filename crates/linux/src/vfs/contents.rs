//! Bytes of a file in memory. Holes cost nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::limits::Usage;
use crate::Result;
use crate::snapshot::Bytes;

/// Bytes of a file that are allocated together.
const CHUNK: u64 = 1 << 16;
/// The smallest allocation.
const SMALLEST: u64 = 64;
/// What a chunk counts as besides its bytes.
const CHUNK_COST: u64 = 64;

/// No file is longer.
const LONGEST: u64 = 1 << 63;

/// The contents of a file: chunks that may be missing. A chunk may be shorter than [`CHUNK`]; what is missing of it,
/// and what lies behind the length of the file, is zero.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub(super) struct Contents {
    /// Copies have them in common until they change them.
    chunks: BTreeMap<u64, Arc<Vec<u8>>>,
    len: u64,
    held: u64,
}

/// Contents in a snapshot.
#[derive(Serialize, Deserialize)]
struct Saved {
    chunks: BTreeMap<u64, Bytes>,
    len: u64,
}

impl From<Contents> for Saved {
    fn from(contents: Contents) -> Saved {
        let Contents { chunks, len, held: _ } = contents;
        let bytes = |(index, chunk)| (index, Bytes(Arc::unwrap_or_clone(chunk)));
        Saved { chunks: chunks.into_iter().map(bytes).collect(), len }
    }
}

impl TryFrom<Saved> for Contents {
    type Error = &'static str;

    fn try_from(saved: Saved) -> std::result::Result<Contents, &'static str> {
        let wrong = "a file in memory is not as it can be";
        let Saved { chunks, len } = saved;
        let fits = |(index, Bytes(chunk)): (&u64, &Bytes)| {
            chunk.len() as u64 <= CHUNK && *index < LONGEST / CHUNK
        };
        if len > LONGEST || !chunks.iter().all(fits) {
            return Err(wrong);
        }
        let chunks: BTreeMap<_, _> =
            chunks.into_iter().map(|(index, Bytes(chunk))| (index, Arc::new(chunk))).collect();
        let held = chunks.values().map(|chunk| chunk.len() as u64).sum();
        Ok(Contents { chunks, len, held })
    }
}

impl Contents {
    /// What it counts as.
    pub(super) fn cost(&self) -> u64 {
        self.held + CHUNK_COST * self.chunks.len() as u64
    }

    /// Contents that are elsewhere, of which only the length is known.
    pub(super) fn of_length(len: u64) -> Contents {
        Contents { len, ..Contents::default() }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes that are allocated, without those behind the end that its chunk has in reserve.
    pub(super) fn stored(&self) -> u64 {
        let last = self.len.div_ceil(CHUNK).checked_sub(1);
        let reserve = last.and_then(|last| Some((last, self.chunks.get(&last)?)));
        let reserve = reserve.map_or(0, |(last, chunk)| {
            (chunk.len() as u64).saturating_sub(self.len - last * CHUNK)
        });
        self.held - reserve
    }

    /// Reads what there is at `offset`.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let count = self.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..count];
        buffer.fill(0);
        for (index, within, range) in pieces(offset, count) {
            let Some(chunk) = self.chunks.get(&index) else { continue };
            let present = chunk.get(within..).unwrap_or_default();
            let present = &present[..present.len().min(range.len())];
            buffer[range.start..range.start + present.len()].copy_from_slice(present);
        }
        count
    }

    /// Writes as much as the limits allow; an error only if that is nothing.
    pub(super) fn write(&mut self, usage: &mut Usage, offset: u64, bytes: &[u8]) -> Result<usize> {
        let mut written = 0;
        for (index, within, range) in pieces(offset, bytes.len()) {
            match self.chunk(usage, index, (within + range.len()) as u64) {
                Ok(chunk) => {
                    chunk[within..within + range.len()].copy_from_slice(&bytes[range.clone()])
                }
                Err(error) if written == 0 => return Err(error),
                Err(_) => break,
            }
            written = range.end;
            self.len = self.len.max(offset + written as u64);
        }
        Ok(written)
    }

    /// Returns a chunk that has at least `len` bytes.
    fn chunk(&mut self, usage: &mut Usage, index: u64, len: u64) -> Result<&mut Vec<u8>> {
        let old = self.chunks.get(&index).map(|chunk| chunk.len() as u64);
        if old.is_none_or(|old| old < len) {
            let new = len.next_power_of_two().max(SMALLEST);
            let more = new - old.unwrap_or(0);
            usage.take_bytes(more + if old.is_none() { CHUNK_COST } else { 0 })?;
            self.held += more;
            let chunk = Arc::make_mut(self.chunks.entry(index).or_default());
            chunk.reserve_exact(more as usize);
            chunk.resize(new as usize, 0);
        }
        Ok(Arc::make_mut(self.chunks.entry(index).or_default()))
    }

    /// Makes the file as long as this; what comes new is a hole.
    pub(super) fn truncate(&mut self, usage: &mut Usage, len: u64) {
        if len < self.len {
            self.clear(usage, len, u64::MAX);
        }
        self.len = len;
    }

    /// Makes a hole.
    pub(super) fn clear(&mut self, usage: &mut Usage, start: u64, end: u64) {
        let (first, last) = (start.div_ceil(CHUNK), end / CHUNK);
        if first < last {
            let mut dropped = self.chunks.split_off(&first);
            self.chunks.append(&mut dropped.split_off(&last));
            dropped.values().for_each(|chunk| self.held -= give(usage, chunk));
        }
        for index in [start / CHUNK, end / CHUNK] {
            let Some(chunk) = self.chunks.get_mut(&index) else { continue };
            let within =
                |at: u64| at.saturating_sub(index * CHUNK).min(chunk.len() as u64) as usize;
            let (from, to) = (within(start), within(end));
            if from < to {
                Arc::make_mut(chunk)[from..to].fill(0);
            }
        }
    }

    /// Allocates everything from `start` to `end`, or nothing.
    pub(super) fn allocate(&mut self, usage: &mut Usage, start: u64, end: u64) -> Result<()> {
        if start >= end {
            return Ok(());
        }
        let (first, last) = (start / CHUNK, (end - 1) / CHUNK);
        let present = self.chunks.range(first..=last);
        let held: u64 = present.map(|(_, chunk)| chunk.len() as u64 + CHUNK_COST).sum();
        let all = u128::from(last - first + 1) * u128::from(CHUNK + CHUNK_COST);
        let more = u64::try_from(all - u128::from(held)).unwrap_or(u64::MAX);
        usage.take_bytes(more)?;
        for index in first..=last {
            let chunk = Arc::make_mut(self.chunks.entry(index).or_default());
            self.held += CHUNK - chunk.len() as u64;
            chunk.resize(CHUNK as usize, 0);
        }
        Ok(())
    }

    /// Returns the first place from `offset` that is allocated.
    pub(super) fn data_from(&self, offset: u64) -> Option<u64> {
        let index = offset / CHUNK;
        let (found, _) = self.chunks.range(index..).next()?;
        Some(offset.max(found * CHUNK)).filter(|at| *at < self.len)
    }

    /// Returns the first place from `offset` that is not allocated: the length if there is none.
    pub(super) fn hole_from(&self, offset: u64) -> u64 {
        let mut index = offset / CHUNK;
        while self.chunks.contains_key(&index) {
            index += 1;
        }
        offset.max(index * CHUNK).min(self.len)
    }

    /// Gives all memory back.
    pub(super) fn drop_all(&mut self, usage: &mut Usage) {
        self.truncate(usage, 0);
        self.clear(usage, 0, u64::MAX);
    }
}

fn give(usage: &mut Usage, chunk: &[u8]) -> u64 {
    usage.give_bytes(chunk.len() as u64 + CHUNK_COST);
    chunk.len() as u64
}

/// Splits bytes at `offset` where chunks begin: the chunk's index, the place in it, and which of the bytes.
fn pieces(offset: u64, count: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % CHUNK) as usize;
        let len = (CHUNK as usize - within).min(count - done);
        let range = done..done + len;
        done += len;
        (len > 0).then_some((at / CHUNK, within, range))
    })
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::*;

    fn usage(bytes: u64) -> Usage {
        let mut usage = Usage::unlimited();
        usage.limit(Limits { bytes, nodes: 0 });
        usage
    }

    #[test]
    fn random_changes_equal_those_of_a_vector() {
        let mut usage = usage(u64::MAX);
        let (mut contents, mut model) = (Contents::default(), Vec::<u8>::new());
        let mut state = 1u64;
        let mut random = |limit: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % limit
        };
        for step in 0..3000 {
            let (at, len) = (random(300_000), random(100_000));
            match random(5) {
                0 | 1 => {
                    let bytes = vec![step as u8; len as usize % 2000];
                    assert_eq!(contents.write(&mut usage, at, &bytes), Ok(bytes.len()));
                    let range = at as usize..at as usize + bytes.len();
                    if !range.is_empty() {
                        model.resize(model.len().max(range.end), 0);
                        model[range].copy_from_slice(&bytes);
                    }
                }
                2 => {
                    contents.truncate(&mut usage, at);
                    model.resize(at as usize, 0);
                }
                3 => {
                    contents.clear(&mut usage, at, at + len);
                    let [from, to] = [at, at + len].map(|end| model.len().min(end as usize));
                    model[from..to].fill(0);
                }
                _ => contents.allocate(&mut usage, at, at + len).unwrap(),
            }
            let mut all = vec![1; model.len() + 1];
            assert_eq!(contents.read(0, &mut all), model.len());
            all.pop();
            assert!(all == model, "step {step}");
            let chunks = contents.chunks.len() as u64;
            assert_eq!(usage.bytes(), contents.held + chunks * CHUNK_COST);
        }
        contents.drop_all(&mut usage);
        assert_eq!((usage.bytes(), contents.held), (0, 0));
    }

    #[test]
    fn holes_cost_nothing_and_limits_hold() {
        let mut usage = usage(3 * CHUNK);
        let mut contents = Contents::default();
        contents.truncate(&mut usage, 1 << 40);
        assert_eq!(usage.bytes(), 0);
        assert!(contents.allocate(&mut usage, 0, 1 << 40).is_err());
        assert_eq!((usage.bytes(), contents.held), (0, 0));
        assert_eq!(
            contents.write(&mut usage, CHUNK, &vec![1; 4 * CHUNK as usize]),
            Ok(2 * CHUNK as usize)
        );
        assert_eq!(contents.data_from(0), Some(CHUNK));
        assert_eq!(contents.hole_from(CHUNK), 3 * CHUNK);
    }
}
