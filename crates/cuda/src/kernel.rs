//! The interpreter kernel around the handlers.
//!
//! One thread is one lane. It loads the lane's registers into a local array, runs instructions until the
//! lane stops or the launch's share is used up, and stores them again. Each turn of the loop reads
//! the record of the instruction at PC and branches to its handler.

use std::fmt::Write;

use kvrm_a64::state::{CpuState, EXCLUSIVE_LEN, VectorState, X_SLOTS};
use kvrm_engine::MemoryModel;
use kvrm_engine::code::BLOCK_STRIDE;
use kvrm_engine::kernel::{
    BREAKPOINT, DIVERTED, FIRST_HANDLER, Handlers, NOT_DECODED, ON_HOST, Record, UNDEFINED, stop,
};
use kvrm_engine::launch::Status;
use kvrm_ir::legalise::legalise;
use kvrm_ir::{Access, Routine};
use kvrm_mem::PAGE;

use crate::call::functions;
use crate::diverted::diverted;
use crate::emit::{Emitter, FLAGS, LACKS, Setting, var_offset};
use crate::float;
use crate::memory::{BLOCK_BITS, FRAME_BYTES, MemorySpec};

/// What a launch is given, in this order, all 64 bits wide.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Arguments {
    /// Registers: one [`CpuState`] per lane.
    pub(crate) states: u64,
    /// Vector registers: one [`VectorState`](kvrm_a64::state::VectorState) per lane.
    pub(crate) vectors: u64,
    /// One [`Status`] per lane.
    pub(crate) statuses: u64,
    /// Number of lanes.
    pub(crate) lanes: u64,
    /// Room for the numbers of lanes that stop.
    pub(crate) stopped: u64,
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
    /// The directory of records that lanes have of their own.
    pub(crate) directory: u64,
    /// Its length less one.
    pub(crate) directory_mask: u64,
    /// [`Control`].
    pub(crate) control: u64,
    /// The map of pages of mapped memory.
    pub(crate) page_map: u64,
    /// Which parts of the records the blocks of mapped memory have, counted from one.
    pub(crate) code_blocks: u64,
}

/// What is counted on the device.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Pool {
    /// Frames handed out, the unused first one included; may run over the size.
    pub(crate) next: u32,
    /// Frames there are.
    pub(crate) size: u32,
    /// Lanes that stopped in the last launch.
    pub(crate) stopped: u32,
    pub(crate) unused: u32,
    /// The lock of 128-bit exchanges.
    pub(crate) lock: u32,
    /// Set while a kernel runs, for the host or by a lane that others may be waiting for: end soon.
    pub(crate) cancel: u32,
    /// When to look at [`Control::cancel`] again, by the device's clock.
    pub(crate) next_look: u64,
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

/// Nanoseconds between two looks at [`Control::cancel`]. It is across the bus: some lane looks for all, and
/// passes on what it sees.
const LOOK: u64 = 1_000_000;
/// Instructions between two looks at [`Pool::cancel`].
const CHUNK: u64 = 1 << 12;
/// A group of lanes that has waited `1 << BONUS` times counts as one lane more.
const BONUS: u32 = 1;
/// Registers that a thread may have where there are vectors, which leaves room for 1,024 threads on a multiprocessor.
/// Some handlers would have more, at the expense of all others. Without vectors, none needs as many.
const MAX_REGISTERS: u32 = 64;
/// Bytes of a record.
pub(crate) const RECORD: usize = size_of::<Record>();

/// What a kernel's text depends on, beside its handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelTarget {
    pub(crate) memory: MemorySpec,
    /// Compute capability of the device, as in 90 for 9.0.
    pub(crate) capability: u32,
}

impl KernelTarget {
    /// True if a warp can find the least of its lanes' numbers in one instruction.
    fn has_redux(&self) -> bool {
        self.capability >= 80
    }
}

/// The text of a kernel with these handlers.
pub(crate) fn kernel(handlers: &Handlers, target: &KernelTarget) -> String {
    let (version, capability) = if target.has_redux() { ("7.0", 80) } else { ("6.5", 70) };
    let mut out = format!(".version {version}\n.target sm_{capability}\n.address_size 64\n\n");
    let legal = handlers.iter().map(|handler| legalise(&handler.routine, LACKS));
    let routines: Vec<Routine> = legal.collect();
    let setting = Setting { memory: target.memory, vectors: handlers.use_vectors() };
    functions(&mut out, &setting, &routines);
    let _ = writeln!(
        out,
        ".visible .entry run(.param .align 8 .b8 args[{}]){}\n{{",
        size_of::<Arguments>(),
        if setting.vectors { format!("\n.maxnreg {MAX_REGISTERS}") } else { String::new() },
    );
    declare(&mut out);
    prologue(&mut out, target);
    if setting.vectors {
        load_vectors(&mut out);
        float::load(&mut out);
    }
    start(&mut out, target);
    chunk(&mut out);
    branch(&mut out, target);
    gather(&mut out, target);
    fetch(&mut out, handlers, target);
    for (number, (handler, routine)) in (FIRST_HANDLER..).zip(handlers.iter().zip(&routines)) {
        let _ = writeln!(out, "// {}", handler.row.name);
        Emitter::handler(&mut out, &setting, number, routine);
    }
    if target.memory.model == MemoryModel::Private {
        own_page(&mut out);
        diverted(&mut out);
    }
    stops(&mut out, target);
    out.push_str("END:\n");
    if setting.vectors {
        save_vectors(&mut out);
        float::save(&mut out);
    }
    epilogue(&mut out);
    out.push_str("}\n");
    out
}

fn declare(out: &mut String) {
    let (bytes, vector_bytes) = (8 * X_SLOTS, size_of::<VectorState>());
    let _ = write!(
        out,
        "\t.local .align 8 .b8 regs[{bytes}];
\t.local .align 16 .b8 vregs[{vector_bytes}];
\t.reg .pred %fn, %fz, %fc, %fv, %q<16>;
\t.reg .b32 %x_base, %v_base, %w<4>, %at, %limit, %chunk, %waited, %records_low, %records_high;
\t.reg .b32 %records_bytes, %bias, %code_near_low, %code_span_low, %stop, %want, %lane, %lane_bit, %laneid, %s<32>;
\t.reg .b64 %target, %count_base, %budget, %share, %detail, %state, %status, %t<64>;
\t.reg .b64 %memory, %frames, %page_table, %pool, %lock, %records, %code_start, %code_len;
\t.reg .b64 %code_map, %code_near, %code_span, %page_map, %code_blocks;
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

fn prologue(out: &mut String, target: &KernelTarget) {
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
        "%page_map" = page_map,
        "%code_blocks" = code_blocks,
    );
    let _ = write!(
        out,
        "\tmov.u32 %s0, %ctaid.x;
\tmov.u32 %s1, %ntid.x;
\tmov.u32 %s2, %tid.x;
\tmad.lo.u32 %lane, %s0, %s1, %s2;
\tcvt.u64.u32 %t5, %lane;
\tsetp.ge.u64 %q0, %t5, %t2;
\t@%q0 ret;
\tmad.wide.u32 %state, %lane, {state}, %t0;
\tmad.wide.u32 %status, %lane, {status}, %t1;
\tld.global.u32 %stop, [%status+{stop}];
\tsetp.eq.u32 %q0, %stop, {running};
\tsetp.eq.or.u32 %q0, %stop, {no_code}, %q0;
\tsetp.eq.or.u32 %q0, %stop, {no_frame}, %q0;
\tsetp.eq.or.u32 %q0, %stop, {code_write}, %q0;
\tsub.u32 %s3, %stop, {no_handler};
\tsetp.le.or.u32 %q0, %s3, {most_rights}, %q0;
\t@!%q0 ret;
\tmov.b32 %stop, {running};
\tadd.u64 %lock, %pool, {lock};
\tsub.u64 %code_near, %code_start, 64;
\tadd.u64 %code_span, %code_len, 128;
\tcvt.u32.u64 %code_near_low, %code_near;
\tcvt.u32.u64 %code_span_low, %code_span;
\tmov.u32 %x_base, regs;
\tmov.u32 %v_base, vregs;
\tand.b32 %laneid, %lane, 31;
\tmov.b32 %s4, 1;
\tshl.b32 %lane_bit, %s4, %laneid;
",
        state = size_of::<CpuState>(),
        status = size_of::<Status>(),
        stop = std::mem::offset_of!(Status, stop),
        running = stop::RUNNING,
        no_code = stop::NO_CODE,
        no_frame = stop::NO_FRAME,
        code_write = stop::CODE_WRITE,
        // The numbers from this one on are for mapped memory.
        no_handler = stop::NO_HANDLER,
        most_rights = stop::no_page(Access::ReadWrite) - stop::NO_HANDLER,
        lock = std::mem::offset_of!(Pool, lock),
    );
    if target.memory.model == MemoryModel::Private {
        out.push_str(
            "\tshr.u32 %s5, %lane, 5;
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
    let _ = writeln!(out, "\tld.global.b64 %target, [%state+{}];", var_offset(kvrm_a64::state::PC));
    for (index, register) in FLAGS.into_iter().enumerate() {
        let offset = std::mem::offset_of!(CpuState, flags) + index;
        let _ = writeln!(
            out,
            "\tld.global.u8 %s6, [%state+{offset}];\n\tsetp.ne.u32 {register}, %s6, 0;"
        );
    }
}

/// Loads the vector registers, for kernels with handlers that use them.
fn load_vectors(out: &mut String) {
    arguments!(out, "%t8" = vectors);
    let _ = writeln!(out, "\tmad.wide.u32 %t8, %lane, {}, %t8;", size_of::<VectorState>());
    for offset in (0..size_of::<VectorState>()).step_by(16) {
        let _ = writeln!(
            out,
            "\tld.global.v2.b64 {{%t9, %t10}}, [%t8+{offset}];\n\tst.local.v2.b64 [vregs+{offset}], {{%t9, %t10}};"
        );
    }
}

/// Stores them again, before the epilogue.
fn save_vectors(out: &mut String) {
    arguments!(out, "%t8" = vectors);
    let _ = writeln!(out, "\tmad.wide.u32 %t8, %lane, {}, %t8;", size_of::<VectorState>());
    for offset in (0..size_of::<VectorState>()).step_by(16) {
        let _ = writeln!(
            out,
            "\tld.local.v2.b64 {{%t9, %t10}}, [vregs+{offset}];\n\tst.global.v2.b64 [%t8+{offset}], {{%t9, %t10}};"
        );
    }
}

/// Goes to where the lane is.
fn start(out: &mut String, target: &KernelTarget) {
    let _ = write!(
        out,
        "\tld.global.u64 %budget, [%status+{budget}];
\tld.global.u64 %count_base, [%status+{count}];
\tmov.b64 {{%records_low, %records_high}}, %records;
\tcvt.u32.u64 %s8, %code_len;
\tshl.b32 %records_bytes, %s8, 2;
\tcvt.u32.u64 %s8, %code_start;
\tshl.b32 %s8, %s8, 2;
\tsub.u32 %bias, %records_low, %s8;
\tmov.b32 %at, 0;
\tmov.b32 %limit, 0;
\tmov.b32 %chunk, 0;
\tmov.b32 %waited, 0;
\tmov.b64 %detail, 0;
",
        budget = std::mem::offset_of!(Status, budget),
        count = std::mem::offset_of!(Status, count),
    );
    if target.memory.mapped {
        // The block that it is in has to be found.
        out.push_str("\tbra OTHER_BLOCK;\n");
        return;
    }
    out.push_str(
        "\tsub.u64 %t10, %target, %code_start;
\tcvt.u32.u64 %s8, %t10;
\tsetp.ge.u64 %q0, %t10, %code_len;
\tand.b32 %s9, %s8, 3;
\tsetp.ne.or.u32 %q0, %s9, 0, %q0;
\t@%q0 bra NO_CODE;
\tmad.lo.u32 %at, %s8, 4, %records_low;
\tmov.b32 %limit, %at;
\tbra GATHER;
",
    );
}

/// A new chunk of instructions: all lanes of the warp have used up the last one, or have stopped. They end
/// together when none can go on.
fn chunk(out: &mut String) {
    let _ = write!(
        out,
        "CHUNK:
\tcvt.u64.u32 %t14, %chunk;
\tred.global.add.u64 [%pool+{executed}], %t14;
\tld.volatile.global.u64 %t9, [%pool+{next_look}];
\tmov.u64 %t10, %globaltimer;
\tsetp.lt.u64 %q0, %t10, %t9;
\t@%q0 bra LOOKED;
\tadd.u64 %t11, %t10, {LOOK};
\tatom.global.cas.b64 %t12, [%pool+{next_look}], %t9, %t11;
\tsetp.ne.u64 %q0, %t12, %t9;
\t@%q0 bra LOOKED;
\tld.param.u64 %t10, [args+{control}];
\tld.volatile.global.u64 %t11, [%pool+{executed}];
\tst.volatile.global.u64 [%t10+{shown}], %t11;
\tld.volatile.global.u32 %s7, [%t10+{cancelled}];
\tsetp.ne.u32 %q0, %s7, 0;
\t@%q0 st.volatile.global.u32 [%pool+{cancel}], %s7;
LOOKED:
\tsetp.eq.u32 %q0, %stop, {running};
\tsetp.eq.and.u64 %q1, %budget, 0, %q0;
\tselp.b32 %stop, {max}, %stop, %q1;
\tld.volatile.global.u32 %s7, [%pool+{cancel}];
\tsetp.eq.and.u32 %q0, %s7, 0, %q0;
\tmin.u64 %t9, %budget, %share;
\tmin.u64 %t9, %t9, {CHUNK};
\tselp.b64 %t9, %t9, 0, %q0;
\tsetp.ne.u64 %q0, %t9, 0;
\tvote.sync.any.pred %q1, %q0, 0xffffffff;
\t@!%q1 bra END;
\tsub.u64 %budget, %budget, %t9;
\tsub.u64 %share, %share, %t9;
\tadd.u64 %count_base, %count_base, %t9;
\tcvt.u32.u64 %chunk, %t9;
\tmad.lo.u32 %limit, %chunk, {RECORD}, %at;
\tbra GATHER;
",
        executed = std::mem::offset_of!(Pool, executed),
        cancel = std::mem::offset_of!(Pool, cancel),
        next_look = std::mem::offset_of!(Pool, next_look),
        control = std::mem::offset_of!(Arguments, control),
        shown = std::mem::offset_of!(Control, executed),
        cancelled = std::mem::offset_of!(Control, cancel),
        max = stop::MAX_CYCLES,
        running = stop::RUNNING,
    );
}

/// After a branch: `BRANCH` to the address in `%target`, or `BRANCHED` where `%at` is set already. Only
/// computed addresses can be anywhere; others are within the reach of a 32-bit distance.
fn branch(out: &mut String, target: &KernelTarget) {
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
/// for one whose next record, at `%at`, is outside of its block.
fn other_block(out: &mut String, target: &KernelTarget) {
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
\tshr.u64 %t10, %target, {BLOCK_BITS};
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
fn gather(out: &mut String, target: &KernelTarget) {
    out.push_str("GATHER:\n");
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
\t@%q0 bra GATHER;
\tbra FETCH;
CHOOSE:
\tmatch.any.sync.b32 %s10, %s8, 0xffffffff;
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

/// The loop's head. `%at` is the low half of the address of the next instruction's record, and steps to
/// the one after before the handler is called.
fn fetch(out: &mut String, handlers: &Handlers, target: &KernelTarget) {
    let _ = write!(
        out,
        "NEXT:
\tsetp.eq.u32 %q0, %at, %limit;
\t@%q0 bra {used_up};
FETCH:
\tmov.b64 %t11, {{%at, %records_high}};
\tld.global.v4.u32 {{%w0, %w1, %w2, %w3}}, [%t11];
\tadd.u32 %at, %at, {RECORD};
\tand.b32 %s10, %w0, 0xffff;
",
        used_up = if target.has_redux() { "GATHER" } else { "CHUNK" },
    );
    // In shared memory all lanes have the same code.
    let label = match target.memory.model {
        MemoryModel::Private => "DIVERTED",
        MemoryModel::Shared => "NOT_DECODED",
    };
    let mut targets = vec![
        (NOT_DECODED, "NOT_DECODED"),
        (UNDEFINED, "UNDEFINED"),
        (BREAKPOINT, "BREAKPOINT"),
        (DIVERTED, label),
        (ON_HOST, "ON_HOST"),
    ];
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
fn stops(out: &mut String, target: &KernelTarget) {
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
fn epilogue(out: &mut String) {
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
