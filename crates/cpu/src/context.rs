//! What translated code and the engine say to each other about a lane.

use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;

use kvrm_a64::state::{CpuState, VectorState};

use crate::flags::LeftFlags;
use crate::record::Folder;

/// Why translated code returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ExitKind {
    /// The instruction at PC is not decoded, or there is none.
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
    /// The code at PC was reached so often that it may be worth translating.
    Hot = 6,
    /// A translation leaves the instruction at PC to its handler, which is not there, or could overrun.
    Slow = 7,
}

/// All kinds, by number.
pub(crate) const EXIT_KINDS: [ExitKind; 8] = [
    ExitKind::Chain,
    ExitKind::Fuel,
    ExitKind::Probe,
    ExitKind::Exit,
    ExitKind::Undefined,
    ExitKind::Stale,
    ExitKind::Hot,
    ExitKind::Slow,
];

impl ExitKind {
    pub(crate) fn from_number(number: u32) -> ExitKind {
        EXIT_KINDS[number as usize]
    }
}

/// What the code of records needs of the interpreter.
#[repr(C)]
pub(crate) struct Tables {
    /// Code that leaves at the record it is entered with, by [`ExitKind`]. For [`ExitKind::Slow`], it goes on if it can.
    pub(crate) exits: [*const u8; EXIT_KINDS.len()],
    /// Code by the number of a handler.
    pub(crate) handlers: *const AtomicPtr<u8>,
}

/// Added to the length of a probe that is for a load.
pub(crate) const READS: u64 = 1 << 32;

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
    /// Where records are found by their address.
    pub(crate) sheets: *const AtomicPtr<Folder>,
    /// What interpreted code needs.
    pub(crate) tables: *const Tables,
    /// Bytes of guest memory.
    pub(crate) memory_size: u64,
    /// Entry of the slow path of probes.
    pub(crate) probe_stub: *const u8,
    /// Entry of the 128-bit compare and swap.
    pub(crate) cas_stub: *const u8,
    /// Entry of what computes flags that were left to be computed.
    pub(crate) settle_stub: *const u8,
    /// Instructions completed before, plus the fuel given: subtracting the fuel left gives the count.
    pub(crate) count_base: u64,
    /// Instructions that were executed in translations, if they are counted.
    pub(crate) executed: u64,
    /// On return: instructions that may still be executed.
    pub(crate) fuel: u64,
    /// On return: an [`ExitKind`].
    pub(crate) exit: u32,
    /// On return: the reason of an exit.
    pub(crate) reason: u32,
    /// On return: the detail of an exit, or the undefined word. For probes, the address.
    pub(crate) detail: u64,
    /// For probes: the length, and [`READS`] if memory is not written.
    pub(crate) len: u64,
    /// Flags still to be computed.
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
            sheets: std::ptr::null(),
            tables: std::ptr::null(),
            memory_size: 0,
            probe_stub: std::ptr::null(),
            cas_stub: std::ptr::null(),
            settle_stub: std::ptr::null(),
            count_base: 0,
            executed: 0,
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
