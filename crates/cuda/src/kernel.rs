//! The interpreter kernel around the handlers.
//!
//! One thread is one lane. It loads the lane's registers into a local array, runs instructions until the
//! lane stops or the launch's share is used up, and stores them again. Each turn of the loop reads
//! the record of the instruction at PC and branches to its handler.

use std::fmt::Write;

use kvrm_a64::state::{CpuState, VectorState, X_SLOTS};
use kvrm_engine::MemoryModel;
use kvrm_engine::kernel::{
    BLOCK, BREAKPOINT, DIVERTED, FIRST_HANDLER, Handlers, NOT_DECODED, ON_HOST, Record, UNDEFINED,
    stop,
};
use kvrm_engine::launch::Status;
use kvrm_engine::translation::Translated;
use kvrm_ir::legalise::legalise;
use kvrm_ir::{Access, Routine};

use crate::call::functions;
use crate::diverted::diverted;
use crate::emit::{Emitter, FLAGS, LACKS, Setting, var_offset};
use crate::ending::{epilogue, own_page, stops};
use crate::gather::{branch, gather};
use crate::memory::MemorySpec;
use crate::region::Blocks;
use crate::{entry, float};

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
    /// Where lanes note where they are: [`SAMPLES`] addresses, each with one added.
    pub(crate) samples: u64,
    /// Columns of the slots of mapped memory whose pages vary, a place for each slot.
    pub(crate) page_columns: u64,
    /// Bytes of a column.
    pub(crate) column_bytes: u64,
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
/// Instructions between two looks at [`Pool::cancel`], where they are interpreted, and where there is translated code.
const CHUNK: u64 = 1 << 12;
const TRANSLATED_CHUNK: u64 = 1 << 15;
/// Room for notes of where lanes are, a power of two. Lanes overwrite each other's.
pub(crate) const SAMPLES: usize = 1 << 12;
/// Registers that a thread may have where there are vectors or translated code, which leaves room for 1,024 threads on a multiprocessor.
/// Some handlers would have more, at the expense of all others. Without these, none needs as many.
const MAX_REGISTERS: u32 = 64;
/// Bytes of a record.
pub(crate) const RECORD: usize = size_of::<Record>();

/// What a kernel's text depends on, beside its handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTarget {
    pub(crate) memory: MemorySpec,
    /// Compute capability of the device, as in 90 for 9.0.
    pub(crate) capability: u32,
}

impl KernelTarget {
    /// True if a warp can find the least of its lanes' numbers in one instruction.
    pub(crate) fn has_redux(&self) -> bool {
        self.capability >= 80
    }
}

/// The text of a kernel with these handlers, and perhaps with translated code.
pub(crate) fn kernel(
    handlers: &Handlers,
    translated: Option<Translated<'_>>,
    target: &KernelTarget,
) -> String {
    let (version, capability) = if target.has_redux() { ("7.0", 80) } else { ("6.5", 70) };
    let mut out = format!(".version {version}\n.target sm_{capability}\n.address_size 64\n\n");
    let legal = handlers.iter().map(|handler| legalise(&handler.routine, LACKS));
    let routines: Vec<Routine> = legal.collect();
    let setting = Setting { memory: target.memory, vectors: handlers.use_vectors() };
    let blocks = translated.map(|translated| Blocks::new(translated, &setting));
    functions(&mut out, &setting, &routines);
    let is_limited = setting.vectors || blocks.is_some();
    let _ = writeln!(
        out,
        ".visible .entry run(.param .align 8 .b8 args[{}]){}\n{{",
        size_of::<Arguments>(),
        if is_limited { format!("\n.maxnreg {MAX_REGISTERS}") } else { String::new() },
    );
    declare(&mut out);
    if let Some(blocks) = &blocks {
        entry::declare(&mut out, &blocks.kept);
    }
    prologue(&mut out, target);
    if setting.vectors {
        load_vectors(&mut out);
        float::load(&mut out);
    }
    if blocks.is_some() {
        entry::begin(&mut out);
    }
    start(&mut out, target);
    chunk(&mut out, if blocks.is_some() { TRANSLATED_CHUNK } else { CHUNK });
    branch(&mut out, target);
    gather(&mut out, target, blocks.is_some());
    fetch(&mut out, handlers, blocks.as_ref(), target);
    if let Some(blocks) = &blocks {
        entry::enter(&mut out, blocks);
        entry::ways(&mut out);
        blocks.write(&mut out);
    }
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
    if let Some(blocks) = &blocks {
        entry::save(&mut out, &blocks.kept);
    }
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
fn chunk(out: &mut String, most: u64) {
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
\tsub.u32 %s8, %at, %records_low;
\tshr.s32 %s8, %s8, 2;
\tcvt.s64.s32 %t10, %s8;
\tadd.u64 %t10, %t10, %code_start;
\tadd.u64 %t10, %t10, 1;
\tcvt.u32.u64 %s8, %count_base;
\tmad.lo.u32 %s8, %s8, {spread}, %lane;
\tand.b32 %s8, %s8, {last_sample};
\tld.param.u64 %t11, [args+{samples}];
\tmad.wide.u32 %t11, %s8, 8, %t11;
\t@%q0 st.global.u64 [%t11], %t10;
\tsetp.eq.and.u64 %q1, %budget, 0, %q0;
\tselp.b32 %stop, {max}, %stop, %q1;
\tld.volatile.global.u32 %s7, [%pool+{cancel}];
\tsetp.eq.and.u32 %q0, %s7, 0, %q0;
\tmin.u64 %t9, %budget, %share;
\tmin.u64 %t9, %t9, {most};
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
        samples = std::mem::offset_of!(Arguments, samples),
        last_sample = SAMPLES - 1,
        // A lane's notes go to different places.
        spread = 0x9e37_79b1u32,
    );
}

/// The loop's head. `%at` is the low half of the address of the next instruction's record, and steps to
/// the one after before the handler is called.
fn fetch(
    out: &mut String,
    handlers: &Handlers,
    blocks: Option<&Blocks<'_>>,
    target: &KernelTarget,
) {
    let _ = write!(
        out,
        "NEXT:
\tsetp.eq.u32 %q0, %at, %limit;
\t@%q0 bra {used_up};
FETCH:
\tmov.b64 %t11, {{%at, %records_high}};
",
        used_up = if target.has_redux() { "GATHER" } else { "CHUNK" },
    );
    if blocks.is_some() {
        // The whole record is wanted only where it is interpreted.
        let _ = write!(
            out,
            "\tld.global.v2.u32 {{%s10, %s11}}, [%t11];
\tand.b32 %s10, %s10, 0xffff;
\tsetp.eq.u32 %q0, %s10, {BLOCK};
\t@%q0 bra ENTER;
"
        );
    }
    out.push_str(
        "\tld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%t11];\n\tand.b32 %s10, %w0, 0xffff;\n",
    );
    if let Some(blocks) = blocks {
        out.push_str("HANDLE:\n");
        entry::interpret(out, &blocks.kept);
    }
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
        // Those are not looked up here.
        (BLOCK, "NOT_DECODED"),
    ];
    targets.sort_unstable();
    let special = targets.into_iter().map(|(_, label)| label.to_string());
    let made = (0..handlers.len() as u32).map(|i| format!("H{}", FIRST_HANDLER + i));
    let labels: Vec<String> = special.chain(made).collect();
    let _ = write!(
        out,
        "\tadd.u32 %at, %at, {RECORD};\n\tDISPATCH: .branchtargets {};\n\tbrx.idx %s10, DISPATCH;\n",
        labels.join(", ")
    );
}
