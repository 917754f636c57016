//! What system calls are probably going to read of their lanes' memory, so that it can be read for all lanes together.

use std::collections::HashMap;

use kvrm_engine::{Engine, EngineError, Piece};
use kvrm_linux::Kernel;
use kvrm_linux::calls::{self, Argument, Entry};

/// Bytes that are read together.
const TOGETHER: u64 = 64;
/// The most bytes that are brought along for an argument.
const MOST_KNOWN: u64 = 4096;
/// Bytes of the head of a list of robust futexes, and of an entry of a vector of buffers.
const LIST_HEAD: u64 = 24;
const BUFFER: usize = 16;

/// Strings, buffers and structures that are arguments of the call in a lane's registers, and what ends with the thread.
pub(super) fn pieces(lane: usize, x: &[u64], kernel: &Kernel) -> Vec<Piece> {
    let Some(call) = calls::find(x[8]) else { return Vec::new() };
    let of_argument = |(index, argument): (usize, &Argument)| {
        let len = match argument {
            Argument::Text => 2 * TOGETHER,
            Argument::Pointer => TOGETHER,
            Argument::Bytes => x[index + 1].min(MOST_KNOWN),
            Argument::Fd
            | Argument::Int
            | Argument::Size
            | Argument::Offset
            | Argument::Flags
            | Argument::Mode
            | Argument::Signal => return None,
        };
        piece(lane, x[index], len)
    };
    let arguments = call.arguments.iter().enumerate().filter_map(of_argument);
    let at_end = ends_threads(call).then(|| piece(lane, kernel.robust_list(), LIST_HEAD)).flatten();
    arguments.chain(at_end).collect()
}

/// Buffers that the call in a lane's registers writes from, if these are the entries of a vector. `known` has what was read of
/// the memory from an address on.
pub(super) fn buffers<'k>(
    lane: usize,
    x: &[u64],
    known: impl Fn(u64) -> Option<&'k [u8]>,
) -> Vec<Piece> {
    let is_vector = |call: &&Entry| matches!(call.name, "writev" | "pwritev");
    let Some(entries) = calls::find(x[8]).filter(is_vector).and_then(|_| known(x[1])) else {
        return Vec::new();
    };
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let entries = entries.chunks_exact(BUFFER).take(usize::try_from(x[2]).unwrap_or(usize::MAX));
    let buffer = |entry: &[u8]| (number(&entry[..8]), number(&entry[8..]));
    entries.map(buffer).filter_map(|(addr, len)| piece(lane, addr, len.min(MOST_KNOWN))).collect()
}

fn ends_threads(call: &Entry) -> bool {
    matches!(call.name, "exit" | "exit_group")
}

/// A piece around some bytes; none, if there are none.
fn piece(lane: usize, addr: u64, len: u64) -> Option<Piece> {
    let first = addr / TOGETHER * TOGETHER;
    let end = addr.checked_add(len)?.checked_next_multiple_of(TOGETHER)?;
    let is_there = addr != 0 && len > 0 && end <= kvrm_linux::memory::TOP;
    is_there.then(|| Piece { lane, addr: first, len: (end - first) as usize })
}

/// Pieces of lanes' memory: address and bytes.
#[derive(Default)]
pub(super) struct Known(HashMap<usize, Vec<(u64, Vec<u8>)>>);

impl Known {
    /// Reads pieces.
    pub(super) fn read(engine: &dyn Engine, pieces: &[Piece]) -> Result<Known, EngineError> {
        let mut known = Known::default();
        for (piece, bytes) in pieces.iter().zip(engine.read_pieces(pieces)?) {
            known.0.entry(piece.lane).or_default().push((piece.addr, bytes));
        }
        Ok(known)
    }

    /// Adds others.
    pub(super) fn add(&mut self, other: Known) {
        for (lane, pieces) in other.0 {
            self.0.entry(lane).or_default().extend(pieces);
        }
    }

    /// What is known of a lane's memory from an address on.
    pub(super) fn find(&self, lane: usize, addr: u64) -> Option<&[u8]> {
        let pieces = self.0.get(&lane)?.iter();
        let has = |(start, bytes): &&(u64, Vec<u8>)| {
            (*start..*start + bytes.len() as u64).contains(&addr)
        };
        pieces.into_iter().find(has).map(|(start, bytes)| &bytes[(addr - start) as usize..])
    }

    /// Takes what is known of a lane's memory.
    pub(super) fn take(&mut self, lane: usize) -> Vec<(u64, Vec<u8>)> {
        self.0.remove(&lane).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u64, args: [u64; 3]) -> [u64; 31] {
        let mut x = [0; 31];
        x[..3].copy_from_slice(&args);
        x[8] = number;
        x
    }

    #[test]
    fn buffers_of_a_vector_are_found_where_the_vector_is_known() {
        let entries = [0x1010u64, 5, 0x2000, 0, 0x3000, 1 << 40];
        let bytes: Vec<u8> = entries.iter().flat_map(|word| word.to_le_bytes()).collect();
        let writev = call(66, [1, 0x500, 3]);
        let found = buffers(7, &writev, |addr| (addr == 0x500).then_some(&bytes[..]));
        let expected = [(0x1000, 64), (0x3000, 4096)];
        assert_eq!(found.iter().map(|p| (p.addr, p.len)).collect::<Vec<_>>(), expected);
        assert!(found.iter().all(|piece| piece.lane == 7));
        assert!(buffers(7, &writev, |_| None).is_empty());
        // write
        assert!(buffers(7, &call(64, [1, 0x500, 3]), |_| Some(&bytes[..])).is_empty());
    }

    #[test]
    fn pieces_are_looked_up_by_lane_and_address() {
        let mut known = Known(HashMap::from([(3, vec![(64, vec![1; 64]), (256, vec![2; 64])])]));
        known.add(Known(HashMap::from([(3, vec![(512, vec![3; 64])])])));
        assert_eq!(known.find(3, 300), Some(&[2; 20][..]));
        assert_eq!((known.find(3, 128), known.find(4, 64)), (None, None));
        assert_eq!((known.take(3).len(), known.take(3).len()), (3, 0));
    }
}
