//! Guest code as regions of intermediate representation, for engines that translate.
//!
//! ```text
//!  words ──► GuestCode ──► Region ──► an engine's emitter
//!            (code)   (stitch)
//! ```
//!
//! [`GuestCode::find`] collects the words that direct branches reach from an address, and [`Region::new`] makes
//! one routine of them: blocks of statements over one table of values. What an engine needs to know beside
//! the operations is said here, once for all engines:
//!
//! - **Registers** are forwarded within a block: a register is read once and its value used from then on,
//!   constants fold across instructions, and a write that the next one overtakes is gone. Between blocks
//!   registers are slots of the file, which an emitter keeps as variables. [`Block::dirty`] says which of
//!   them may differ from what memory has.
//! - **Flags** are computed where they are read. Instructions say what the flags are the flags of; what a
//!   later one tests becomes a comparison of the operands. A block begins with the flags in a known form
//!   ([`Form`]); where they are needed as four bits, statements make them so.
//! - **Counting**: a block is charged the number of its instructions when it is entered. Whoever leaves it
//!   at an instruction gets back [`Block::unexecuted`].
//! - **Checks** of accesses that lie near each other are merged ([`Check`]).
//! - **Exits** are precise: an instruction that may stop the lane says with which flags ([`Insn::flags`]).

mod checks;
mod code;
mod flags;
mod stitch;
mod trim;

pub use checks::{Check, Limits};
pub use code::{GuestCode, Way};
pub use flags::{ExitFlags, FLAG_OPERANDS, Form, Kind, Operand, Source};
use kvrm_a64::state::{Q, V, X_SLOTS};
use kvrm_ir::{Exit, File, Place, PlaceData, Stmt, Value, ValueData};

/// Code that is translated together.
#[derive(Debug, Default)]
pub struct Region {
    /// The first is where the region is entered, with the flags as four bits.
    pub blocks: Vec<Block>,
    /// Type and constant of every value. A value is visible in the block that defines it.
    pub values: Vec<ValueData>,
    /// What may be done with every place.
    pub places: Vec<PlaceData>,
    /// How places are checked, if not all by themselves.
    pub checks: Vec<Check>,
    /// Some block can be reached from itself.
    pub loops: bool,
    /// It has few instructions. Flags are followed from block to block in whatever form they are; in larger regions they
    /// are left in the lane's state before blocks that do not look at them, so that there is one version of those.
    pub is_small: bool,
}

/// A set of register slots: a bit each, by [`slot_number`]. Vector registers are wholes or halves, as the target has it.
pub type Slots = u128;

/// Slots of both files, where vector registers are wholes.
pub const SLOTS: usize = X_SLOTS + Q.len as usize;

const _: () = assert!(X_SLOTS + V.len as usize <= Slots::BITS as usize);

/// The number of a slot among those of both files.
///
/// ```
/// use kvrm_a64::state::{Q, V, X, X_SLOTS};
/// assert_eq!(kvrm_translate::slot_number(X, 3), 3);
/// assert_eq!(kvrm_translate::slot_number(Q, 3), X_SLOTS + 3);
/// assert_eq!(kvrm_translate::slot_number(V, 3), X_SLOTS + 3);
/// ```
pub fn slot_number(file: File, slot: u64) -> usize {
    match file {
        Q | V => X_SLOTS + slot as usize,
        _ => slot as usize,
    }
}

/// Instructions that follow one another, entered only at the first. A block without instructions only
/// prepares the way to another.
#[derive(Debug)]
pub struct Block {
    /// Address of the first instruction.
    pub pc: u64,
    /// How the flags are found.
    pub flags: Form,
    /// Register slots that some way here has written.
    pub dirty: Slots,
    /// What is done before the block is charged for: reading what exits may need.
    pub head: Vec<Stmt>,
    /// The instructions.
    pub insns: Vec<Insn>,
    /// What is done after the last instruction, before control goes on.
    pub tail: Vec<Stmt>,
    /// The flags at the end, for who leaves the region there.
    pub flags_after: ExitFlags,
    /// They are left in the lane's state before control goes on, for all ways.
    pub leaves_flags: bool,
    /// Where control goes.
    pub end: End,
}

/// One instruction of a block.
#[derive(Debug)]
pub struct Insn {
    /// Its address.
    pub pc: u64,
    /// The flags before it, for exits.
    pub flags: ExitFlags,
    /// What it does. Flags are set by four bits or not at all.
    pub stmts: Vec<Stmt>,
}

/// Where control goes after a block.
#[derive(Debug)]
pub enum End {
    /// On.
    Jump(Goto),
    /// One way if the value is true, the other if not.
    Branch {
        /// A `bool`.
        cond: Value,
        /// Where to if it is true.
        taken: Goto,
        /// Where to if not.
        otherwise: Goto,
    },
    /// To a computed address.
    Indirect {
        /// The address.
        target: Value,
        /// Addresses that it may well be, and the blocks for them.
        sites: Vec<(u64, usize)>,
    },
    /// The lane stops at the last instruction.
    Stop {
        /// Why and how.
        exit: Exit,
        /// The detail of the stop.
        detail: Value,
    },
    /// The last word is not an instruction.
    Undefined(u32),
    /// The lane has executed what it should and is at an address.
    Done(u64),
}

/// Where a branch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goto {
    /// To a block of the region.
    Block(usize),
    /// Out of the region, to an address, with [`Block::flags_after`].
    Leave(u64),
}

impl End {
    /// Calls `f` with every block that may come next.
    fn for_each_next(&self, mut f: impl FnMut(usize)) {
        let mut visit = |goto: &Goto| {
            if let Goto::Block(next) = goto {
                f(*next);
            }
        };
        match self {
            End::Jump(goto) => visit(goto),
            End::Branch { taken, otherwise, .. } => [taken, otherwise].into_iter().for_each(visit),
            End::Indirect { sites, .. } => sites.iter().for_each(|(_, next)| f(*next)),
            End::Stop { .. } | End::Undefined(_) | End::Done(_) => {}
        }
    }
}

impl Block {
    /// Its statements in order, without those of nested blocks.
    pub fn stmts(&self) -> impl Iterator<Item = &Stmt> {
        let insns = self.insns.iter().flat_map(|insn| &insn.stmts);
        self.head.iter().chain(insns).chain(&self.tail)
    }

    /// Instructions that the block was charged for and that have not been completed, counted from the one
    /// with that number on.
    pub fn unexecuted(&self, insn: usize) -> u64 {
        (self.insns.len() - insn) as u64
    }

    /// True if it looks at flags in the lane's state.
    pub fn tests_flags(&self) -> bool {
        let mut tests = false;
        let insns = self.insns.iter().flat_map(|insn| &insn.stmts);
        for stmt in self.head.iter().chain(insns).chain(&self.tail) {
            visit(stmt, &mut |stmt| tests |= matches!(stmt.op, kvrm_ir::Op::Test(_)));
        }
        tests
    }
}

impl Region {
    /// How a place is checked.
    pub fn check(&self, place: Place) -> Check {
        self.checks.get(place.0 as usize).copied().unwrap_or_default()
    }

    /// Calls `f` with every statement, those of nested blocks included.
    pub fn for_each_stmt<'a>(&'a self, f: &mut impl FnMut(&'a Stmt)) {
        self.blocks.iter().flat_map(Block::stmts).for_each(|stmt| visit(stmt, f));
    }
}

fn visit<'a>(stmt: &'a Stmt, f: &mut impl FnMut(&'a Stmt)) {
    f(stmt);
    if let kvrm_ir::Op::If { then, otherwise, .. } = &stmt.op {
        then.for_each_stmt(f);
        otherwise.for_each_stmt(f);
    }
}
