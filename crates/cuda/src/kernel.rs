//! The interpreter kernel around the handlers.
//!
//! One thread is one lane. It loads the lane's registers into a local array, runs instructions until the
//! lane stops or the launch's share is used up, and stores them again. Each turn of the loop reads
//! the record of the instruction at PC and branches to its handler.

use std::fmt::Write;

use kvrm_a64::state::{C, CpuState, N, V, VARS, X_SLOTS, Z};
use kvrm_engine::MemoryModel;
use kvrm_engine::kernel::{BREAKPOINT, FIRST_HANDLER, Handlers, NOT_DECODED, UNDEFINED};
use kvrm_ir::Var;

use crate::emit::{Emitter, flag_register};
use crate::memory::{FRAME_BYTES, Memory};
use crate::stop;

/// What a launch is given, in this order, all 64 bits wide.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Arguments {
    /// Registers: one [`CpuState`] per lane.
    pub(crate) states: u64,
    /// One [`Status`] per lane.
    pub(crate) statuses: u64,
    /// Number of lanes.
    pub(crate) lanes: u64,
    /// Instructions a lane may execute in this launch.
    pub(crate) share: u64,
    /// Shared memory, or the image.
    pub(crate) memory: u64,
    /// Frames of private memory, of which the first is not used.
    pub(crate) frames: u64,
    /// Page tables of private memory, one per warp.
    pub(crate) page_tables: u64,
    /// Bytes of a page table.
    pub(crate) page_table_bytes: u64,
    /// [`Pool`].
    pub(crate) pool: u64,
    /// Records of the code.
    pub(crate) records: u64,
    /// Address of the first decoded word.
    pub(crate) code_start: u64,
    /// Bytes of decoded code.
    pub(crate) code_len: u64,
    /// A byte per granule from one before the code on: whether it holds decoded words.
    pub(crate) code_map: u64,
    /// [`Control`], in memory that host and device share.
    pub(crate) control: u64,
}

/// A lane's counts and stop, as the kernel keeps them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Status {
    /// Instructions completed.
    pub(crate) count: u64,
    /// Instructions it may still complete in this run.
    pub(crate) budget: u64,
    /// The stop's detail.
    pub(crate) detail: u64,
    /// A number of [`crate::stop`].
    pub(crate) stop: u32,
    pub(crate) unused: u32,
    /// Its own records, if it has changed its code; otherwise 0.
    pub(crate) records: u64,
}

/// What is counted on the device.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Pool {
    /// Frames handed out, the unused first one included; may run over the size.
    pub(crate) next: u32,
    /// Frames there are.
    pub(crate) size: u32,
    /// The lock of 128-bit exchanges.
    pub(crate) lock: u32,
    pub(crate) unused: u32,
    /// Instructions completed in all launches; lags behind.
    pub(crate) executed: u64,
}

/// What host and device tell each other while a kernel runs.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Control {
    /// Set by the host: end soon.
    pub(crate) cancel: u32,
    pub(crate) unused: u32,
    /// A copy of [`Pool::executed`].
    pub(crate) executed: u64,
}

/// Instructions between two looks at the control.
const CHUNK: u64 = 1 << 14;

/// Byte offset of a state variable.
fn offset(var: Var) -> usize {
    VARS[usize::from(var.id)].1
}

/// The text of a kernel with these handlers.
pub(crate) fn kernel(handlers: &Handlers, memory: &Memory) -> String {
    let mut out = String::from(".version 6.5\n.target sm_70\n.address_size 64\n\n");
    let _ = writeln!(
        out,
        ".visible .entry run(.param .align 8 .b8 args[{}])\n{{",
        size_of::<Arguments>()
    );
    declare(&mut out);
    prologue(&mut out, memory);
    fetch(&mut out, handlers);
    for (index, handler) in handlers.iter().enumerate() {
        let _ = writeln!(out, "// {}", handler.row.name);
        Emitter::handler(&mut out, memory, FIRST_HANDLER + index as u32, handler.routine());
    }
    if memory.model == MemoryModel::Private {
        own_page(&mut out);
    }
    stops(&mut out);
    epilogue(&mut out);
    out.push_str("}\n");
    out
}

fn declare(out: &mut String) {
    let bytes = 8 * X_SLOTS;
    let _ = write!(
        out,
        "\t.local .align 8 .b8 regs[{bytes}];
\t.reg .pred %fn, %fz, %fc, %fv, %q<16>;
\t.reg .b32 %x_base, %w<4>, %fuel, %chunk, %offset, %code_bytes, %stop, %lane_bit, %laneid, %s<32>;
\t.reg .b64 %target, %count_base, %budget, %share, %detail, %state, %status, %want, %t<64>;
\t.reg .b64 %memory, %frames, %page_table, %pool, %lock, %records, %code_start, %code_len;
\t.reg .b64 %code_map, %code_near, %code_span, %control;
"
    );
}

/// Loads an argument.
fn argument(out: &mut String, register: &str, offset: usize) {
    let _ = writeln!(out, "\tld.param.u64 {register}, [args+{offset}];");
}

macro_rules! arguments {
    ($out:expr, $($register:literal = $field:ident),* $(,)?) => {
        $(argument($out, $register, std::mem::offset_of!(Arguments, $field));)*
    };
}

fn prologue(out: &mut String, memory: &Memory) {
    arguments!(
        out,
        "%t0" = states,
        "%t1" = statuses,
        "%t2" = lanes,
        "%share" = share,
        "%memory" = memory,
        "%frames" = frames,
        "%t3" = page_tables,
        "%t4" = page_table_bytes,
        "%pool" = pool,
        "%records" = records,
        "%code_start" = code_start,
        "%code_len" = code_len,
        "%code_map" = code_map,
        "%control" = control,
    );
    let _ = write!(
        out,
        "\tmov.u32 %s0, %ctaid.x;
\tmov.u32 %s1, %ntid.x;
\tmov.u32 %s2, %tid.x;
\tmad.lo.u32 %s3, %s0, %s1, %s2;
\tcvt.u64.u32 %t5, %s3;
\tsetp.ge.u64 %q0, %t5, %t2;
\t@%q0 ret;
\tmad.wide.u32 %state, %s3, {state}, %t0;
\tmad.wide.u32 %status, %s3, {status}, %t1;
\tld.global.u32 %stop, [%status+{stop}];
\tsetp.ne.u32 %q0, %stop, 0;
\t@%q0 ret;
\tadd.u64 %lock, %pool, {lock};
\tsub.u64 %code_near, %code_start, 64;
\tadd.u64 %code_span, %code_len, 128;
\tmov.u32 %x_base, regs;
\tand.b32 %laneid, %s3, 31;
\tmov.b32 %s4, 1;
\tshl.b32 %lane_bit, %s4, %laneid;
\tld.global.u64 %t6, [%status+{records}];
\tsetp.ne.u64 %q0, %t6, 0;
\tselp.b64 %records, %t6, %records, %q0;
",
        state = size_of::<CpuState>(),
        status = size_of::<Status>(),
        stop = std::mem::offset_of!(Status, stop),
        records = std::mem::offset_of!(Status, records),
        lock = std::mem::offset_of!(Pool, lock),
    );
    if memory.model == MemoryModel::Private {
        out.push_str(
            "\tshr.u32 %s5, %s3, 5;
\tcvt.u64.u32 %t7, %s5;
\tmad.lo.u64 %page_table, %t7, %t4, %t3;
\tmad.wide.u32 %frames, %laneid, 8, %frames;
",
        );
    }
    for slot in 0..X_SLOTS {
        let _ = writeln!(
            out,
            "\tld.global.b64 %t8, [%state+{}];\n\tst.local.b64 [regs+{}], %t8;",
            8 * slot,
            8 * slot
        );
    }
    let _ = writeln!(out, "\tld.global.b64 %target, [%state+{}];", offset(kvrm_a64::state::PC));
    for flag in [N, Z, C, V] {
        let register = flag_register(flag).expect("a flag");
        let _ = writeln!(
            out,
            "\tld.global.u8 %s6, [%state+{}];\n\tsetp.ne.u32 {register}, %s6, 0;",
            offset(flag)
        );
    }
    let _ = write!(
        out,
        "\tld.global.u64 %budget, [%status+{budget}];
\tld.global.u64 %count_base, [%status+{count}];
\tmov.b32 %fuel, 0;
\tmov.b32 %chunk, 0;
\tcvt.u32.u64 %code_bytes, %code_len;
\tsub.u64 %t10, %target, %code_start;
\tcvt.u32.u64 %offset, %t10;
\tsetp.ge.u64 %q0, %t10, %code_len;
\tand.b32 %s9, %offset, 3;
\tsetp.ne.or.u32 %q0, %s9, 0, %q0;
\t@%q0 bra NO_CODE;
// A new chunk: the last one is used up.
CHUNK:
\tcvt.u64.u32 %t14, %chunk;
\tred.global.add.u64 [%pool+{executed}], %t14;
\tmov.u32 %s11, %tid.x;
\tsetp.ne.u32 %q0, %s11, 0;
\t@%q0 bra COUNTED;
\tld.volatile.global.u64 %t15, [%pool+{executed}];
\tst.volatile.global.u64 [%control+{shown}], %t15;
COUNTED:
\tsetp.eq.u64 %q0, %budget, 0;
\tmov.b32 %stop, {max};
\tmov.b64 %detail, 0;
\t@%q0 bra STOP;
\tmov.b32 %stop, {running};
\tsetp.eq.u64 %q0, %share, 0;
\t@%q0 bra SAVE;
\tld.volatile.global.u32 %s7, [%control];
\tsetp.ne.u32 %q0, %s7, 0;
\t@%q0 bra SAVE;
\tmin.u64 %t9, %budget, %share;
\tmin.u64 %t9, %t9, {CHUNK};
\tsub.u64 %budget, %budget, %t9;
\tsub.u64 %share, %share, %t9;
\tadd.u64 %count_base, %count_base, %t9;
\tcvt.u32.u64 %fuel, %t9;
\tmov.b32 %chunk, %fuel;
\tbra LOOP;
",
        budget = std::mem::offset_of!(Status, budget),
        count = std::mem::offset_of!(Status, count),
        executed = std::mem::offset_of!(Pool, executed),
        shown = std::mem::offset_of!(Control, executed),
        max = stop::MAX_CYCLES,
        running = stop::RUNNING,
    );
}

/// The loop's head: BRANCH after an instruction that branches, NEXT after any other. Only branches to
/// computed addresses can leave the code's range or its alignment, so PC is kept as a small offset.
fn fetch(out: &mut String, handlers: &Handlers) {
    out.push_str(
        "BRANCH:
\tsub.u64 %t10, %target, %code_start;
\tsetp.ge.u64 %q0, %t10, %code_len;
\tcvt.u32.u64 %s8, %t10;
\tand.b32 %s9, %s8, 3;
\tsetp.ne.or.u32 %q0, %s9, 0, %q0;
\tsub.u32 %fuel, %fuel, 1;
\t@%q0 bra NO_CODE;
\tmov.b32 %offset, %s8;
\tbra LOOP;
NEXT:
\tadd.u32 %offset, %offset, 4;
\tsub.u32 %fuel, %fuel, 1;
LOOP:
\tsetp.eq.u32 %q0, %fuel, 0;
\t@%q0 bra CHUNK;
\tsetp.ge.u32 %q0, %offset, %code_bytes;
\t@%q0 bra BEYOND;
\tmad.wide.u32 %t11, %offset, 4, %records;
\tld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%t11];
\tand.b32 %s10, %w0, 0xffff;
",
    );
    let mut targets =
        vec![(NOT_DECODED, "NOT_DECODED"), (UNDEFINED, "UNDEFINED"), (BREAKPOINT, "BREAKPOINT")];
    targets.sort_unstable();
    let special = targets.into_iter().map(|(_, label)| label.to_string());
    let made = (0..handlers.len() as u32).map(|i| format!("H{}", FIRST_HANDLER + i));
    let labels: Vec<String> = special.chain(made).collect();
    let _ = write!(
        out,
        "\tDISPATCH: .branchtargets {};\n\tbrx.idx %s10, DISPATCH;\n",
        labels.join(", ")
    );
}

/// Gives the lane its own copy of a page (`%want`) that it is about to write, and starts the instruction
/// again. Lanes of a warp that want the same page share a frame.
fn own_page(out: &mut String) {
    let _ = write!(
        out,
        "OWN_PAGE:
\tshl.b64 %t20, %want, 3;
\tadd.u64 %t20, %t20, %page_table;
\tcvt.u32.u64 %s20, %want;
\tactivemask.b32 %s21;
\tmatch.any.sync.b32 %s22, %s20, %s21;
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
\tmov.b32 %stop, {no_frame};
\tmov.b64 %detail, %want;
\t@%q2 bra STOP;
\tmad.wide.u32 %t21, %s24, {FRAME_BYTES}, %frames;
\tshl.b64 %t22, %want, 12;
\tadd.u64 %t22, %t22, %memory;
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
\tbra LOOP;
",
        next = std::mem::offset_of!(Pool, next),
        size = std::mem::offset_of!(Pool, size),
        no_frame = stop::NO_FRAME,
    );
}

fn stops(out: &mut String) {
    let _ = write!(
        out,
        "NOT_DECODED:
BEYOND:
\tcvt.u64.u32 %t10, %offset;
\tadd.u64 %target, %t10, %code_start;
NO_CODE:
\tmov.b32 %stop, {no_code};
\tmov.b64 %detail, %target;
\tbra STOP_AT_TARGET;
UNDEFINED:
\tmov.b32 %stop, {undefined};
\tmov.b64 %detail, {{%w2, %w3}};
\tbra STOP;
BREAKPOINT:
\tmov.b32 %stop, {breakpoint};
\tmov.b64 %detail, 0;
\tbra STOP;
STOP_AFTER:
\tadd.u32 %offset, %offset, 4;
\tsub.u32 %fuel, %fuel, 1;
STOP:
\tcvt.u64.u32 %t10, %offset;
\tadd.u64 %target, %t10, %code_start;
STOP_AT_TARGET:
",
        no_code = stop::NO_CODE,
        undefined = stop::UNDEFINED,
        breakpoint = stop::BREAKPOINT,
    );
}

fn epilogue(out: &mut String) {
    let _ = write!(
        out,
        "\tbra SAVE_AT_TARGET;
SAVE:
\tcvt.u64.u32 %t10, %offset;
\tadd.u64 %target, %t10, %code_start;
SAVE_AT_TARGET:
\tcvt.u64.u32 %t12, %fuel;
\tadd.u64 %budget, %budget, %t12;
\tsub.u64 %count_base, %count_base, %t12;
\tst.global.u64 [%status+{budget}], %budget;
\tst.global.u64 [%status+{count}], %count_base;
\tst.global.u64 [%status+{detail}], %detail;
\tst.global.u32 [%status+{stop}], %stop;
",
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
    let _ = writeln!(out, "\tst.global.b64 [%state+{}], %target;", offset(kvrm_a64::state::PC));
    for flag in [N, Z, C, V] {
        let register = flag_register(flag).expect("a flag");
        let _ = writeln!(
            out,
            "\tselp.b32 %s13, 1, 0, {register};\n\tst.global.u8 [%state+{}], %s13;",
            offset(flag)
        );
    }
    out.push_str("\tret;\n");
}
