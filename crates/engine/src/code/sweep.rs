//! Which handlers code wants that is near to what is decoded, but is only reached through addresses that the program
//! computes: a kernel that has them need not be compiled again when lanes get there.
//!
//! Nobody knows which words of a page are code. Those are taken for it that are in a long run of words that are all
//! instructions, and pages are looked at as long as they have such runs, from those that have decoded code on. What is
//! found is only counted: it takes nothing but a larger kernel if it is not code.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kvrm_a64::decode;
use kvrm_mem::{PAGE, Permissions};

use super::DecodedCode;
use crate::EngineError;
use crate::kernel::{FIRST_HANDLER, Wanted};
use crate::memory::DeviceMemory;

/// Words in a run, at the least. Of random words, about two in five are instructions; of text, more.
const RUN: usize = 24;
/// Pages that are looked at, at the most, and how far these may be from one with code.
const PAGES: usize = 256;
const GAP: u64 = 2;
/// Shapes that are looked at, the most frequent first: to find what handler one wants takes a while.
const SHAPES: usize = 192;

impl DecodedCode {
    /// The handlers that words want which are probably code, near to what is decoded.
    pub(crate) fn sweep(&mut self, memory: &impl DeviceMemory) -> Result<Wanted, EngineError> {
        let mut shapes: BTreeMap<(usize, usize), (u32, u64)> = BTreeMap::new();
        let (mut seen, mut pending) = (BTreeSet::new(), VecDeque::new());
        pending.extend(self.pages.keys().copied());
        let mut bytes = vec![0; PAGE as usize];
        while let Some(page) = pending.pop_front().filter(|_| seen.len() < PAGES) {
            if !seen.insert(page) || !may_have_code(memory, page) {
                continue;
            }
            memory.read_common_page(page, &mut bytes)?;
            let words: Vec<u32> = bytes
                .chunks_exact(4)
                .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
                .collect();
            let runs = runs(&words);
            if !runs.is_empty() || self.pages.contains_key(&page) {
                let near = page.saturating_sub(GAP)..=page + GAP;
                pending.extend(near.filter(|near| !seen.contains(near)));
            }
            for (shape, word) in runs.into_iter().flatten() {
                shapes.entry(shape).or_insert((word, 0)).1 += 1;
            }
        }
        let mut wanted = Wanted::default();
        let mut shapes: Vec<(u32, u64)> = shapes.into_values().collect();
        shapes.sort_by_key(|(word, times)| (Reverse(*times), *word));
        for (word, times) in shapes.into_iter().take(SHAPES) {
            if let Some(handler) =
                self.handlers.record(0, word).handler().checked_sub(FIRST_HANDLER)
            {
                wanted.add(handler, times);
            }
        }
        Ok(wanted)
    }
}

fn may_have_code(memory: &impl DeviceMemory, page: u64) -> bool {
    match memory.map().filter(|_| memory.is_private()) {
        Some(map) => map.common_permissions(page).contains(Permissions::EXECUTE),
        None => memory.probe_fetch(0, page * PAGE).is_ok(),
    }
}

/// A word's shape, and the word.
type Shaped = ((usize, usize), u32);

/// The runs of words that are probably code, with the shapes of these.
fn runs(words: &[u32]) -> Vec<Vec<Shaped>> {
    let shaped = |word: &u32| {
        // (UDF, which is what there is where there is nothing, is a row like others.)
        let row = decode(*word).filter(|_| word >> 16 != 0)?;
        Some(((row.index, row.shape(*word)), *word))
    };
    let shaped: Vec<Option<Shaped>> = words.iter().map(shaped).collect();
    let runs = shaped.split(Option::is_none).map(|run| run.iter().copied().flatten().collect());
    runs.filter(|run: &Vec<Shaped>| is_code(run)).collect()
}

/// True if it is not text, of which most words are instructions, but none has the highest bit.
fn is_code(run: &[Shaped]) -> bool {
    let high = run.iter().filter(|(_, word)| word >> 31 != 0).count();
    run.len() >= RUN && 8 * high >= run.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::AHEAD;
    use crate::memory::tests::Fake;

    const BR: u32 = 0xd61f_0020;
    const ADD: u32 = 0x9100_0421;
    const MUL: u32 = 0x9b02_7c20;
    const LDR: u32 = 0xf940_0020;

    /// What is found near to an entry at the beginning, in pages that begin with some words.
    fn swept(pages: &[&[u32]]) -> Vec<u32> {
        let mut bytes = vec![0; pages.len() * PAGE as usize];
        for (words, page) in pages.iter().zip(bytes.chunks_exact_mut(PAGE as usize)) {
            let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            page[..words.len()].copy_from_slice(&words);
        }
        let (mut memory, mut code) = (Fake::with(true, 1, bytes), DecodedCode::new());
        assert_eq!(code.find(&mut memory, 0, 0, &mut { AHEAD }).unwrap(), None);
        let wanted = code.sweep(&memory).unwrap();
        let words = code.handlers.words(&crate::kernel::Selection::new(wanted.by_frequency()));
        words.into_iter().map(|word| word & 0xff00_0000).collect()
    }

    fn times(word: u32, times: usize) -> Vec<u32> {
        vec![word; times]
    }

    #[test]
    fn code_behind_computed_branches_is_found() {
        let entry = [BR]
            .into_iter()
            .chain(times(MUL, 30))
            .chain([0])
            .chain(times(LDR, 10))
            .collect::<Vec<u32>>();
        let next = [times(ADD, 40)].concat();
        let found = swept(&[&entry, &next, &[], &[], &[], &times(LDR, 100)]);
        // LDR is in a run that is too short, and too far away.
        assert_eq!(found, [ADD, MUL, BR].map(|word| word & 0xff00_0000));
    }

    #[test]
    fn data_is_not_taken_for_code() {
        let text = include_bytes!("../../Cargo.toml").repeat(8);
        let text: Vec<u32> = text
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .take(1024)
            .collect();
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 32) as u32
        };
        let random: Vec<u32> = (0..1024).map(|_| random()).collect();
        let numbers: Vec<u32> = (0..1024).collect();
        let doubles: Vec<u32> = (0..512)
            .flat_map(|n| (f64::from(n) / 3.0).to_bits().to_le_bytes())
            .collect::<Vec<u8>>()
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        for data in [text, random, numbers, doubles] {
            assert_eq!(runs(&data).first().map(|run| run.len()), None, "{:x?}", &data[..8]);
        }
    }
}
