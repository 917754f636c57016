//! Where lanes of a warp go after a branch, and which of them go on.

use std::fmt::Write;

use kvrm_a64::state::CALLER;
use kvrm_engine::code::BLOCK_STRIDE;
use kvrm_mem::PAGE;

use crate::emit::var_offset;
use crate::kernel::{KernelTarget, RECORD};
use crate::memory::BLOCK_BITS;

/// A group of lanes that has waited `1 << BONUS` times counts as one lane more.
const BONUS: u32 = 1;

/// After a branch: `BRANCH` to the address in `%target`, or `BRANCHED` where `%at` is set already. Only
/// computed addresses can be anywhere; others are within the reach of a 32-bit distance.
pub(crate) fn branch(out: &mut String, target: &KernelTarget) {
    let (drop_tag, outside) = match target.memory.mapped {
        true => ("\tshl.b64 %target, %target, 8;\n\tshr.s64 %target, %target, 8;\n", "OTHER_BLOCK"),
        false => ("", "NO_CODE"),
    };
    let _ = write!(
        out,
        "BRANCH:
{drop_tag}\tsub.u64 %t10, %target, %code_start;
\tcvt.u32.u64 %s8, %t10;
\tsetp.ge.u64 %q0, %t10, %code_len;
\tand.b32 %s9, %s8, 3;
\tsetp.ne.or.u32 %q0, %s9, 0, %q0;
\t@%q0 bra {outside};
\tmad.lo.u32 %s8, %s8, 4, %records_low;
\tsub.u32 %s9, %s8, %at;
\tadd.u32 %limit, %limit, %s9;
\tmov.b32 %at, %s8;
\tbra GATHER;
BRANCHED:
\tsub.u32 %s8, %at, %records_low;
\tsetp.ge.u32 %q0, %s8, %records_bytes;
\t@%q0 bra BEYOND;
",
    );
    if target.memory.mapped {
        out.push_str("\tbra GATHER;\n");
        other_block(out, target);
    }
}

/// Where a lane leaves its block of mapped memory: it goes on at `%target` in another block, if that has code. `BEYOND` is
/// for one whose next record, at `%at`, is outside of its block. The supervisors' code is for nobody else.
fn other_block(out: &mut String, target: &KernelTarget) {
    let own = match target.memory.has_supervisors() {
        true => format!(
            "\tsetp.ge.u64 %q0, %target, 0x{program:x};
\tmov.b64 %t11, 1;
\t@%q0 ld.global.u64 %t11, [%state+{caller}];
\tsetp.eq.u64 %q0, %t11, 0;
\t@%q0 bra NO_CODE;
",
            program = target.memory.program,
            caller = var_offset(CALLER),
        ),
        false => String::new(),
    };
    let _ = write!(
        out,
        "BEYOND:
\tsub.u32 %s8, %at, %records_low;
\tshr.s32 %s8, %s8, 2;
\tcvt.s64.s32 %t10, %s8;
\tadd.u64 %target, %t10, %code_start;
OTHER_BLOCK:
\tsetp.ge.u64 %q0, %target, 0x{size:x};
\tcvt.u32.u64 %s8, %target;
\tand.b32 %s9, %s8, 3;
\tsetp.ne.or.u32 %q0, %s9, 0, %q0;
\t@%q0 bra NO_CODE;
{own}\tshr.u64 %t10, %target, {BLOCK_BITS};
\tshl.b64 %t11, %t10, 2;
\tadd.u64 %t11, %t11, %code_blocks;
\tld.global.u32 %s9, [%t11];
\tsetp.eq.u32 %q0, %s9, 0;
\t@%q0 bra NO_CODE;
\tsub.u32 %s9, %s9, 1;
\tcvt.u32.u64 %records_low, %records;
\tmad.lo.u32 %records_low, %s9, {part}, %records_low;
\tshl.b64 %code_start, %t10, {BLOCK_BITS};
\tcvt.u32.u64 %s9, %code_start;
\tshl.b32 %s9, %s9, 2;
\tsub.u32 %bias, %records_low, %s9;
\tmad.lo.u32 %s8, %s8, 4, %bias;
\tsub.u32 %s9, %s8, %at;
\tadd.u32 %limit, %limit, %s9;
\tmov.b32 %at, %s8;
\tbra GATHER;
",
        size = target.memory.size,
        part = BLOCK_STRIDE as usize * PAGE as usize / 4 * RECORD,
    );
}

/// Where lanes of a warp come together after each branch. If they are not all at the same address, one group
/// that is goes on, and the others wait here: the largest, with a bonus for waiting. So lanes that have
/// parted find together again, most of them do something most of the time, and none waits long, not even
/// for a lock that another one holds. Lanes that have used up their chunk let the others pass. Lanes that
/// have stopped stay too, with nothing left to do: the instructions by which a warp comes together want
/// all of its lanes.
///
/// With translated code, `%full` are the lanes that are together; none, where others wait.
pub(crate) fn gather(out: &mut String, target: &KernelTarget, has_blocks: bool) {
    out.push_str("GATHER:\n");
    let (together, apart) = match has_blocks {
        true => (
            "\tnot.pred %q1, %q0;\n\tvote.sync.ballot.b32 %full, %q1, 0xffffffff;\n",
            "\tmov.b32 %full, 0;\n",
        ),
        false => ("", ""),
    };
    if target.has_redux() {
        let _ = write!(
            out,
            "\tsetp.eq.u32 %q0, %at, %limit;
\tselp.b32 %s8, 0xffffffff, %at, %q0;
\tredux.sync.min.u32 %s9, %s8, 0xffffffff;
\tsetp.eq.or.u32 %q1, %s8, %s9, %q0;
\tvote.sync.all.pred %q1, %q1, 0xffffffff;
\t@!%q1 bra CHOOSE;
\tsetp.eq.u32 %q0, %s9, 0xffffffff;
\t@%q0 bra CHUNK;
\tsetp.ne.u32 %q0, %s8, %s9;
{together}\t@%q0 bra GATHER;
\tbra FETCH;
CHOOSE:
{apart}\tmatch.any.sync.b32 %s10, %s8, 0xffffffff;
\tpopc.b32 %s11, %s10;
\tshr.u32 %s12, %waited, {BONUS};
\tadd.u32 %s11, %s11, %s12;
\tselp.b32 %s11, 0, %s11, %q0;
\tmad.lo.u32 %s11, %s11, 32, %laneid;
\tredux.sync.max.u32 %s12, %s11, 0xffffffff;
\tand.b32 %s12, %s12, 31;
\tshr.u32 %s10, %s10, %s12;
\tand.b32 %s10, %s10, 1;
\tsetp.eq.u32 %q1, %s10, 0;
\tadd.u32 %waited, %waited, 1;
\t@%q1 bra GATHER;
\tmov.b32 %waited, 0;
\tbra FETCH;
"
        );
    }
}
