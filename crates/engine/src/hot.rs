//! Which code is worth translating: where lanes have been seen, and what is on the ways between such places.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use kvrm_a64::flow;
use kvrm_mem::PAGE;
use kvrm_translate::{GuestCode, Region};

use crate::EngineError;
use crate::code::{DecodedCode, reachable};
use crate::memory::DeviceMemory;
use crate::translation::{Means, Translation};

/// How many blocks there may be between two places where lanes have been seen, for these to be translated.
const BETWEEN: usize = 6;
/// Pages of code that are looked at, at the most, around where lanes have been seen.
const PAGES: usize = 64;

/// Where lanes have been seen, and how often.
pub(crate) type Samples = HashMap<u64, u32>;

/// Instructions that follow one another.
struct Block {
    words: Vec<(u64, u32)>,
    /// Where control may go on, as far as is known.
    next: Vec<u64>,
}

impl Block {
    /// The first instruction that is not among some.
    fn first_outside(&self, taken: &BTreeSet<u64>) -> Option<u64> {
        self.words.iter().map(|(pc, _)| *pc).find(|pc| !taken.contains(pc))
    }
}

/// Code that may be translated, in blocks by their first addresses.
struct Blocks(BTreeMap<u64, Block>);

/// Translates what is worth it, given where lanes have been seen; everything, if that is not asked. `None` if nothing is.
pub(crate) fn translate(
    code: &DecodedCode,
    memory: &impl DeviceMemory,
    samples: Option<&Samples>,
    means: Means,
) -> Result<Option<Translation>, EngineError> {
    let words = translatable(code, memory, samples, means)?;
    let blocks = Blocks::of(&words);
    let wanted = match samples {
        Some(samples) => blocks.worth_it(samples),
        None => blocks.0.keys().map(|head| (*head, 0)).collect(),
    };
    let regions = blocks.regions(&wanted, means);
    Ok((!regions.is_empty()).then(|| Translation::new(regions)))
}

/// The words near where lanes have been seen that may be translated; all such words, if that is not asked. All lanes have
/// them in common, or they would not be translatable.
fn translatable(
    code: &DecodedCode,
    memory: &impl DeviceMemory,
    samples: Option<&Samples>,
    means: Means,
) -> Result<BTreeMap<u64, u32>, EngineError> {
    let pages: Option<BTreeSet<u64>> = samples.map(|samples| {
        let mut sampled: Vec<(u32, u64)> =
            samples.iter().map(|(pc, count)| (*count, pc / PAGE)).collect();
        sampled.sort_unstable_by(|a, b| b.cmp(a));
        let mut pages = BTreeSet::new();
        for (_, page) in sampled {
            if pages.len() >= PAGES {
                break;
            }
            pages.extend(page.saturating_sub(1)..page + 2);
        }
        pages
    });
    let is_near = |pc: &u64| pages.as_ref().is_none_or(|pages| pages.contains(&(pc / PAGE)));
    let (mut words, mut number, mut page) = (BTreeMap::new(), None, vec![0; PAGE as usize]);
    for pc in code.decoded_addresses().filter(is_near) {
        if number != Some(pc / PAGE) {
            number = Some(pc / PAGE);
            memory.read_common_page(pc / PAGE, &mut page)?;
        }
        let at = (pc % PAGE) as usize;
        words.insert(pc, u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes")));
    }
    // What else is decoded depends on where lanes have been, and kernels should be the same in the next run.
    if let Some(samples) = samples {
        let from = samples.keys().copied();
        words = reachable(from, usize::MAX, |pc| words.get(&pc).copied()).into_iter().collect();
    }
    words.retain(|pc, _| code.is_translatable(*pc, means));
    Ok(words)
}

impl Blocks {
    fn of(words: &BTreeMap<u64, u32>) -> Blocks {
        let mut leaders = BTreeSet::new();
        let mut ends = BTreeMap::new();
        for (pc, word) in words {
            let flow = flow(*word, *pc);
            if !flow.is_next() {
                let next: Vec<u64> = flow.successors(*pc).collect();
                leaders.extend(next.iter().copied());
                leaders.insert(pc + 4);
                ends.insert(*pc, next);
            }
        }
        let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
        for (pc, word) in words {
            let goes_on = |block: &Block| {
                block.words.last().is_some_and(|(last, _)| last + 4 == *pc) && !leaders.contains(pc)
            };
            match blocks.last_entry().filter(|last| goes_on(last.get())) {
                Some(mut last) => last.get_mut().words.push((*pc, *word)),
                None => {
                    blocks.insert(*pc, Block { words: vec![(*pc, *word)], next: Vec::new() });
                }
            }
        }
        for block in blocks.values_mut() {
            let (last, _) = block.words.last().expect("blocks are not empty");
            block.next = ends.remove(last).unwrap_or_else(|| vec![last + 4]);
        }
        Blocks(blocks)
    }

    /// The first address of the block that has an instruction.
    fn head(&self, pc: u64) -> Option<u64> {
        let (head, block) = self.0.range(..=pc).next_back()?;
        (pc < head + 4 * block.words.len() as u64).then_some(*head)
    }

    /// Blocks where lanes have been seen, with how often that was, and those on short ways between them.
    fn worth_it(&self, samples: &Samples) -> BTreeMap<u64, u32> {
        let mut seen = BTreeMap::new();
        for (pc, count) in samples {
            if let Some(head) = self.head(*pc) {
                *seen.entry(head).or_insert(0) += count;
            }
        }
        let mut before: HashMap<u64, Vec<u64>> = HashMap::new();
        for (head, block) in &self.0 {
            block.next.iter().for_each(|next| before.entry(*next).or_default().push(*head));
        }
        let nothing = Vec::new();
        let after =
            distances(seen.keys(), |head| self.0.get(&head).map_or(&nothing, |block| &block.next));
        let back = distances(seen.keys(), |head| before.get(&head).unwrap_or(&nothing));
        for (head, distance) in after {
            let is_between = back.get(&head).is_some_and(|back| distance + back <= BETWEEN);
            if is_between && self.0.contains_key(&head) {
                seen.entry(head).or_insert(0);
            }
        }
        seen
    }

    /// Regions of the wanted blocks, the most important first, as long as there are not too many instructions.
    fn regions(&self, wanted: &BTreeMap<u64, u32>, means: Means) -> Vec<Region> {
        let mut order: Vec<(u32, u64)> =
            wanted.iter().map(|(head, count)| (*count, *head)).collect();
        order.sort_unstable_by_key(|(count, head)| (std::cmp::Reverse(*count), *head));
        let (mut taken, mut regions) = (BTreeSet::new(), Vec::new());
        for (_, head) in order {
            // A region may end within a block.
            while let Some(entry) =
                self.0[&head].first_outside(&taken).filter(|_| taken.len() < means.most)
            {
                let region = self.region(entry, wanted, &taken, means);
                taken.extend(
                    region.blocks.iter().flat_map(|block| &block.insns).map(|insn| insn.pc),
                );
                regions.push(region);
            }
        }
        regions
    }

    /// A region of wanted blocks that is entered at an address, and has no instruction that is taken.
    fn region(
        &self,
        entry: u64,
        wanted: &BTreeMap<u64, u32>,
        taken: &BTreeSet<u64>,
        means: Means,
    ) -> Region {
        let room = Cell::new(means.most - taken.len());
        let is_wanted = |pc: u64| {
            !taken.contains(&pc) && self.head(pc).is_some_and(|head| wanted.contains_key(&head))
        };
        let fetch = |pc: u64| {
            let left = room.get().checked_sub(1).filter(|_| is_wanted(pc))?;
            room.set(left);
            self.word(pc)
        };
        let mut code = GuestCode::find(entry, fetch, |_, pc| is_wanted(pc));
        code.split_at(self.0.keys().copied());
        Region::new(&code, means.lacks)
    }

    fn word(&self, pc: u64) -> Option<u32> {
        let head = self.head(pc)?;
        let (_, word) = self.0[&head].words[((pc - head) / 4) as usize];
        Some(word)
    }
}

/// How many steps it is to each block from the nearest of some, up to [`BETWEEN`].
fn distances<'a>(
    from: impl Iterator<Item = &'a u64>,
    next: impl Fn(u64) -> &'a Vec<u64>,
) -> HashMap<u64, usize> {
    let mut found: HashMap<u64, usize> = from.map(|head| (*head, 0)).collect();
    let mut pending: VecDeque<u64> = found.keys().copied().collect();
    while let Some(head) = pending.pop_front() {
        let distance = found[&head] + 1;
        for next in next(head).iter().filter(|_| distance <= BETWEEN) {
            if !found.contains_key(next) {
                found.insert(*next, distance);
                pending.push_back(*next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use kvrm_ir::legalise::Lacks;

    use super::*;

    const NOP: u32 = 0xd503_201f;
    /// `cbz x0` over the next instruction, and back to the one before.
    const OVER: u32 = 0xb400_0040;
    const BACK: u32 = 0xb4ff_ffe0;

    fn blocks(words: &[u32]) -> Blocks {
        Blocks::of(&(0..).step_by(4).zip(words.iter().copied()).collect())
    }

    const MEANS: Means = Means { lacks: Lacks::EVERYTHING, calls: true, most: 500 };

    fn addresses(regions: &[Region]) -> Vec<u64> {
        let insns = regions.iter().flat_map(|region| &region.blocks).flat_map(|block| &block.insns);
        let mut addresses: Vec<u64> = insns.map(|insn| insn.pc).collect();
        addresses.sort_unstable();
        addresses
    }

    #[test]
    fn blocks_begin_where_branches_go_and_after_them() {
        let blocks = blocks(&[NOP, OVER, NOP, NOP, BACK, NOP]);
        let heads: Vec<u64> = blocks.0.keys().copied().collect();
        assert_eq!(heads, [0, 8, 12, 20]);
        assert_eq!(blocks.0[&0].next, [8, 12]);
        assert_eq!(blocks.0[&8].next, [12]);
        assert_eq!((blocks.head(16), blocks.head(24)), (Some(12), None));
    }

    #[test]
    fn all_that_is_wanted_is_in_some_region_once() {
        // Longer than a region, and branches in between.
        let words: Vec<u32> = (0..400).map(|n| if n % 150 == 149 { OVER } else { NOP }).collect();
        let blocks = blocks(&words);
        let wanted = blocks.0.keys().map(|head| (*head, 0)).collect();
        let regions = blocks.regions(&wanted, MEANS);
        assert!(regions.len() > 1);
        assert_eq!(addresses(&regions), (0..400).map(|n| 4 * n).collect::<Vec<u64>>());
    }

    #[test]
    fn no_more_is_translated_than_there_is_room_for() {
        let blocks = blocks(&vec![NOP; 2 * MEANS.most]);
        let wanted = blocks.0.keys().map(|head| (*head, 0)).collect();
        assert_eq!(addresses(&blocks.regions(&wanted, MEANS)).len(), MEANS.most);
    }

    #[test]
    fn what_lies_between_places_where_lanes_were_is_worth_it() {
        // A loop of three blocks, and a block that nobody comes back from.
        let words = [NOP, OVER, NOP, NOP, 0xb4ff_ff80, NOP, NOP];
        let blocks = blocks(&words);
        let wanted = blocks.worth_it(&Samples::from([(12, 5), (4, 1)]));
        assert_eq!(wanted, BTreeMap::from([(0, 1), (8, 0), (12, 5)]));
        assert_eq!(blocks.worth_it(&Samples::from([(100, 5)])), BTreeMap::new());
    }
}
