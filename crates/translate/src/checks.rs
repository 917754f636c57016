//! Which accesses of a region are checked, and which by the check of another.
//!
//! Accesses to one base plus constants lie close together: the fields of a structure, the words of a stack frame, what an
//! unrolled loop reads. The first of them in a block is checked for all that follow there and lie near, as one [`Check::Span`],
//! and the others are [covered](Check::Covered). What a block has checked need not be checked in blocks that are only
//! reached through it, either.
//!
//! **Why that is exact.** A span is a question, not a fault: an engine that cannot let it pass executes the instruction alone,
//! as if it had not been translated, and goes on behind it in the same way. So an access that fails does so where it is, with
//! everything before it done. An access that is covered has no exit, so what only exits would have seen need not be kept.
//!
//! **What must not change** between a check and the accesses that it covers is its answer. All of them are in one region, and
//! whoever is asked something on the way, such as the engine by another check, may let more accesses pass but not fewer; an
//! engine for which that is not so has [`Limits`] that merge nothing.

use std::collections::HashMap;

use kvrm_a64::state::X;
use kvrm_ir::{Access, BinOp, Op, PlaceData, Stmt, Value, ValueData};

use crate::Block;

/// How a place is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// By itself.
    #[default]
    Own,
    /// Together with others: they lie in `len` bytes that begin `before` bytes before the place.
    Span {
        /// From the beginning of the bytes to that of the place.
        before: u64,
        /// How many bytes.
        len: u32,
        /// What is done with some of them; if they are written, they may be read, too.
        access: Access,
    },
    /// By the check of another place, before.
    Covered,
}

/// Bytes that one check may be for, at the most. With zero, every place is checked by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// If all of them are only read.
    pub reads: u32,
    /// If some of them are written.
    pub writes: u32,
}

/// How many dominating blocks are asked what they have checked: what lies further back is rarely the same base.
const DEPTH: usize = 8;

/// What addresses are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Root {
    /// Nothing: they are known.
    None,
    /// A register that the region does not write.
    Slot(u64),
    /// A value.
    Value(Value),
}

/// An address: a root and what is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    root: Root,
    offset: u64,
}

/// Bytes that may be accessed, by their distance from a root.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    start: u64,
    len: u64,
    written: bool,
}

impl Bytes {
    fn of(offset: u64, place: PlaceData) -> Bytes {
        Bytes { start: offset, len: place.len().into(), written: place.access != Access::Read }
    }

    fn covers(&self, other: &Bytes) -> bool {
        let begins = other.start.wrapping_sub(self.start);
        begins <= self.len && other.len <= self.len - begins && (self.written || !other.written)
    }

    /// Both, and what is between them.
    fn with(&self, other: &Bytes) -> Bytes {
        // Distances are small or negative: whichever begins first is less far from the end of the other.
        let ahead = other.start.wrapping_sub(self.start) as i64;
        let start = if ahead < 0 { other.start } else { self.start };
        let end = |bytes: &Bytes| bytes.start.wrapping_sub(start).wrapping_add(bytes.len);
        let len = end(self).max(end(other));
        Bytes { start, len, written: self.written || other.written }
    }

    fn fits(&self, limits: Limits) -> bool {
        let limit = if self.written { limits.writes } else { limits.reads };
        self.len <= limit.into()
    }
}

/// A place that is probed, not in an arm.
struct Probe {
    place: usize,
    root: Root,
    bytes: Bytes,
}

impl Probe {
    /// True if some check has been for it, too.
    fn is_covered(
        &self,
        checked: &[(Root, Bytes)],
        above: &[&(Root, Bytes)],
        limits: Limits,
    ) -> bool {
        let covers =
            |(root, bytes): &(Root, Bytes)| *root == self.root && bytes.covers(&self.bytes);
        self.bytes.fits(limits) && checked.iter().chain(above.iter().copied()).any(covers)
    }
}

/// What is known at the end of a block.
#[derive(Default)]
struct Known {
    /// Registers.
    registers: HashMap<u64, Address>,
    /// What the block has checked.
    checked: Vec<(Root, Bytes)>,
}

struct Merger<'a> {
    values: &'a [ValueData],
    places: &'a [PlaceData],
    limits: Limits,
    /// Registers that no block writes, a bit each.
    unwritten: u64,
    /// Where values are that are addresses with something added.
    addresses: HashMap<Value, Address>,
    checks: Vec<Check>,
}

/// Finds out how the places of blocks are checked.
pub(crate) fn merge(
    blocks: &[Block],
    values: &[ValueData],
    places: &[PlaceData],
    limits: Limits,
) -> Vec<Check> {
    if limits == Limits::default() {
        return Vec::new();
    }
    let mut merger = Merger {
        values,
        places,
        limits,
        unwritten: !written(blocks, values),
        addresses: HashMap::new(),
        checks: vec![Check::Own; places.len()],
    };
    let ways = Ways::of(blocks);
    let mut known: Vec<Known> = blocks.iter().map(|_| Known::default()).collect();
    for number in ways.order.iter().copied() {
        let before = ways.only(number).map(|before| known[before].registers.clone());
        let mut here = Known { registers: before.unwrap_or_default(), checked: Vec::new() };
        let probes = merger.probes(&blocks[number], &mut here.registers);
        let above = std::iter::successors(ways.dominator(number), |above| ways.dominator(*above));
        let above: Vec<&(Root, Bytes)> =
            above.take(DEPTH).flat_map(|above| &known[above].checked).collect();
        merger.decide(&probes, &above, &mut here.checked);
        known[number] = here;
    }
    merger.checks
}

/// The general registers that some block writes, a bit each.
fn written(blocks: &[Block], values: &[ValueData]) -> u64 {
    let mut written = 0;
    for stmt in blocks.iter().flat_map(Block::stmts) {
        crate::visit(stmt, &mut |stmt| {
            if let Op::WriteReg(X, slot, _) = stmt.op {
                written |= 1 << constant(values, slot);
            }
        });
    }
    written
}

fn constant(values: &[ValueData], slot: Value) -> u64 {
    values[slot.0 as usize].constant.expect("slots are known")
}

impl Merger<'_> {
    fn address(&self, value: Value) -> Address {
        match (self.values[value.0 as usize].constant, self.addresses.get(&value)) {
            (Some(offset), _) => Address { root: Root::None, offset },
            (None, Some(address)) => *address,
            (None, None) => Address { root: Root::Value(value), offset: 0 },
        }
    }

    /// The places that a block probes, and what its registers hold after it.
    fn probes(&mut self, block: &Block, registers: &mut HashMap<u64, Address>) -> Vec<Probe> {
        let mut probes = Vec::new();
        for stmt in block.stmts() {
            match &stmt.op {
                Op::ReadReg(X, slot) => {
                    let slot = constant(self.values, *slot);
                    let is_fixed = self.unwritten >> slot & 1 != 0;
                    let result = stmt.results[0];
                    let root = if is_fixed { Root::Slot(slot) } else { Root::Value(result) };
                    let address = registers.entry(slot).or_insert(Address { root, offset: 0 });
                    self.addresses.insert(result, *address);
                }
                Op::WriteReg(X, slot, value) => {
                    registers.insert(constant(self.values, *slot), self.address(*value));
                }
                Op::Binary(op, a, b) => {
                    if let Some(sum) = self.sum(*op, *a, *b) {
                        self.addresses.insert(stmt.results[0], sum);
                    }
                }
                Op::Probe { place, addr } => {
                    let Address { root, offset } = self.address(*addr);
                    let place = place.0 as usize;
                    probes.push(Probe {
                        place,
                        root,
                        bytes: Bytes::of(offset, self.places[place]),
                    });
                }
                Op::If { .. } => self.forget_written(stmt, registers),
                _ => {}
            }
        }
        probes
    }

    /// An address with a constant added.
    fn sum(&self, op: BinOp, a: Value, b: Value) -> Option<Address> {
        if self.values[a.0 as usize].ty != X.ty {
            return None;
        }
        let [x, y] = [a, b].map(|v| self.values[v.0 as usize].constant);
        let (base, more) = match (op, x, y) {
            (BinOp::Add, _, Some(more)) => (a, more),
            (BinOp::Add, Some(more), None) => (b, more),
            (BinOp::Sub, _, Some(less)) => (a, less.wrapping_neg()),
            _ => return None,
        };
        let Address { root, offset } = self.address(base);
        Some(Address { root, offset: offset.wrapping_add(more) })
    }

    /// What arms write is not known after them.
    fn forget_written(&self, stmt: &Stmt, registers: &mut HashMap<u64, Address>) {
        crate::visit(stmt, &mut |stmt| {
            if let Op::WriteReg(X, slot, _) = stmt.op {
                registers.remove(&constant(self.values, slot));
            }
        });
    }

    /// Decides for each probe of a block, given what blocks above have checked.
    fn decide(
        &mut self,
        probes: &[Probe],
        above: &[&(Root, Bytes)],
        checked: &mut Vec<(Root, Bytes)>,
    ) {
        let limits = self.limits;
        for (index, probe) in probes.iter().enumerate() {
            if probe.is_covered(checked, above, limits) {
                self.checks[probe.place] = Check::Covered;
                continue;
            }
            let mut span = probe.bytes;
            for later in &probes[index + 1..] {
                let both = span.with(&later.bytes);
                let fit = [probe.bytes, later.bytes, both].iter().all(|bytes| bytes.fits(limits));
                let is_near = later.root == probe.root && fit;
                if is_near && !later.is_covered(checked, above, limits) {
                    span = both;
                }
            }
            checked.push((probe.root, span));
            if span.len == probe.bytes.len && span.written == probe.bytes.written {
                continue;
            }
            self.checks[probe.place] = Check::Span {
                before: probe.bytes.start.wrapping_sub(span.start),
                len: span.len as u32,
                access: if span.written { Access::ReadWrite } else { Access::Read },
            };
        }
    }
}

/// How control gets from block to block.
struct Ways {
    /// The blocks that can be reached, each after those that dominate it, and after the only one before it.
    order: Vec<usize>,
    /// For every block those that go there.
    before: Vec<Vec<usize>>,
    /// For every block the closest of those that are on all ways to it; for the first itself.
    dominators: Vec<Option<usize>>,
}

impl Ways {
    fn of(blocks: &[Block]) -> Ways {
        let mut before = vec![Vec::new(); blocks.len()];
        for (number, block) in blocks.iter().enumerate() {
            block.end.for_each_next(|next| before[next].push(number));
        }
        let order = order(blocks);
        let dominators = dominators(&order, &before);
        Ways { order, before, dominators }
    }

    /// The block that goes there, if it is the only one. The first is also entered from outside.
    fn only(&self, block: usize) -> Option<usize> {
        match self.before[block][..] {
            [one] if block != 0 => Some(one),
            _ => None,
        }
    }

    fn dominator(&self, block: usize) -> Option<usize> {
        self.dominators[block].filter(|_| block != 0)
    }
}

/// Blocks that can be reached from the first, each before those that it goes to, but for ways back.
fn order(blocks: &[Block]) -> Vec<usize> {
    let (mut seen, mut order) = (vec![false; blocks.len()], Vec::new());
    // What comes next is visited before a block is done.
    let mut pending: Vec<(usize, bool)> =
        (!blocks.is_empty()).then_some((0, false)).into_iter().collect();
    while let Some((number, is_done)) = pending.pop() {
        if is_done {
            order.push(number);
        } else if !std::mem::replace(&mut seen[number], true) {
            pending.push((number, true));
            blocks[number].end.for_each_next(|next| pending.push((next, false)));
        }
    }
    order.reverse();
    order
}

/// The dominator of every block that can be reached (Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm").
fn dominators(order: &[usize], before: &[Vec<usize>]) -> Vec<Option<usize>> {
    let mut place = vec![usize::MAX; before.len()];
    order.iter().enumerate().for_each(|(at, block)| place[*block] = at);
    let mut found = vec![None; before.len()];
    if let Some(first) = order.first() {
        found[*first] = Some(*first);
    }
    let mut changes = true;
    while changes {
        changes = false;
        for block in order.iter().skip(1) {
            let reached = before[*block].iter().copied().filter(|before| found[*before].is_some());
            let closest = reached.reduce(|a, b| common(&found, &place, a, b));
            changes |= closest != found[*block];
            found[*block] = closest;
        }
    }
    found
}

/// The closest block that dominates both.
fn common(dominators: &[Option<usize>], place: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        let further = if place[a] > place[b] { &mut a } else { &mut b };
        *further = dominators[*further].expect("it was reached");
    }
    a
}

#[cfg(test)]
mod tests {
    use kvrm_ir::legalise::Lacks;

    use super::*;
    use crate::{GuestCode, Region};

    const LIMITS: Limits = Limits { reads: 512, writes: 512 };

    /// How the places of a program are checked, in the order in which the region has them.
    fn checks(words: &[u32], limits: Limits) -> Vec<Check> {
        let fetch = |pc: u64| words.get(pc as usize / 4).copied();
        let code = GuestCode::find(0, fetch, |_, _| true);
        let region = Region::merged(&code, Lacks::default(), limits);
        let mut checks = Vec::new();
        region.for_each_stmt(&mut |stmt| {
            if let Op::Probe { place, .. } = stmt.op {
                checks.push(region.check(place));
            }
        });
        checks
    }

    fn reads(before: u64, len: u32) -> Check {
        Check::Span { before, len, access: Access::Read }
    }

    fn writes(before: u64, len: u32) -> Check {
        Check::Span { before, len, access: Access::ReadWrite }
    }

    const RET: u32 = 0xd65f_03c0;
    /// `ldr x2, [x1, 8]`, `ldr x2, [x1, 16]`, `ldr x2, [x1, 504]`, `ldr x2, [x1, 512]`
    const LOADS: [u32; 4] = [0xf940_0422, 0xf940_0822, 0xf940_fc22, 0xf941_0022];
    /// `str x3, [x1]`, `str x3, [x1, 24]`
    const STORES: [u32; 2] = [0xf900_0023, 0xf900_0c23];
    /// `ldr x2, [x1], 8`, `str x3, [x1, -16]!`
    const MOVES: [u32; 2] = [0xf840_8422, 0xf81f_0c23];
    /// `mov x1, x4`
    const OTHER: u32 = 0xaa04_03e1;

    #[test]
    fn what_is_near_is_checked_together() {
        let found = checks(&[LOADS[0], LOADS[1], RET], LIMITS);
        assert_eq!(found, [reads(0, 16), Check::Covered]);
        let found = checks(&[LOADS[1], LOADS[0], RET], LIMITS);
        assert_eq!(found, [reads(8, 16), Check::Covered]);
        // The third is too far from the first, but not from what is near it.
        let limits = Limits { reads: 504, ..LIMITS };
        let found = checks(&[LOADS[0], LOADS[1], LOADS[3], LOADS[2], RET], limits);
        assert_eq!(found, [reads(0, 504), Check::Covered, Check::Own, Check::Covered]);
    }

    #[test]
    fn what_is_written_may_be_read_but_not_the_other_way_round() {
        let found = checks(&[LOADS[0], STORES[0], LOADS[1], RET], LIMITS);
        assert_eq!(found, [writes(8, 24), Check::Covered, Check::Covered]);
        let apart = Limits { writes: 0, ..LIMITS };
        let found = checks(&[STORES[0], LOADS[0], STORES[0], LOADS[1], RET], apart);
        assert_eq!(found, [Check::Own, reads(0, 16), Check::Own, Check::Covered]);
        assert_eq!(checks(&[LOADS[0], LOADS[0], RET], Limits::default()), [Check::Own; 2]);
    }

    #[test]
    fn bases_may_move_but_not_change() {
        // X1 is 8 further on, and then 16 less.
        let found = checks(&[MOVES[0], MOVES[1], LOADS[0], RET], LIMITS);
        assert_eq!(found, [writes(8, 16), Check::Covered, Check::Covered]);
        let found = checks(&[LOADS[0], OTHER, LOADS[0], LOADS[1], RET], LIMITS);
        assert_eq!(found, [Check::Own, reads(0, 16), Check::Covered]);
    }

    #[test]
    fn blocks_know_what_was_checked_on_all_ways_to_them() {
        // cbz x0, over the next instruction
        let skip = 0xb400_0040;
        let found = checks(&[LOADS[0], skip, LOADS[1], LOADS[0], LOADS[1], RET], LIMITS);
        let (own, covered) = (Check::Own, Check::Covered);
        let mut sorted = found.clone();
        sorted.sort_by_key(|check| *check == covered);
        // That of the block which may be left out, and those of the last block: one there is new.
        assert_eq!((sorted, found[0]), (vec![own, own, own, covered], own));
        // In a loop, x1 changes before it is used again: str x3, [x1]; add x1, x1, #8; cbz x0, back
        let again = [STORES[0], 0x9100_2021, 0xb4ff_ffc0, LOADS[0], RET];
        assert_eq!(checks(&again, LIMITS).iter().filter(|check| **check == covered).count(), 0);
    }

    #[test]
    fn dominators_are_found_whatever_the_order() {
        // 0 goes to 2 and 3, both to 1, 1 back to 3 and to 4.
        let before = [vec![], vec![2, 3], vec![0], vec![0, 1], vec![1]];
        let found = dominators(&[0, 3, 2, 1, 4], &before);
        assert_eq!(found, [Some(0), Some(0), Some(0), Some(0), Some(1)]);
    }
}
