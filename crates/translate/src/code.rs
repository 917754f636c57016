//! The words that are translated together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kvrm_a64::{Flow, flow};

/// Instructions in a region at the most.
const REGION_LIMIT: usize = 256;
/// Blocks in a region at the most: what they cost grows faster than their number.
const REGION_BLOCKS: usize = 28;
/// Instructions in a block at the most, so that the remainder of a run's limit stays short.
const BLOCK_LIMIT: usize = 128;

/// How control comes to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the instruction before it.
    On,
    /// By a branch, or because one was not taken.
    Branch,
    /// By a call.
    Call,
}

/// Words by address, and where blocks begin: what direct branches reach from an entry, up to a number of
/// instructions. Usually that is a function's loops and the small functions they call.
#[derive(Debug)]
pub struct GuestCode {
    /// Where it is entered.
    pub entry: u64,
    pub(crate) words: BTreeMap<u64, u32>,
    pub(crate) leaders: BTreeSet<u64>,
    /// Addresses after calls: likely targets of returns.
    pub(crate) return_sites: Vec<u64>,
    /// Control ends after the last word, which is not a branch.
    pub(crate) is_straight: bool,
    /// Leaders that were walked from.
    walked: usize,
    /// Where it ends between two instructions, because there were enough.
    pub cuts: Vec<u64>,
}

impl GuestCode {
    /// Finds the code at `entry`, where there is a word. `fetch` gives the word at an address, or `None` where
    /// a region must end. `follows` says whether to go on at an address where control comes in some way.
    pub fn find(
        entry: u64,
        fetch: impl Fn(u64) -> Option<u32>,
        follows: impl Fn(Way, u64) -> bool,
    ) -> GuestCode {
        let mut code = GuestCode::empty(entry, false);
        let mut pending = VecDeque::from([entry]);
        while let Some(leader) = pending.pop_front() {
            code.walk(leader, &fetch, &follows, &mut pending);
        }
        let GuestCode { words, return_sites, .. } = &mut code;
        return_sites.retain(|pc| words.contains_key(pc));
        code
    }

    /// The first `len` instructions from `entry` on, at the most, up to a branch.
    pub fn straight(entry: u64, len: usize, fetch: impl Fn(u64) -> Option<u32>) -> GuestCode {
        let mut code = GuestCode::empty(entry, true);
        for i in 0..len as u64 {
            let pc = entry.wrapping_add(4 * i);
            let Some(word) = fetch(pc) else { break };
            code.words.insert(pc, word);
            if !flow(word, pc).is_next() {
                break;
            }
        }
        code
    }

    fn empty(entry: u64, is_straight: bool) -> GuestCode {
        GuestCode {
            entry,
            words: BTreeMap::new(),
            leaders: BTreeSet::from([entry]),
            return_sites: Vec::new(),
            is_straight,
            walked: 0,
            cuts: Vec::new(),
        }
    }

    /// Also begins blocks at some addresses, where there are words.
    pub fn split_at(&mut self, leaders: impl Iterator<Item = u64>) {
        let GuestCode { words, leaders: all, .. } = self;
        all.extend(leaders.filter(|pc| words.contains_key(pc)));
    }

    /// The words, by address.
    pub fn words(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.words.iter().map(|(pc, word)| (*pc, *word))
    }

    /// Adds instructions from a leader on, until control branches.
    fn walk(
        &mut self,
        leader: u64,
        fetch: &impl Fn(u64) -> Option<u32>,
        follows: &impl Fn(Way, u64) -> bool,
        pending: &mut VecDeque<u64>,
    ) {
        if !self.words.contains_key(&leader) {
            if self.walked == REGION_BLOCKS {
                return;
            }
            self.walked += 1;
        }
        self.leaders.insert(leader);
        let mut pc = leader;
        while !self.words.contains_key(&pc) && self.words.len() < REGION_LIMIT {
            let Some(word) = fetch(pc) else { return };
            self.words.insert(pc, word);
            let next = pc.wrapping_add(4);
            let mut follow = |way, pc| {
                if follows(way, pc) {
                    pending.push_back(pc);
                }
            };
            match flow(word, pc) {
                Flow::Next if follows(Way::On, next) => {
                    pc = next;
                    continue;
                }
                Flow::Next => {}
                Flow::Jump { target, call: false } => follow(Way::Branch, target),
                Flow::Jump { target, call: true } => {
                    // Control returns only if it was followed.
                    if follows(Way::Call, target) {
                        self.return_sites.push(next);
                        pending.extend([next, target]);
                    }
                }
                Flow::Branch { target } => {
                    [next, target].into_iter().for_each(|pc| follow(Way::Branch, pc))
                }
                Flow::Indirect(_) | Flow::Stop { .. } => {}
            }
            return;
        }
        self.leaders.insert(pc);
        if pc != leader && !self.words.contains_key(&pc) {
            self.cuts.push(pc);
        }
    }

    /// The words of the block at `pc`, which may be entered there.
    pub(crate) fn block(&self, pc: u64) -> Vec<(u64, u32)> {
        let mut block = Vec::new();
        for (at, word) in self.words.range(pc..) {
            let follows = block.last().is_none_or(|(last, _)| last + 4 == *at);
            let splits = !block.is_empty() && self.leaders.contains(at);
            if !follows || splits || block.len() == BLOCK_LIMIT {
                break;
            }
            block.push((*at, *word));
            if !flow(*word, *at).is_next() {
                break;
            }
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program at 0x1000.
    fn program(words: &[u32]) -> impl Fn(u64) -> Option<u32> + '_ {
        |pc| words.get(pc.checked_sub(0x1000)? as usize / 4).copied()
    }

    #[test]
    fn a_loop_is_one_region_of_two_blocks() {
        // mov x0, #0; loop: add x0, x0, #1; subs x1, x1, #1; b.ne loop; hlt #0
        let words = [0xd2800000, 0x91000400, 0xf1000421, 0x54ffffc1, 0xd4400000];
        let code = GuestCode::find(0x1000, program(&words), |_, _| true);
        assert_eq!(code.words().count(), 5);
        assert_eq!(code.block(0x1000).len(), 1);
        assert_eq!(code.block(0x1004).len(), 3);
    }

    #[test]
    fn calls_are_followed_and_returned_from() {
        // bl +8; hlt #0; ret
        let code =
            GuestCode::find(0x1000, program(&[0x94000002, 0xd4400000, 0xd65f03c0]), |_, _| true);
        assert_eq!(code.return_sites, [0x1004]);
        assert_eq!(code.words().count(), 3);
    }

    #[test]
    fn straight_code_ends_at_a_branch() {
        let words = [0x91000400, 0x14000001, 0x91000400];
        assert_eq!(GuestCode::straight(0x1000, 3, program(&words)).words().count(), 2);
        assert_eq!(GuestCode::straight(0x1000, 1, program(&words)).words().count(), 1);
    }
}
