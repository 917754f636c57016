//! From regions of translated code to WGSL: blocks, what they are charged, and where they go.
//!
//! Blocks are arms of a `switch` in a loop (blocks.wgsl), which goes on with the block of that number as long as all lanes
//! of the subgroup that can run are together and agree. Otherwise lanes gather, as they do after branches that are
//! interpreted. The record of an instruction with which a block begins says which block.
//!
//! In translated code, the lane's registers are variables of the function around the loop; the least used stay in the
//! register file. `fuel` is how much of the launch's share is left. A block is entered only if that is as much as it has
//! instructions, and takes them all at once.
//!
//! An instruction that needs more than the usual *leaves*: it gives back itself and those after it, and its ordinary
//! handler executes it, or finds out why it cannot. It has not done anything then, because routines check before they
//! write. Where a branch skips no more than a few simple instructions, lanes execute or skip them, and stay together.

use std::fmt::Write;

use kvrm_engine::kernel::Record;
use kvrm_engine::translation::{Kept, Room, ShortBranch, Translated, Translation, Way};
use kvrm_ir::{Routine, Value, Var};
use kvrm_translate::{Block, End, Goto, Region};

use crate::emit::{BLOCK_DEPTH, Emitter, Position, kept_name, wgsl};

/// What is kept in variables. On most GPUs, a lane has registers for about twice as many before fewer lanes fit.
const ROOM: Room = Room { general: 22, halves: 0 };

/// Blocks in a group.
pub(crate) const GROUPED: u32 = 16;

/// All blocks of a translation.
pub(crate) struct Blocks<'a> {
    translation: &'a Translation,
    record: &'a dyn Fn(u64) -> Record,
    held: &'a [Var],
    kept: Kept,
}

impl<'a> Blocks<'a> {
    /// Those of a translation; `held` are variables of the lane that the kernel keeps at hand.
    pub(crate) fn new(translated: Translated<'a>, held: &'a [Var]) -> Blocks<'a> {
        let Translated { translation, record } = translated;
        Blocks { translation, record, held, kept: Kept::of(translation, ROOM) }
    }

    fn each_kept(&self, line: impl Fn(String, u64) -> String) -> String {
        self.kept.general.iter().map(|slot| line(kept_name(*slot), *slot)).collect()
    }

    /// Declares the variables.
    pub(crate) fn declare(&self) -> String {
        self.each_kept(|name, _| format!("  var {name} = 0lu;\n"))
    }

    /// Loads them, before code is translated.
    pub(crate) fn load(&self) -> String {
        self.each_kept(|name, slot| format!("{name} = x[{slot}];\n"))
    }

    /// Stores them, before code is interpreted.
    pub(crate) fn store(&self) -> String {
        self.each_kept(|name, slot| format!("x[{slot}] = {name};\n"))
    }

    /// The `switch` with an arm for each block. Some compilers make a condition of each arm, one in the other, and cannot
    /// have many of these (llvmpipe fewer than 80): so blocks are in groups, with a `switch` each.
    pub(crate) fn dispatch(&self) -> String {
        let arms = self.arms();
        let mut out = "          switch (block / GROUPED) {\n".to_string();
        for (group, arms) in (0..).zip(arms.chunks(GROUPED as usize)) {
            let _ = write!(
                out,
                "            case {group}u: {{\n              switch (block) {{\n{}                default: {{}}\n              }}\n            }}\n",
                arms.concat()
            );
        }
        out.push_str("            default: {}\n          }\n");
        out
    }

    /// The arms, in the order of their numbers.
    fn arms(&self) -> Vec<String> {
        let mut arms = Vec::new();
        for (number, region) in self.translation.regions().iter().enumerate() {
            let routine = Routine {
                values: region.values.clone(),
                places: region.places.clone(),
                ..Routine::default()
            };
            for (number, in_region) in self.translation.blocks_of(number) {
                let (blocks, block) = (self, &region.blocks[in_region]);
                let mut arm = String::new();
                BlockWriter { blocks, region, routine: &routine, block, number }.write(&mut arm);
                arms.push(arm);
            }
        }
        arms
    }
}

/// Writes one block.
struct BlockWriter<'a> {
    blocks: &'a Blocks<'a>,
    region: &'a Region,
    routine: &'a Routine,
    block: &'a Block,
    number: u32,
}

impl<'a> BlockWriter<'a> {
    fn write(&self, out: &mut String) {
        let BlockWriter { number, block, .. } = self;
        let len = block.insns.len() as u32;
        let indent = "  ".repeat(BLOCK_DEPTH - 1);
        let _ = writeln!(out, "{indent}case {number}u: {{ // {:#x}", block.pc);
        let first = self.leave(0);
        let mut e = self.emitter(out, &first, 0);
        wgsl!(e, "fuel -= {len}u;");
        wgsl!(e, "if (fuel > 0x{:x}u) {{ {first} }}", u32::MAX - len);
        e.stmts(&block.head);
        for (index, insn) in (0..).zip(&block.insns) {
            self.emitter(out, &self.leave(index), index).stmts(&insn.stmts);
        }
        let mut e = self.emitter(out, "", len);
        e.stmts(&block.tail);
        self.end(&mut e);
        let _ = writeln!(out, "{indent}}}");
    }

    fn emitter<'b>(&'b self, out: &'b mut String, leave: &'b str, index: u32) -> Emitter<'b> {
        let rest = self.block.insns.len() as u32 - index;
        let position = Position { rest, kept: &self.blocks.kept };
        Emitter::in_block(out, self.routine, self.blocks.held, leave, position)
    }

    /// Leaves at an instruction, to interpret it. The record of the first one leads here, so what it would be otherwise is
    /// given.
    fn leave(&self, index: u32) -> String {
        let (rest, pc) = (self.block.insns.len() as u32 - index, self.block.pc);
        match index {
            0 => {
                let Record([a, b, c, d]) = (self.blocks.record)(pc);
                format!(
                    "fuel += {rest}u; w = vec4<u32>(0x{a:x}u, 0x{b:x}u, 0x{c:x}u, 0x{d:x}u); goal = 0x{pc:x}lu; block = AT_HAND; break;"
                )
            }
            _ => {
                let pc = self.block.insns[index as usize].pc;
                format!("fuel += {rest}u; goal = 0x{pc:x}lu; block = TO_INTERPRET; break;")
            }
        }
    }

    // Where control goes.

    fn way(&self, goto: Goto) -> Way {
        self.blocks.translation.way(self.region, goto)
    }

    fn end(&self, e: &mut Emitter<'_>) {
        match &self.block.end {
            End::Jump(goto) => {
                let way = self.way(*goto);
                self.go(e, &block_of(&way), &address(way.pc));
            }
            End::Branch { cond, taken, otherwise } => self.branch(e, *cond, [*taken, *otherwise]),
            End::Indirect { target, sites } => {
                self.go(e, "TO_GATHER", &e.get(*target));
                for (pc, _) in sites {
                    if let Some(block) = self.blocks.translation.block_at(*pc) {
                        wgsl!(e, "block = select(block, {block}u, goal == {});", address(*pc));
                    }
                }
            }
            End::Stop { .. } | End::Undefined(_) | End::Done(_) => {
                unreachable!("what stops lanes is not translated")
            }
        }
    }

    /// Goes on with a block, or to where lanes gather, at an address.
    fn go(&self, e: &mut Emitter<'_>, block: &str, goal: &str) {
        wgsl!(e, "block = {block};");
        wgsl!(e, "goal = {goal};");
    }

    fn branch(&self, e: &mut Emitter<'_>, cond: Value, gotos: [Goto; 2]) {
        let short = self.blocks.translation.short_branch(self.region, gotos);
        let cond = e.get(cond);
        let ways = gotos.map(|goto| self.way(goto));
        let [taken, otherwise] = ways.each_ref().map(block_of);
        let block = format!("select({otherwise}, {taken}, {cond})");
        let [taken, otherwise] = ways.map(|way| address(way.pc));
        let goal = format!("select({otherwise}, {taken}, {cond})");
        match short {
            Some(short) => {
                self.short_branch(e, &cond, &short);
                e.depth += 1;
                self.go(e, &block, &goal);
                e.depth -= 1;
                wgsl!(e, "}}");
            }
            None => self.go(e, &block, &goal),
        }
    }

    /// Writes a branch whose ways come together again, up to what is done if there is not fuel enough for it.
    fn short_branch(&self, e: &mut Emitter<'_>, cond: &str, short: &ShortBranch<'_>) {
        let [taken, otherwise] = short.lengths();
        wgsl!(e, "if (fuel >= {}u) {{", taken.max(otherwise));
        e.depth += 1;
        wgsl!(e, "fuel -= select({otherwise}u, {taken}u, {cond});");
        wgsl!(e, "if ({cond}) {{");
        for (index, arm) in short.arms.into_iter().enumerate() {
            e.depth += 1;
            if let Some(arm) = arm {
                e.stmts(&arm.head);
                arm.insns.iter().for_each(|insn| e.stmts(&insn.stmts));
                e.stmts(&arm.tail);
            }
            e.depth -= 1;
            wgsl!(e, "{}", if index == 0 { "} else {" } else { "}" });
        }
        self.go(e, &format!("{}u", short.block), &address(short.pc));
        e.depth -= 1;
        wgsl!(e, "}} else {{");
    }
}

/// The number of the block of a way, or where it goes without one.
fn block_of(way: &Way) -> String {
    way.block.map_or("TO_GATHER".to_string(), |block| format!("{block}u"))
}

fn address(pc: u64) -> String {
    format!("0x{pc:x}lu")
}
