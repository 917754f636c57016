//! Finding the code that is translated together.
//!
//! A *region* is what direct branches reach from an entry, up to a number of instructions: usually a
//! function's loops and the small functions they call. Inside it, guest registers live in host
//! registers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use kvrm_a64::{decode, translated_form};
use kvrm_engine::flow::{Flow, flow, is_call};
use kvrm_ir::Routine;

/// Instructions in a region at the most.
const REGION_LIMIT: usize = 256;
/// Instructions in a block at the most, so that the remainder of a run's limit stays short.
const BLOCK_LIMIT: usize = 128;

/// An instruction of a region.
pub(crate) struct Insn {
    pub(crate) pc: u64,
    pub(crate) body: Body,
    pub(crate) flow: Flow,
}

/// What a word means.
pub(crate) enum Body {
    Routine(Routine),
    Undefined(u32),
}

/// Instructions that follow one another, entered only at the first.
pub(crate) struct Block {
    pub(crate) insns: Vec<Insn>,
    /// Where control goes after the last instruction if it does not branch.
    pub(crate) next: u64,
}

/// Code to translate together.
pub(crate) struct Region {
    pub(crate) entry: u64,
    pub(crate) blocks: BTreeMap<u64, Block>,
    /// Addresses after calls in the region: likely targets of its returns.
    pub(crate) return_sites: Vec<u64>,
}

impl Region {
    /// Finds the region at `entry`, which is known to be fetchable. `fetch` gives the word at an
    /// address, or `None` where a region must end.
    pub(crate) fn find(entry: u64, fetch: impl Fn(u64) -> Option<u32>) -> Region {
        Finder::new(entry, REGION_LIMIT).find(entry, fetch)
    }

    /// The first `len` instructions of the block at `entry`: no branch is among them but the last.
    pub(crate) fn straight(entry: u64, len: usize, fetch: impl Fn(u64) -> Option<u32>) -> Region {
        let words = (0..len as u64).map_while(|i| Some((entry + 4 * i, fetch(entry + 4 * i)?)));
        let insns: Vec<Insn> = words.map(|(pc, word)| Insn::new(pc, word)).collect();
        let next = entry + 4 * insns.len() as u64;
        let blocks = BTreeMap::from([(entry, Block { insns, next })]);
        Region { entry, blocks, return_sites: Vec::new() }
    }

    /// Addresses of all instructions.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.values().flat_map(|block| block.insns.iter().map(|insn| insn.pc))
    }
}

impl Insn {
    fn new(pc: u64, word: u32) -> Insn {
        match decode(word) {
            None => Insn { pc, body: Body::Undefined(word), flow: Flow::Stop },
            Some(row) => {
                let routine = translated_form(row, word, pc);
                let flow = flow(&routine);
                Insn { pc, body: Body::Routine(routine), flow }
            }
        }
    }

    fn is_call(&self) -> bool {
        matches!(&self.body, Body::Routine(routine) if is_call(routine, &self.flow, self.pc))
    }
}

/// The search: first which instructions belong, then where blocks begin.
struct Finder {
    insns: BTreeMap<u64, Insn>,
    leaders: BTreeSet<u64>,
    pending: VecDeque<u64>,
    return_sites: Vec<u64>,
    limit: usize,
}

impl Finder {
    fn new(entry: u64, limit: usize) -> Finder {
        Finder {
            insns: BTreeMap::new(),
            leaders: BTreeSet::new(),
            pending: VecDeque::from([entry]),
            return_sites: Vec::new(),
            limit,
        }
    }

    fn find(mut self, entry: u64, fetch: impl Fn(u64) -> Option<u32>) -> Region {
        while let Some(leader) = self.pending.pop_front() {
            self.walk(leader, &fetch);
        }
        self.return_sites.retain(|pc| self.insns.contains_key(pc));
        Region {
            entry,
            blocks: self.blocks(),
            return_sites: std::mem::take(&mut self.return_sites),
        }
    }

    /// Adds instructions from a leader on, until control branches.
    fn walk(&mut self, leader: u64, fetch: &impl Fn(u64) -> Option<u32>) {
        self.leaders.insert(leader);
        let mut pc = leader;
        while !self.insns.contains_key(&pc) && self.insns.len() < self.limit {
            let Some(word) = fetch(pc) else { return };
            let insn = Insn::new(pc, word);
            let (flow, successors) = (insn.flow.clone(), insn.flow.successors(pc));
            if insn.is_call() {
                self.return_sites.push(pc.wrapping_add(4));
                self.pending.push_back(pc.wrapping_add(4));
            }
            self.insns.insert(pc, insn);
            if flow != Flow::Next {
                self.pending.extend(successors);
                return;
            }
            pc = pc.wrapping_add(4);
        }
        self.leaders.insert(pc);
    }

    fn blocks(&mut self) -> BTreeMap<u64, Block> {
        let mut blocks = BTreeMap::new();
        let mut current: Option<(u64, Block)> = None;
        for (pc, insn) in std::mem::take(&mut self.insns) {
            let starts = match &current {
                None => true,
                Some((_, block)) => {
                    block.next != pc
                        || self.leaders.contains(&pc)
                        || block.insns.len() == BLOCK_LIMIT
                        || block.insns.last().is_some_and(|last| last.flow != Flow::Next)
                }
            };
            if starts {
                blocks.extend(current.take());
                current = Some((pc, Block { insns: Vec::new(), next: pc }));
            }
            let (_, block) = current.as_mut().expect("set above");
            block.insns.push(insn);
            block.next = pc.wrapping_add(4);
        }
        blocks.extend(current);
        blocks
    }
}
