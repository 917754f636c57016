//! Where blocks of translated code go.

use kvrm_ir::{Op, Stmt};
use kvrm_translate::{Block, End, Goto, Region};

use super::Translation;

/// Instructions of a branch that is skipped or executed without parting lanes, at the most.
const SHORT_BRANCH: usize = 8;

/// A way out of a block.
pub struct Way {
    /// The guest's address.
    pub pc: u64,
    /// The block there.
    pub block: Option<u32>,
}

/// A branch whose ways come together again after a few simple instructions, so that lanes execute or skip them, and stay
/// together.
pub struct ShortBranch<'a> {
    /// What is executed if the condition is true, and if not: blocks that access no memory and cannot leave.
    pub arms: [Option<&'a Block>; 2],
    /// Where the ways come together.
    pub pc: u64,
    /// The block there.
    pub block: u32,
}

impl ShortBranch<'_> {
    /// Instructions of the arms.
    pub fn lengths(&self) -> [u32; 2] {
        self.arms.map(|arm| arm.map_or(0, |arm| arm.insns.len() as u32))
    }
}

impl Translation {
    /// The way out of a block of a region.
    pub fn way(&self, region: &Region, goto: Goto) -> Way {
        let pc = match goto {
            Goto::Block(number) => region.blocks[number].pc,
            Goto::Leave(pc) => pc,
        };
        Way { pc, block: self.block_at(pc) }
    }

    /// What is executed on the two ways of a branch of a region, if that is short.
    pub fn short_branch<'a>(&self, region: &'a Region, ways: [Goto; 2]) -> Option<ShortBranch<'a>> {
        let pcs = ways.map(|goto| self.way(region, goto).pc);
        let (arms, pc) = match ways.map(|goto| self.simple(region, goto)) {
            [Some((arm, join)), _] if join == pcs[1] => ([Some(arm), None], join),
            [_, Some((arm, join))] if join == pcs[0] => ([None, Some(arm)], join),
            [Some((a, join)), Some((b, other))] if join == other => ([Some(a), Some(b)], join),
            _ => return None,
        };
        Some(ShortBranch { arms, pc, block: self.block_at(pc)? })
    }

    /// A block that is short and cannot leave, and where it goes.
    fn simple<'a>(&self, region: &'a Region, goto: Goto) -> Option<(&'a Block, u64)> {
        let Goto::Block(number) = goto else { return None };
        let block = &region.blocks[number];
        let End::Jump(next) = block.end else { return None };
        let is_simple = block.insns.len() <= SHORT_BRANCH && block.stmts().all(is_pure);
        is_simple.then(|| (block, self.way(region, next).pc))
    }
}

/// True for statements without memory that cannot leave.
fn is_pure(stmt: &Stmt) -> bool {
    match &stmt.op {
        Op::If { then, otherwise, .. } => then.stmts.iter().chain(&otherwise.stmts).all(is_pure),
        Op::Unary(..)
        | Op::Binary(..)
        | Op::Compare(..)
        | Op::Select(..)
        | Op::Convert(..)
        | Op::ReadReg(..)
        | Op::WriteReg(..)
        | Op::SetFlags(_)
        | Op::Test(_) => true,
        _ => false,
    }
}
