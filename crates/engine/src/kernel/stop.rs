//! Numbers by which a kernel says why a lane stopped.

use kvrm_ir::Access;

use crate::Stop;

/// The lane has not stopped.
pub const RUNNING: u32 = 0;
/// Its budget is used up.
pub const MAX_CYCLES: u32 = 1;
/// No record for PC: outside the decoded code, or not yet decoded.
pub const NO_CODE: u32 = 2;
/// The word at PC is not an instruction; the detail is the word.
pub const UNDEFINED: u32 = 3;
/// A breakpoint is set at PC.
pub const BREAKPOINT: u32 = 4;
/// The instruction writes decoded code.
pub const CODE_WRITE: u32 = 5;
/// No frame was left for a page that is written.
pub const NO_FRAME: u32 = 6;
/// The host has found the stop.
pub const ENDED: u32 = 7;
/// Exits of instructions start here, by reason.
pub const EXIT: u32 = 16;
/// Refused accesses start here.
pub const FAULT: u32 = 32;

/// The number of an instruction's exit.
pub fn exit(reason: u8) -> u32 {
    EXIT + u32::from(reason)
}

/// The number of a refused access.
pub fn fault(access: Access) -> u32 {
    FAULT
        + match access {
            Access::Read => 0,
            Access::Write => 1,
            Access::ReadWrite => 2,
        }
}

/// True if the lane stopped for the host to do something, after which it goes on.
pub fn is_for_host(stop: u32) -> bool {
    matches!(stop, NO_CODE | CODE_WRITE | NO_FRAME)
}

/// The guest's stop that a number means, if it is not for the host.
pub fn meaning(stop: u32, detail: u64) -> Stop {
    match stop {
        MAX_CYCLES => Stop::MaxCycles,
        UNDEFINED => Stop::Undefined { word: detail as u32 },
        BREAKPOINT => Stop::Breakpoint { imm: None },
        FAULT => Stop::from_fault(Access::Read, detail),
        _ if stop > FAULT => Stop::from_fault(Access::Write, detail),
        _ => Stop::from_exit((stop - EXIT) as u8, detail),
    }
}
