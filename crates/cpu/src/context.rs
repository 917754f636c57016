//! What translated code and the engine say to each other about a lane.

use std::ffi::c_void;

use kvrm_a64::state::{CpuState, VectorState};

use crate::flags::LeftFlags;

/// Why translated code returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ExitKind {
    /// The code at PC is not translated, or is not reached by a direct jump.
    Chain = 0,
    /// Fewer instructions may be executed than the block at PC has.
    Fuel = 1,
    /// A memory access of the instruction at PC was refused.
    Probe = 2,
    /// An instruction asked to stop the lane.
    Exit = 3,
    /// The word at PC is not an instruction.
    Undefined = 4,
    /// The lane has written memory that the code at PC was made from.
    Stale = 5,
}

impl ExitKind {
    pub(crate) fn from_number(number: u32) -> ExitKind {
        match number {
            0 => ExitKind::Chain,
            1 => ExitKind::Fuel,
            2 => ExitKind::Probe,
            3 => ExitKind::Exit,
            4 => ExitKind::Undefined,
            5 => ExitKind::Stale,
            _ => unreachable!("translated code returned {number}"),
        }
    }
}

/// One entry of a jump cache: where the code for a guest address is.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct JumpEntry {
    pub(crate) pc: u64,
    pub(crate) code: *const u8,
}

/// Entries in a jump cache, a power of two.
pub(crate) const JUMP_ENTRIES: usize = 1024;

/// A guest address that no code has, because it is not aligned. Guests may jump there all the same, so
/// that an entry with it must lead somewhere.
pub(crate) const NO_PC: u64 = 1;

/// The most arguments or results of a function.
pub(crate) const FUNCTION_VALUES: usize = 4;

/// A lane as translated code sees it: registers, memory, and a few words for the way out.
#[repr(C)]
pub(crate) struct LaneContext {
    pub(crate) vectors: VectorState,
    pub(crate) state: CpuState,
    /// Where guest memory starts.
    pub(crate) memory: *mut u8,
    /// Where the granules' state bytes start.
    pub(crate) granules: *mut u8,
    /// The running thread's jump cache.
    pub(crate) jump_cache: *const JumpEntry,
    /// Entry of the slow path of probes.
    pub(crate) probe_stub: *const u8,
    /// Entry of the 128-bit compare and swap.
    pub(crate) cas_stub: *const u8,
    /// Instructions completed before, plus the fuel given: subtracting the fuel left gives the count.
    pub(crate) count_base: u64,
    /// On return: instructions that may still be executed.
    pub(crate) fuel: u64,
    /// On return: an [`ExitKind`].
    pub(crate) exit: u32,
    /// On return: the reason of an exit.
    pub(crate) reason: u32,
    /// On return: the detail of an exit, or the undefined word. For probes, the address.
    pub(crate) detail: u64,
    /// For probes: the length.
    pub(crate) len: u64,
    /// On return: flags still to be computed.
    pub(crate) flags: LeftFlags,
    /// From the slow path of a probe: whether to go on.
    pub(crate) allowed: u64,
    /// Operands of a 128-bit compare and swap: address, expected, new; the old value replaces `expected`.
    pub(crate) cas: [u64; 5],
    /// Arguments of a function, and then its results.
    pub(crate) function: [u64; FUNCTION_VALUES],
    /// What the slow path needs, set for the length of a run.
    pub(crate) host: *mut c_void,
}

impl LaneContext {
    pub(crate) fn new() -> LaneContext {
        LaneContext {
            vectors: VectorState::new(),
            state: CpuState::new(),
            memory: std::ptr::null_mut(),
            granules: std::ptr::null_mut(),
            jump_cache: std::ptr::null(),
            probe_stub: std::ptr::null(),
            cas_stub: std::ptr::null(),
            count_base: 0,
            fuel: 0,
            exit: 0,
            reason: 0,
            detail: 0,
            len: 0,
            flags: LeftFlags::default(),
            allowed: 0,
            cas: [0; 5],
            function: [0; FUNCTION_VALUES],
            host: std::ptr::null_mut(),
        }
    }
}
