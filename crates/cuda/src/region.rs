//! From regions of translated code to PTX: blocks, what they are charged, and where they go.
//!
//! A block begins at a label that a record, or another block, leads to. In translated code, the lane's registers are
//! registers of the kernel (`%g0l` and `%g0h` and so on, `%v0l` and so on), the program counter is where control is, and `%left` says
//! how much of the chunk is left, in bytes of records. A block is entered only if as much is left as it has
//! instructions, and takes them all at once.
//!
//! An instruction that needs more than the usual *leaves*: it gives back itself and those after it, and its ordinary
//! handler executes it, or finds out why it cannot. It has not done anything then, because routines check before they
//! write. So there is one version of whatever is seldom executed, and translated code is small.
//!
//! Blocks go on to others directly as long as all lanes of the warp that can run are together and agree. Otherwise
//! lanes [gather](crate::gather), as they do after branches that are interpreted. In mapped memory, the records of code
//! that is elsewhere may be elsewhere, too, so blocks there are entered through their records. Where a branch skips no more than a
//! few simple instructions, lanes execute or skip them, and stay together.

use std::collections::BTreeSet;
use std::fmt::Write;

use kvrm_a64::state::X;
use kvrm_engine::kernel::Record;
use kvrm_engine::translation::{Kept, Room, Translated, Translation, Way};
use kvrm_ir::{File, Routine, Value};
use kvrm_translate::{Block, End, Goto, Region};

use crate::emit::{Emitter, Setting, ptx};
use crate::kernel::RECORD;
use crate::memory::BLOCK_BITS;

/// What is kept in registers. A thread has 64 registers of half the width, and what does not fit the assembler would choose.
const ROOM: Room = Room { general: 22, halves: 16 };

/// Where an instruction of translated code is.
pub(crate) struct Position<'a> {
    /// Where it leaves to.
    label: String,
    /// Some code goes there.
    leaves: bool,
    /// Instructions of the block from this one on.
    rest: u32,
    kept: &'a Kept,
}

/// The registers of the kernel that are kept, as pairs, and where in memory they are when code is interpreted.
fn registers(kept: &Kept) -> impl Iterator<Item = (String, String)> {
    let of = |class: char, array: &'static str, slots: &BTreeSet<u64>| {
        let register = |slot: &u64| (pair(class, *slot), format!("[{array}+{}]", 8 * slot));
        slots.iter().map(register).collect::<Vec<_>>()
    };
    of('g', "regs", &kept.general).into_iter().chain(of('v', "vregs", &kept.halves))
}

/// Declares them, and makes them zero.
pub(crate) fn declare_kept(out: &mut String, kept: &Kept) {
    for (register, _) in registers(kept) {
        let [low, high] = register.trim_matches(['{', '}']).split(", ").collect::<Vec<_>>()[..]
        else {
            unreachable!("a pair")
        };
        let _ =
            write!(out, "\t.reg .b32 {low}, {high};\n\tmov.b32 {low}, 0;\n\tmov.b32 {high}, 0;\n");
    }
}

/// Loads them, before code is translated.
pub(crate) fn load_kept(out: &mut String, kept: &Kept) {
    for (register, at) in registers(kept) {
        let _ = writeln!(out, "\tld.local.v2.b32 {register}, {at};");
    }
}

/// Stores them, before code is interpreted.
pub(crate) fn store_kept(out: &mut String, kept: &Kept) {
    for (register, at) in registers(kept) {
        let _ = writeln!(out, "\tst.local.v2.b32 {at}, {register};");
    }
}

/// The registers of the kernel that have a slot: each a half. As one of 64 bits, `ptxas` 12.9 and the driver's compiler lose
/// the lower half where a block changes only the upper one.
fn pair(class: char, slot: u64) -> String {
    format!("{{%{class}{slot}l, %{class}{slot}h}}")
}

impl Emitter<'_> {
    /// Code to be placed after the handler, at a label of its own; in translated code, where the instruction leaves.
    pub(crate) fn elsewhere(&mut self, write: impl FnOnce(&mut Self)) -> String {
        match self.position {
            Some(_) => self.leave(),
            None => self.cold(write),
        }
    }

    /// Where an instruction of translated code leaves to.
    pub(crate) fn leave(&mut self) -> String {
        let position = self.position.as_mut().expect("the code is translated");
        position.leaves = true;
        position.label.clone()
    }

    /// True if a slot is in a register of the kernel.
    pub(crate) fn is_kept(&self, file: File, index: Value) -> bool {
        self.position.as_ref().is_some_and(|position| {
            let slot = self.routine.constant(index).expect("slots are known in translated code");
            position.kept.has(file, slot)
        })
    }

    /// The registers of the kernel that have a slot, as a pair.
    pub(crate) fn kept(&self, file: File, index: Value) -> String {
        let slot = self.routine.constant(index).expect("slots are known in translated code");
        pair(if file.id == X.id { 'g' } else { 'v' }, slot)
    }

    /// Instructions that the lane has completed before this one of a block.
    pub(crate) fn count_in_block(&mut self, d: &str) {
        let rest = self.position.as_ref().expect("it is in a block").rest;
        let (left, t) = (self.temp_r(), self.temp_d());
        ptx!(self, "shr.u32 {left}, %left, {};", RECORD.ilog2());
        ptx!(self, "add.u32 {left}, {left}, {rest};");
        ptx!(self, "cvt.u64.u32 {t}, {left};");
        ptx!(self, "sub.u64 {d}, %count_base, {t};");
    }
}

/// All blocks of a translation.
pub(crate) struct Blocks<'a> {
    translation: &'a Translation,
    record: &'a dyn Fn(u64) -> Record,
    setting: &'a Setting,
    pub(crate) kept: Kept,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(translated: Translated<'a>, setting: &'a Setting) -> Blocks<'a> {
        let Translated { translation, record } = translated;
        Blocks { translation, record, setting, kept: Kept::of(translation, ROOM) }
    }

    /// The labels where blocks begin, by number.
    pub(crate) fn labels(&self) -> Vec<String> {
        (0..self.translation.blocks() as u32).map(|number| format!("B{number}")).collect()
    }

    /// Writes all blocks.
    pub(crate) fn write(&self, out: &mut String) {
        for (number, region) in self.translation.regions().iter().enumerate() {
            self.region(out, number, region);
        }
    }

    fn region(&self, out: &mut String, number: usize, region: &Region) {
        let routine = Routine {
            values: region.values.clone(),
            places: region.places.clone(),
            ..Routine::default()
        };
        let mut body = String::new();
        let mut e = Emitter::new(&mut body, self.setting, &routine);
        e.tag = format!("{number}_");
        for (block, in_region) in self.translation.blocks_of(number) {
            let pc = region.blocks[in_region].pc;
            BlockWriter { blocks: self, region, number: block, pc }
                .write(&mut e, &region.blocks[in_region]);
        }
        let (registers, cold) = (e.registers(), std::mem::take(&mut e.cold));
        out.push_str(&registers);
        out.push_str(&body);
        out.push_str(&cold);
    }
}

/// Writes one block.
struct BlockWriter<'a> {
    blocks: &'a Blocks<'a>,
    region: &'a Region,
    number: u32,
    /// Where it begins.
    pc: u64,
}

impl<'a> BlockWriter<'a> {
    fn write<'b>(&self, e: &mut Emitter<'b>, block: &Block)
    where
        'a: 'b,
    {
        let (number, len) = (self.number, block.insns.len() as u32);
        let bytes = len * RECORD as u32;
        let _ = writeln!(e.out, "B{number}: // {:#x}", block.pc);
        ptx!(e, "setp.lt.u32 %q0, %left, {bytes};");
        ptx!(e, "@%q0 bra S{number};");
        ptx!(e, "sub.u32 %left, %left, {bytes};");
        e.position = Some(self.position(0, len));
        e.stmts(&block.head);
        for (index, insn) in (0..).zip(&block.insns) {
            e.position = Some(self.position(index, len - index));
            e.stmts(&insn.stmts);
            self.leaving(e, index, len - index, insn.pc);
        }
        e.stmts(&block.tail);
        self.end(e, block);
        self.too_short(e, block.pc);
        e.position = None;
    }

    fn position(&self, index: u32, rest: u32) -> Position<'a> {
        let label = format!("X{}_{index}", self.number);
        Position { label, leaves: false, rest, kept: &self.blocks.kept }
    }

    /// Writes where an instruction leaves to, if it may.
    fn leaving(&self, e: &mut Emitter<'_>, index: u32, rest: u32, pc: u64) {
        let position = e.position.as_ref().expect("it is in a block");
        if !position.leaves {
            return;
        }
        let (label, back) = (&position.label, rest * RECORD as u32);
        let _ = write!(e.cold, "{label}:\n\tadd.u32 %left, %left, {back};\n");
        let _ = match index {
            0 => writeln!(e.cold, "\tbra S{};", self.number),
            _ => write!(e.cold, "\tmov.b32 %at, {:#x};\n\tbra INTERPRET;\n", record_offset(pc)),
        };
    }

    /// Where less is left than the block has instructions, or the first one leaves: that one is interpreted. Its record
    /// leads here, so what the record would be otherwise is written here.
    fn too_short(&self, e: &mut Emitter<'_>, pc: u64) {
        let Record(words) = (self.blocks.record)(pc);
        let _ = writeln!(e.cold, "S{}:", self.number);
        for (index, word) in words.into_iter().enumerate() {
            let _ = writeln!(e.cold, "\tmov.b32 %w{index}, {word:#x};");
        }
        let _ = write!(e.cold, "\tmov.b32 %at, {:#x};\n\tbra FIRST;\n", record_offset(pc));
    }

    // Where control goes.

    fn way(&self, goto: Goto) -> Way {
        let way = self.blocks.translation.way(self.region, goto);
        Way { block: way.block.filter(|_| self.has_same_records(way.pc)), ..way }
    }

    /// True if the records of code at an address are where this block's are, so that it may go on to a block there directly.
    fn has_same_records(&self, pc: u64) -> bool {
        !self.blocks.setting.memory.mapped || pc >> BLOCK_BITS == self.pc >> BLOCK_BITS
    }

    fn end<'b>(&self, e: &mut Emitter<'b>, block: &Block)
    where
        'a: 'b,
    {
        match &block.end {
            End::Jump(goto) => self.jump(e, block, &self.way(*goto)),
            End::Branch { cond, taken, otherwise } => {
                let cond = e.get(*cond);
                let ways = [*taken, *otherwise];
                if !self.short_branch(e, &cond, ways) {
                    self.branch(e, &cond, &ways.map(|goto| self.way(goto)));
                }
            }
            End::Indirect { target, sites } => {
                let target = e.get(*target);
                self.indirect(e, &target, sites);
            }
            End::Stop { .. } | End::Undefined(_) | End::Done(_) => {
                unreachable!("what stops lanes is not translated")
            }
        }
    }

    /// Goes on at one address. A way back is one that other lanes may be waiting at the end of.
    fn jump(&self, e: &mut Emitter<'_>, block: &Block, way: &Way) {
        let follows = block.insns.last().is_some_and(|last| last.pc.wrapping_add(4) == way.pc);
        match way.block {
            Some(next) if follows => ptx!(e, "bra B{next};"),
            _ => self.go_on(e, way),
        }
    }

    /// Goes on in a block if all lanes are here that are together, or else to where they gather.
    fn go_on(&self, e: &mut Emitter<'_>, way: &Way) {
        if let Some(next) = way.block {
            ptx!(e, "activemask.b32 %s8;");
            ptx!(e, "setp.eq.u32 %q0, %s8, %full;");
            ptx!(e, "@%q0 bra B{next};");
        }
        self.gather(e, way.pc, way.block.is_some());
    }

    /// Goes to where lanes gather, to go on at an address.
    fn gather(&self, e: &mut Emitter<'_>, pc: u64, has_block: bool) {
        ptx!(e, "mov.b32 %at, {:#x};", record_offset(pc));
        ptx!(e, "bra {};", if has_block { "GATHER_AT" } else { "BRANCHED_AT" });
    }

    /// Goes one of two ways, directly if all lanes go there.
    fn branch(&self, e: &mut Emitter<'_>, cond: &str, ways: &[Way; 2]) {
        let taken = e.label();
        ptx!(e, "@{cond} bra {taken};");
        self.go_on(e, &ways[1]);
        let _ = writeln!(e.out, "{taken}:");
        self.go_on(e, &ways[0]);
    }

    /// Goes to a computed address, directly if it is the one that all lanes are expected to go to.
    fn indirect(&self, e: &mut Emitter<'_>, target: &str, sites: &[(u64, usize)]) {
        let near = sites.iter().filter(|(pc, _)| self.has_same_records(*pc));
        let known = near.filter_map(|(pc, _)| Some((pc, self.blocks.translation.block_at(*pc)?)));
        let known: Vec<(&u64, u32)> = known.collect();
        if !known.is_empty() {
            let apart = e.label();
            ptx!(e, "activemask.b32 %s8;");
            ptx!(e, "setp.ne.u32 %q0, %s8, %full;");
            ptx!(e, "@%q0 bra {apart};");
            for (pc, next) in known {
                ptx!(e, "setp.eq.u64 %q0, {target}, {pc:#x};");
                ptx!(e, "vote.sync.all.pred %q1, %q0, %full;");
                ptx!(e, "@%q1 bra B{next};");
            }
            let _ = writeln!(e.out, "{apart}:");
        }
        ptx!(e, "mov.b64 %target, {target};");
        ptx!(e, "bra BRANCH_FROM_BLOCK;");
    }

    // Branches over a few instructions.

    /// Writes a branch whose ways come together again after a few simple instructions. False if it is not one.
    fn short_branch<'b>(&self, e: &mut Emitter<'b>, cond: &str, ways: [Goto; 2]) -> bool
    where
        'a: 'b,
    {
        let short = self.blocks.translation.short_branch(self.region, ways);
        let Some(short) = short.filter(|short| self.has_same_records(short.pc)) else {
            return false;
        };
        let bytes = short.lengths().map(|len| len * RECORD as u32);
        let (too_short, first, end) = (e.label(), e.label(), e.label());
        ptx!(e, "setp.lt.u32 %q0, %left, {};", bytes[0].max(bytes[1]));
        ptx!(e, "@%q0 bra {too_short};");
        ptx!(e, "selp.b32 %s8, {}, {}, {cond};", bytes[0], bytes[1]);
        ptx!(e, "sub.u32 %left, %left, %s8;");
        ptx!(e, "@{cond} bra {first};");
        self.arm(e, short.arms[1]);
        ptx!(e, "bra {end};");
        let _ = writeln!(e.out, "{first}:");
        self.arm(e, short.arms[0]);
        let _ = writeln!(e.out, "{end}:");
        ptx!(e, "activemask.b32 %s8;");
        ptx!(e, "setp.eq.u32 %q0, %s8, %full;");
        ptx!(e, "@%q0 bra B{};", short.block);
        self.gather(e, short.pc, true);
        let _ = writeln!(e.out, "{too_short}:");
        self.branch(e, cond, &ways.map(|goto| self.way(goto)));
        true
    }

    fn arm<'b>(&self, e: &mut Emitter<'b>, arm: Option<&Block>)
    where
        'a: 'b,
    {
        let Some(arm) = arm else { return };
        e.stmts(&arm.head);
        arm.insns.iter().for_each(|insn| e.stmts(&insn.stmts));
        e.stmts(&arm.tail);
    }
}

/// The address of an instruction's record, less `%bias`.
fn record_offset(pc: u64) -> u32 {
    (pc as u32).wrapping_mul(RECORD as u32 / 4)
}
