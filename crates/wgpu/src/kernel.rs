//! The interpreter kernel around the handlers.
//!
//! One invocation is one lane. It loads the lane's registers, runs instructions until the lane stops or the
//! launch's share is used up, and stores them again. Each turn of the loop reads the record of the
//! instruction at PC and calls its handler, so lanes of a subgroup that wait for each other all go on.

use std::fmt::Write;

use kvrm_a64::state::{CpuState, EXCLUSIVE_LEN, N, PC, VARS, X_SLOTS};
use kvrm_engine::MemoryModel;
use kvrm_engine::kernel::{BREAKPOINT, FIRST_HANDLER, Handlers, NOT_DECODED, UNDEFINED, stop};
use kvrm_ir::Var;
use kvrm_ir::legalise::legalise;
use kvrm_mem::PAGE;

use crate::{LACKS, emit};

/// Invocations in a workgroup.
pub(crate) const WORKGROUP: u32 = 64;

/// What a kernel's text depends on, beside its handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Who sees which memory.
    pub(crate) model: MemoryModel,
    /// Bytes of guest memory.
    pub(crate) size: u64,
    /// Lanes that share a frame: 32 or fewer.
    pub(crate) group: u32,
    /// Every write faults; memory is shared.
    pub(crate) read_only: bool,
}

/// The text of a kernel with these handlers.
pub(crate) fn kernel(handlers: &Handlers, memory: &Memory) -> String {
    let mut out = String::new();
    constants(&mut out, memory);
    out.push_str(include_str!("state.wgsl"));
    out.push_str(match memory.model {
        MemoryModel::Private => include_str!("private.wgsl"),
        MemoryModel::Shared if memory.read_only => include_str!("read_only.wgsl"),
        MemoryModel::Shared => include_str!("shared.wgsl"),
    });
    out.push_str(include_str!("memory.wgsl"));
    if !memory.read_only {
        out.push_str(include_str!("write.wgsl"));
    }
    for (index, handler) in handlers.iter().enumerate() {
        let _ = writeln!(out, "\n// {}", handler.row.name);
        let legal = legalise(handler.routine(), LACKS);
        emit::handler(&mut out, FIRST_HANDLER + index as u32, &legal);
    }
    dispatch(&mut out, handlers);
    out.push_str(include_str!("run.wgsl"));
    out
}

/// Where a variable is in a lane's state, in words of 32 bits.
pub(crate) fn word_of(var: Var) -> usize {
    VARS[usize::from(var.id)].1 / 4
}

/// Everything that the fixed parts of the text call by name.
fn constants(out: &mut String, memory: &Memory) {
    let words = size_of::<CpuState>() / 4;
    let numbers = [
        ("WORKGROUP", WORKGROUP as usize),
        ("STATE_WORDS", words),
        ("X_SLOTS", X_SLOTS),
        ("PC_WORD", word_of(PC)),
        ("FLAGS_WORD", word_of(N)),
        ("EXCLUSIVE_LEN_WORD", word_of(EXCLUSIVE_LEN)),
        ("PAGES", (memory.size / PAGE) as usize),
        ("GROUP", memory.group as usize),
        ("RUNNING", stop::RUNNING as usize),
        ("MAX_CYCLES", stop::MAX_CYCLES as usize),
        ("NO_CODE", stop::NO_CODE as usize),
        ("UNDEFINED", stop::UNDEFINED as usize),
        ("BREAKPOINT", stop::BREAKPOINT as usize),
        ("CODE_WRITE", stop::CODE_WRITE as usize),
        ("NO_FRAME", stop::NO_FRAME as usize),
        ("EXIT", stop::EXIT as usize),
    ];
    for (name, number) in numbers {
        let _ = writeln!(out, "const {name}: u32 = {number}u;");
    }
    let _ = writeln!(out, "const SIZE: u64 = 0x{:x}lu;", memory.size);
}

/// From the number in a record to the handler.
fn dispatch(out: &mut String, handlers: &Handlers) {
    out.push_str("\nfn dispatch(w: vec4<u32>) {\n  switch (w.x & 0xffffu) {\n");
    let special = [
        (NOT_DECODED, "stop = NO_CODE; detail = pc();"),
        (UNDEFINED, "stop = UNDEFINED; detail = u64(w.z) | (u64(w.w) << 32u);"),
        (BREAKPOINT, "stop = BREAKPOINT; detail = 0lu;"),
    ];
    for (number, text) in special {
        let _ = writeln!(out, "    case {number}u: {{ {text} }}");
    }
    for number in (FIRST_HANDLER..).take(handlers.len()) {
        let _ = writeln!(out, "    case {number}u: {{ h{number}(w); }}");
    }
    out.push_str("    default: { stop = NO_CODE; detail = pc(); }\n  }\n}\n");
}
