//! The ways between code that is interpreted and translated code.
//!
//! The registers that translated code keeps are in memory while code is interpreted, where handlers have them. They are
//! moved when a lane gets from one kind of code to the other, not before; lanes that gather in between leave them where
//! they are. `%left` is [`INTERPRETING`] if they are in memory.

use std::fmt::Write;

use kvrm_engine::translation::Kept;

use crate::region::{Blocks, declare_kept, load_kept, store_kept};

/// What `%left` is while code is interpreted. No chunk is as long.
const INTERPRETING: u32 = u32::MAX;

/// Declares the registers that translated code needs.
pub(crate) fn declare(out: &mut String, kept: &Kept) {
    out.push_str("\t.reg .b32 %left, %full;\n");
    declare_kept(out, kept);
}

/// At the start of a launch: code is interpreted first. Where lanes do not gather, they are together if all are.
pub(crate) fn begin(out: &mut String) {
    let _ = write!(out, "\tmov.b32 %left, {INTERPRETING};\n\tmov.b32 %full, 0xffffffff;\n");
}

/// Where a record says that a block begins, at `%at`.
pub(crate) fn enter(out: &mut String, blocks: &Blocks<'_>) {
    let _ = write!(
        out,
        "ENTER:
\tsetp.ne.u32 %q0, %left, {INTERPRETING};
\tsub.u32 %left, %limit, %at;
\t@%q0 bra ENTERED;
"
    );
    load_kept(out, &blocks.kept);
    let _ = write!(
        out,
        "ENTERED:
\tENTRIES: .branchtargets {};
\tbrx.idx %s11, ENTRIES;
",
        blocks.labels().join(", ")
    );
}

/// Where a record is interpreted: stores what translated code has kept, if there is something.
pub(crate) fn interpret(out: &mut String, kept: &Kept) {
    let _ = write!(out, "\tsetp.eq.u32 %q0, %left, {INTERPRETING};\n\t@%q0 bra INTERPRETED;\n");
    store_kept(out, kept);
    let _ = write!(out, "\tmov.b32 %left, {INTERPRETING};\nINTERPRETED:\n");
}

/// Where blocks lead, with the offset of the next instruction's record in `%at`: to gather, after a branch that may go
/// beyond the code or to a computed address; to interpret an instruction, which may be the first of a block (then its
/// record is at hand).
pub(crate) fn ways(out: &mut String) {
    let _ = write!(
        out,
        "GATHER_AT:
\tadd.u32 %at, %at, %bias;
\tadd.u32 %limit, %at, %left;
\tbra GATHER;
BRANCHED_AT:
\tadd.u32 %at, %at, %bias;
\tadd.u32 %limit, %at, %left;
\tbra BRANCHED;
BRANCH_FROM_BLOCK:
\tmov.b32 %at, 0;
\tmov.b32 %limit, %left;
\tbra BRANCH;
INTERPRET:
\tadd.u32 %at, %at, %bias;
\tadd.u32 %limit, %at, %left;
\tbra FETCH;
FIRST:
\tadd.u32 %at, %at, %bias;
\tadd.u32 %limit, %at, %left;
\tsetp.eq.u32 %q0, %left, 0;
\t@%q0 bra GATHER;
\tand.b32 %s10, %w0, 0xffff;
\tbra HANDLE;
"
    );
}

/// At the end of a launch.
pub(crate) fn save(out: &mut String, kept: &Kept) {
    let _ = write!(out, "\tsetp.eq.u32 %q0, %left, {INTERPRETING};\n\t@%q0 bra SAVED;\n");
    store_kept(out, kept);
    out.push_str("SAVED:\n");
}
