//! How lanes stop, and how a warp ends its launch.

use std::fmt::Write;

use kvrm_a64::state::{CpuState, EXCLUSIVE_LEN, X_SLOTS};
use kvrm_engine::MemoryModel;
use kvrm_engine::kernel::stop;
use kvrm_engine::launch::Status;
use kvrm_mem::PAGE;

use crate::emit::{FLAGS, var_offset};
use crate::kernel::{Arguments, KernelTarget, Pool, RECORD};
use crate::memory::FRAME_BYTES;

/// Gives the lane its own copy of a page (`%want`) that it is about to write, and starts the instruction
/// again. Lanes of a warp that want the same page share a frame.
pub(crate) fn own_page(out: &mut String) {
    let _ = write!(
        out,
        "OWN_PAGE:
\tsub.u32 %at, %at, {RECORD};
\tmad.wide.u32 %t20, %want, 8, %page_table;
\tactivemask.b32 %s21;
\tmatch.any.sync.b32 %s22, %want, %s21;
\tbrev.b32 %s23, %s22;
\tclz.b32 %s23, %s23;
\tsetp.ne.u32 %q1, %s23, %laneid;
\t@%q1 bra SHARED_FRAME;
\tld.volatile.global.u32 %s24, [%t20];
\tsetp.ne.u32 %q2, %s24, 0;
\t@%q2 bra SHARED_FRAME;
\tatom.global.add.u32 %s24, [%pool+{next}], 1;
\tld.volatile.global.u32 %s25, [%pool+{size}];
\tsetp.ge.u32 %q2, %s24, %s25;
\t@%q2 bra SHARED_FRAME;
\tatom.global.cas.b32 %s26, [%t20], 0, %s24;
SHARED_FRAME:
\tbar.warp.sync %s22;
\tld.volatile.global.u32 %s24, [%t20];
\tsetp.eq.u32 %q2, %s24, 0;
\t@%q2 bra NO_FRAME;
\tmad.wide.u32 %t21, %s24, {FRAME_BYTES}, %frames;
\tmad.wide.u32 %t22, %want, {PAGE}, %memory;
\tmov.b32 %s27, 512;
COPY:
\tld.global.v2.u64 {{%t23, %t24}}, [%t22];
\tld.global.v2.u64 {{%t25, %t26}}, [%t22+16];
\tst.global.u64 [%t21], %t23;
\tst.global.u64 [%t21+256], %t24;
\tst.global.u64 [%t21+512], %t25;
\tst.global.u64 [%t21+768], %t26;
\tadd.u64 %t21, %t21, 1024;
\tadd.u64 %t22, %t22, 32;
\tsub.u32 %s27, %s27, 4;
\tsetp.ne.u32 %q2, %s27, 0;
\t@%q2 bra COPY;
\tatom.global.or.b32 %s28, [%t20+4], %lane_bit;
\tbra GATHER;
NO_FRAME:
\tmov.b32 %stop, {no_frame};
\tmov.b64 %detail, 0;
\tbra STOP_HERE;
",
        next = std::mem::offset_of!(Pool, next),
        size = std::mem::offset_of!(Pool, size),
        no_frame = stop::NO_FRAME,
    );
}

/// `STOP` is for an instruction that has not been completed, `STOP_HERE` for one that has.
pub(crate) fn stops(out: &mut String, target: &KernelTarget) {
    // Records behind a block of mapped memory are not decoded either.
    let beyond = match target.memory.mapped {
        true => {
            "\tsub.u32 %s8, %at, %records_low;
\tsetp.ge.u32 %q0, %s8, %records_bytes;
\t@%q0 bra BEYOND;
"
        }
        false => "BEYOND:\n",
    };
    let _ = write!(
        out,
        "UNDEFINED:
\tmov.b32 %stop, {undefined};
\tmov.b64 %detail, {{%w2, %w3}};
\tbra STOP;
BREAKPOINT:
\tmov.b32 %stop, {breakpoint};
\tmov.b64 %detail, 0;
\tbra STOP;
ON_HOST:
\tmov.b32 %stop, {no_handler};
\tmov.b64 %detail, 0;
\tbra STOP;
NO_CODE:
\tmov.b32 %stop, {no_code};
\tbra PARK;
NOT_DECODED:
\tsub.u32 %at, %at, {RECORD};
{beyond}\tmov.b32 %stop, {no_code};
\tbra STOP_HERE;
STOP:
\tsub.u32 %at, %at, {RECORD};
STOP_HERE:
\tsub.u32 %s8, %at, %records_low;
\tshr.s32 %s8, %s8, 2;
\tcvt.s64.s32 %t10, %s8;
\tadd.u64 %target, %t10, %code_start;
PARK:
\tsub.u32 %s8, %limit, %at;
\tshr.u32 %s8, %s8, {record_bits};
\tsub.u32 %chunk, %chunk, %s8;
\tcvt.u64.u32 %t12, %s8;
\tadd.u64 %budget, %budget, %t12;
\tsub.u64 %count_base, %count_base, %t12;
\tmov.b32 %limit, %at;
",
        no_code = stop::NO_CODE,
        undefined = stop::UNDEFINED,
        breakpoint = stop::BREAKPOINT,
        no_handler = stop::NO_HANDLER,
        record_bits = RECORD.ilog2(),
    );
    if target.memory.model == MemoryModel::Shared {
        // Others may be waiting for this lane: the launch ends, so that the host sees to it.
        let _ = write!(
            out,
            "\tsetp.eq.u32 %q0, %stop, {no_code};
\tsetp.eq.or.u32 %q0, %stop, {code_write}, %q0;
\tmov.b32 %s8, 1;
\t@%q0 st.volatile.global.u32 [%pool+{cancel}], %s8;
",
            no_code = stop::NO_CODE,
            code_write = stop::CODE_WRITE,
            cancel = std::mem::offset_of!(Pool, cancel),
        );
    }
    out.push_str("\tbra GATHER;\n");
}

/// The end of the launch for the warp: lanes that have not stopped by themselves still have to say where
/// they are. Those that took an exception lose their exclusive monitor, and all that stopped are
/// listed for the host.
pub(crate) fn epilogue(out: &mut String) {
    let _ = write!(
        out,
        "\tsetp.gt.u32 %q0, %stop, {max};
\tsub.u32 %s8, %at, %records_low;
\tshr.s32 %s8, %s8, 2;
\tcvt.s64.s32 %t10, %s8;
\tadd.u64 %t10, %t10, %code_start;
\tselp.b64 %target, %target, %t10, %q0;
\tsetp.eq.u32 %q0, %stop, {no_code};
\tselp.b64 %detail, %target, %detail, %q0;
\tsetp.eq.and.u64 %q0, %budget, 0, %q0;
\tselp.b32 %stop, {max}, %stop, %q0;
\tst.global.u64 [%status+{budget}], %budget;
\tst.global.u64 [%status+{count}], %count_base;
\tst.global.u64 [%status+{detail}], %detail;
\tst.global.u32 [%status+{stop}], %stop;
\tsetp.ge.u32 %q0, %stop, {exception};
\tmov.b32 %s8, 0;
\t@%q0 st.global.b32 [%state+{exclusive}], %s8;
\tsetp.eq.u32 %q0, %stop, {running};
\t@%q0 bra LISTED;
\tatom.global.add.u32 %s8, [%pool+{stopped}], 1;
\tld.param.u64 %t10, [args+{list}];
\tmad.wide.u32 %t10, %s8, 4, %t10;
\tst.global.u32 [%t10], %lane;
LISTED:
",
        running = stop::RUNNING,
        no_code = stop::NO_CODE,
        exception = stop::FIRST_EXCEPTION,
        exclusive = var_offset(EXCLUSIVE_LEN),
        stopped = std::mem::offset_of!(Pool, stopped),
        list = std::mem::offset_of!(Arguments, stopped),
        max = stop::MAX_CYCLES,
        budget = std::mem::offset_of!(Status, budget),
        count = std::mem::offset_of!(Status, count),
        detail = std::mem::offset_of!(Status, detail),
        stop = std::mem::offset_of!(Status, stop),
    );
    for slot in 0..X_SLOTS {
        let _ = writeln!(
            out,
            "\tld.local.b64 %t13, [regs+{}];\n\tst.global.b64 [%state+{}], %t13;",
            8 * slot,
            8 * slot
        );
    }
    let _ = writeln!(out, "\tst.global.b64 [%state+{}], %target;", var_offset(kvrm_a64::state::PC));
    for (index, register) in FLAGS.into_iter().enumerate() {
        let offset = std::mem::offset_of!(CpuState, flags) + index;
        let _ = writeln!(
            out,
            "\tselp.b32 %s13, 1, 0, {register};\n\tst.global.u8 [%state+{offset}], %s13;"
        );
    }
    out.push_str("\tret;\n");
}
