//! What is decoded before lanes get there.

use std::collections::{HashMap, VecDeque};

use kvrm_a64::flow;
use kvrm_mem::PAGE;

/// The code that is reached from some entries by direct branches, through calls and after stops the lane may
/// resume from, as addresses and words: what is nearest first, and no more than `most` instructions. `fetch` gives
/// the words, or `None` where there are none or none are wanted.
pub fn reachable(
    entries: impl IntoIterator<Item = u64>,
    most: usize,
    mut fetch: impl FnMut(u64) -> Option<u32>,
) -> Vec<(u64, u32)> {
    let (mut seen, mut code) = (Seen::default(), Vec::new());
    let mut pending: VecDeque<u64> = entries.into_iter().collect();
    while let Some(pc) = pending.pop_front().filter(|_| code.len() < most) {
        if !seen.insert(pc) {
            continue;
        }
        let Some(word) = fetch(pc) else { continue };
        code.push((pc, word));
        pending.extend(flow(word, pc).successors(pc));
    }
    code
}

/// Addresses of words, a bit for each.
#[derive(Default)]
struct Seen {
    pages: HashMap<u64, [u64; (PAGE / 4 / 64) as usize]>,
}

impl Seen {
    /// False if it was there before. Addresses that are no multiple of four are nobody's.
    fn insert(&mut self, pc: u64) -> bool {
        let (word, bit) = ((pc % PAGE / 4 / 64) as usize, 1 << (pc / 4 % 64));
        let words = &mut self.pages.entry(pc / PAGE).or_default()[word];
        let new = *words & bit == 0;
        *words |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0xd503_201f;

    #[test]
    fn no_more_is_found_than_asked_for_and_the_nearest_first() {
        // A branch to 0x4000, and no-operations everywhere else.
        let fetch = |at| Some(if at == 0 { 0x1400_1000 } else { NOP });
        let found = reachable([0], 100, fetch);
        assert_eq!(found.len(), 100);
        assert_eq!(found[1].0, 0x4000);
        assert!(found[1..].iter().zip(0x4000 / 4..).all(|((at, _), n)| *at == 4 * n));
    }

    #[test]
    fn calls_return_and_system_calls_resume() {
        // bl 0x100; svc #0; b.eq 0x200; hlt #0; and a return at the two other places.
        let code = [0x9400_0040, 0xd400_0001, 0x5400_0fc0, 0xd440_0000];
        let fetch = |at: u64| match at {
            0x100 | 0x200 => Some(0xd65f_03c0),
            _ => code.get(at as usize / 4).copied(),
        };
        let mut found: Vec<u64> =
            reachable([0], 100, fetch).into_iter().map(|(at, _)| at).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 4, 8, 12, 0x100, 0x200]);
    }
}
