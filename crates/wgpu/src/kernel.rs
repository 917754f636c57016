//! The interpreter kernel around the handlers.
//!
//! One invocation is one lane. It loads the lane's registers, runs instructions until the lane stops or the
//! launch's share is used up, and stores them again. Lanes of a subgroup that are at the same place go on
//! together up to the next branch, where it is decided again who does.

use std::fmt::Write;

use kvrm_a64::state::{CALLER, CpuState, EXCLUSIVE_LEN, PC, V, VARS, X_SLOTS};
use kvrm_engine::MemoryModel;
use kvrm_engine::code::{
    BLOCK_PAGES, BLOCK_STRIDE, DIRECTORY_FACTORS, DIRECTORY_SHIFT, GRANULE_RECORDS, NOBODY,
};
use kvrm_engine::kernel::{
    BLOCK, BREAKPOINT, DIVERTED, FIRST_HANDLER, Handlers, NOT_DECODED, ON_HOST, UNDEFINED, stop,
};
use kvrm_engine::memory::{LEAF_PAGES, RIGHTS_BITS, VARIES};
use kvrm_engine::translation::Translated;
use kvrm_ir::Var;
use kvrm_mem::{GRANULE, PAGE};

use crate::emit::calls::{self, Calls, Legal};
use crate::emit::{self, Continuation, Emitted, HELD};
use crate::entry::with_blocks;
use crate::region::{Blocks, GROUPED};
use crate::windows::Windows;

/// Invocations in a workgroup.
pub(crate) const WORKGROUP: u32 = 64;

/// What a kernel's text depends on, beside its handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTarget {
    /// Who sees which memory.
    pub(crate) model: MemoryModel,
    /// Bytes of guest memory.
    pub(crate) size: u64,
    /// Lanes that share a frame: 32 or fewer, and no more than a subgroup has.
    pub(crate) group: u32,
    /// Every write faults; memory is shared.
    pub(crate) read_only: bool,
    /// The most lanes in a subgroup.
    pub(crate) subgroup: u32,
    /// Pages are anywhere, and have permissions; memory is private.
    pub(crate) mapped: bool,
    /// What programs may access of mapped memory; what is behind that is their supervisors'.
    pub(crate) program: u64,
    /// How memory is spread over bindings.
    pub(crate) windows: Windows,
    /// How lanes that share memory keep out of each other's way.
    pub(crate) atomics: Atomics,
}

/// What a device has for lanes that share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomics {
    /// 64-bit atomics.
    Wide,
    /// None of 64 bits (Metal): whoever writes a word takes a lock.
    Locks {
        /// The device has memory that can be declared coherent.
        coherent: bool,
    },
}

/// Locks of shared memory, where there are no 64-bit atomics.
pub(crate) const LOCKS: usize = 1 << 12;

/// Room for notes of where lanes are, a power of two.
pub(crate) const SAMPLES: usize = 1 << 12;

/// The text of a kernel with these handlers, and perhaps with translated code.
pub(crate) fn kernel(
    handlers: &Handlers,
    translated: Option<Translated<'_>>,
    memory: &KernelTarget,
) -> String {
    let mut out = String::new();
    constants(&mut out, memory);
    out.push_str(include_str!("state.wgsl"));
    out.push_str(match handlers.use_vectors() {
        true => include_str!("vectors.wgsl"),
        false => "\nfn load_vectors() {}\nfn save_vectors() {}\n",
    });
    memory.windows.declare(&mut out, memory);
    out.push_str(match memory.mapped {
        true => include_str!("mapped.wgsl"),
        false => include_str!("flat.wgsl"),
    });
    if memory.model == MemoryModel::Private && !memory.mapped {
        out.push_str(include_str!("private_flat.wgsl"));
    }
    out.push_str(match memory.model {
        MemoryModel::Private => include_str!("private.wgsl"),
        MemoryModel::Shared if memory.read_only => include_str!("read_only.wgsl"),
        MemoryModel::Shared => include_str!("shared.wgsl"),
    });
    out.push_str(include_str!("memory.wgsl"));
    if !memory.read_only {
        out.push_str(include_str!("write.wgsl"));
    }
    let held =
        if handlers.iter().any(|handler| calls::has_calls(&handler.routine)) { HELD } else { &[] };
    let mut made = Vec::new();
    let mut calls = Calls::default();
    for (number, handler) in (FIRST_HANDLER..).zip(handlers.iter()) {
        let name = handler.row.name;
        made.push(match calls::legal(&handler.routine) {
            Legal::Whole(routine) => {
                let _ = writeln!(out, "\n// {name}");
                emit::handler(&mut out, number, &routine, held, memory.mapped)
            }
            Legal::Pieces(routine, pieces) => calls.add(number, name, routine, pieces),
        });
    }
    calls.write(&mut out, FIRST_HANDLER + handlers.len() as u32);
    run_unaligned(&mut out, &made);
    let diverts = handlers.divert() && memory.model == MemoryModel::Private;
    if diverts {
        out.push_str(include_str!("diverted.wgsl"));
    }
    let blocks = translated.map(|translated| Blocks::new(translated, held));
    run_straight(&mut out, &made, diverts, blocks.is_some());
    votes(&mut out, memory.subgroup);
    if blocks.is_some() {
        out.push_str(include_str!("blocks.wgsl"));
        if !memory.read_only {
            out.push_str(include_str!("blocks_write.wgsl"));
        }
    }
    // What is mapped is not translated, and what is translated need not be found.
    out.push_str(match memory.mapped || blocks.is_some() {
        true => "\nfn note_turn(turn: u32) {}\n\nfn note_place() {}\n",
        false => include_str!("samples.wgsl"),
    });
    out.push_str(&run(held, blocks.as_ref()));
    out
}

/// The text around the loop. Variables that are held come and go with the vector registers.
fn run(held: &[Var], blocks: Option<&Blocks<'_>>) -> String {
    let text = include_str!("run.wgsl");
    let mut text = blocks.map_or(text.to_string(), |blocks| with_blocks(text, blocks));
    for var in held {
        let (name, word) = (var.name, word_of(*var));
        let load = format!("load_vectors();\n  {name} = states[state + {word}u];");
        let save = format!("save_vectors();\n  states[state + {word}u] = {name};");
        text = text.replace("load_vectors();", &load).replace("save_vectors();", &save);
        let _ = writeln!(text, "\nvar<private> {name}: u32;");
    }
    text
}

/// Where a variable is in a lane's state, in words of 32 bits.
pub(crate) fn word_of(var: Var) -> usize {
    VARS[usize::from(var.id)].1 / 4
}

/// Everything that the fixed parts of the text call by name.
fn constants(out: &mut String, memory: &KernelTarget) {
    let words = size_of::<CpuState>() / 4;
    let numbers = [
        ("WORKGROUP", WORKGROUP as usize),
        ("LOCKS", LOCKS),
        ("SAMPLES", SAMPLES),
        ("GROUPED", GROUPED as usize),
        ("STATE_WORDS", words),
        ("X_SLOTS", X_SLOTS),
        ("V_SLOTS", V.len as usize),
        ("PC_WORD", word_of(PC)),
        ("FLAGS_WORD", std::mem::offset_of!(CpuState, flags) / 4),
        ("EXCLUSIVE_LEN_WORD", word_of(EXCLUSIVE_LEN)),
        ("CALLER_WORD", word_of(CALLER)),
        // Tables of mapped memory grow.
        ("PAGES", if memory.mapped { 0 } else { (memory.size / PAGE) as usize }),
        ("VARIES", VARIES as usize),
        ("LEAF_PAGES", LEAF_PAGES),
        ("LEAF_BITS", (LEAF_PAGES as u64 * PAGE).ilog2() as usize),
        ("RIGHTS_BITS", RIGHTS_BITS as usize),
        ("BLOCK_BITS", (BLOCK_PAGES * PAGE).ilog2() as usize),
        ("BLOCK_RECORDS", (BLOCK_STRIDE * PAGE / 4) as usize),
        ("NO_PAGE_STOP", stop::NO_PAGE as usize),
        ("GROUP", memory.group as usize),
        ("GROUP_BITS", (u32::MAX >> (32 - memory.group)) as usize),
        ("RUNNING", stop::RUNNING as usize),
        ("MAX_CYCLES", stop::MAX_CYCLES as usize),
        ("NO_CODE", stop::NO_CODE as usize),
        ("UNDEFINED", stop::UNDEFINED as usize),
        ("BREAKPOINT", stop::BREAKPOINT as usize),
        ("CODE_WRITE", stop::CODE_WRITE as usize),
        ("NO_FRAME", stop::NO_FRAME as usize),
        ("NO_HANDLER", stop::NO_HANDLER as usize),
        ("FIRST_EXCEPTION", stop::FIRST_EXCEPTION as usize),
        ("GRANULE_RECORDS", GRANULE_RECORDS),
        ("NOBODY", NOBODY as usize),
        ("DIRECTORY_FACTOR", DIRECTORY_FACTORS[0] as usize),
        ("DIRECTORY_FACTOR_2", DIRECTORY_FACTORS[1] as usize),
        ("DIRECTORY_SHIFT", DIRECTORY_SHIFT as usize),
    ];
    for (name, number) in numbers {
        let _ = writeln!(out, "const {name}: u32 = {number}u;");
    }
    let _ = writeln!(out, "const SIZE: u64 = 0x{:x}lu;", memory.size);
    if memory.mapped {
        let _ = writeln!(out, "const PROGRAM: u64 = 0x{:x}lu;", memory.program);
    }
    // Addresses within a small memory have 32 bits.
    let (address, suffix) = if memory.size >> 32 == 0 { ("u32", "u") } else { ("u64", "lu") };
    let _ = writeln!(out, "alias Address = {address};");
    let _ = writeln!(out, "const GRANULE: Address = {GRANULE}{suffix};");
}

/// The loop that executes instructions up to a branch, or as long as the lane can. A record that is diverted is
/// looked for elsewhere in the next turn. Where there is translated code, it begins with a record that is given, and comes to
/// an end where a block begins; that is the result.
fn run_straight(out: &mut String, handlers: &[Emitted], diverts: bool, has_blocks: bool) {
    let (distance, fetch) = match diverts {
        true => ("  var distance = 0u;\n", "w = records[at + distance];\n    distance = 0u;"),
        false => ("", "w = records[at];"),
    };
    let (head, variables, fetch, result) = match has_blocks {
        true => (
            "(given: vec4<u32>) -> u32",
            "  var w = given;\n  var is_given = true;\n  var block = TO_GATHER;\n",
            format!("if (!is_given) {{ {fetch} }}\n    is_given = false;"),
            "  return block;\n",
        ),
        false => ("()", "", format!("let {fetch}"), ""),
    };
    let _ = write!(
        out,
        "\nfn run_straight{head} {{
{variables}{distance}  loop {{
    if (at == limit) {{
      break;
    }}
    {fetch}
    at += 1u;
    switch (w.x & 0xffffu) {{
"
    );
    let no_code = "not_decoded();";
    let special = [
        (NOT_DECODED, no_code),
        (UNDEFINED, "stop_before(UNDEFINED, u64(w.z) | (u64(w.w) << 32u));"),
        (BREAKPOINT, "stop_before(BREAKPOINT, 0lu);"),
        (ON_HOST, "stop_before(NO_HANDLER, 0lu);"),
    ];
    let diverted = (DIVERTED, "at -= 1u; distance = own_record(w) - at; continue;");
    let diverted = Some(diverted).filter(|_| diverts);
    let block = Some((BLOCK, "at -= 1u; block = w.y;")).filter(|_| has_blocks);
    for (number, text) in special.into_iter().chain(diverted).chain(block) {
        let _ = writeln!(out, "      case {number}u: {{ {text} }}");
    }
    let mut calling = Vec::new();
    for (number, handler) in (FIRST_HANDLER..).zip(handlers) {
        let text = match handler.then {
            Continuation::NextAfterCalls => {
                calling.push(format!("{number}u"));
                continue;
            }
            Continuation::Next => format!("h{number}(w); continue;"),
            Continuation::MayLeave => format!("if (h{number}(w)) {{ continue; }}"),
            Continuation::Leaves => format!("h{number}(w);"),
        };
        let _ = writeln!(out, "      case {number}u: {{ {text} }}");
    }
    if !calling.is_empty() {
        let _ = writeln!(out, "      case {}: {{ run_calls(w); continue; }}", calling.join(", "));
    }
    let _ = write!(
        out,
        "      default: {{ {no_code} }}
    }}
    if (!unaligned) {{
      break;
    }}
    unaligned = false;
    at += 1u;
    if (!run_unaligned(w)) {{
      break;
    }}
  }}
{result}}}
"
    );
}

/// Executes an instruction of which an access is not aligned. False if it has not been completed.
fn run_unaligned(out: &mut String, handlers: &[Emitted]) {
    out.push_str("\nfn run_unaligned(w: vec4<u32>) -> bool {\n  switch (w.x & 0xffffu) {\n");
    for (number, _) in (FIRST_HANDLER..).zip(handlers).filter(|(_, made)| made.has_unaligned) {
        let _ = writeln!(out, "    case {number}u: {{ return unaligned_{number}(w); }}");
    }
    out.push_str("    default: { return false; }\n  }\n}\n");
}

/// What a ballot gives: a bit for each lane of a subgroup, which has up to 128.
fn votes(out: &mut String, subgroup: u32) {
    let (votes, ballot, count, equal) = match subgroup <= 32 {
        true => ("u32", "subgroupBallot(yes).x", "counts", "a == b"),
        false => (
            "vec4<u32>",
            "subgroupBallot(yes)",
            "counts.x + counts.y + counts.z + counts.w",
            "all(a == b)",
        ),
    };
    let _ = write!(
        out,
        "
alias Votes = {votes};

fn votes(yes: bool) -> Votes {{
  return {ballot};
}}

fn count_votes(votes: Votes) -> u32 {{
  let counts = countOneBits(votes);
  return {count};
}}

fn are_equal(a: Votes, b: Votes) -> bool {{
  return {equal};
}}
"
    );
}
