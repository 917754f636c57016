//! Numbers by which a kernel says why a lane stopped.

#[cfg(doc)]
use kvrm_a64::state::CpuState;
use kvrm_ir::Access;
use kvrm_mem::{Bounds, Permissions};

use crate::Stop;

/// The lane has not stopped.
pub const RUNNING: u32 = 0;
/// Its budget is used up.
pub const MAX_CYCLES: u32 = 1;
/// No record for PC: outside the decoded code, or not yet decoded.
pub const NO_CODE: u32 = 2;
/// A breakpoint is set at PC.
pub const BREAKPOINT: u32 = 3;
/// The instruction writes decoded code.
pub const CODE_WRITE: u32 = 4;
/// No frame was left for a page that is written.
pub const NO_FRAME: u32 = 5;
/// The host has found the stop.
pub const ENDED: u32 = 6;
/// The kernel has no handler for the instruction.
pub const NO_HANDLER: u32 = 7;
/// Mapped memory does not have the page of an access, or does not allow it: this and [what it needs](Permissions::bits).
/// The detail is where the access starts.
pub const NO_PAGE: u32 = 8;
/// From here on, the guest took an exception, and the kernel does what [`CpuState::take_exception`] does.
pub const FIRST_EXCEPTION: u32 = UNDEFINED;
/// The word at PC is not an instruction; the detail is the word.
pub const UNDEFINED: u32 = 15;
/// Exits of instructions start here, by reason.
pub const EXIT: u32 = 16;
/// Refused accesses start here; the detail is where the access starts.
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

/// The number of an access that the map of mapped memory does not allow.
pub fn no_page(access: Access) -> u32 {
    NO_PAGE + u32::from(Permissions::needed(access).bits())
}

/// The access of such a number.
pub fn access_without_page(stop: u32) -> Option<Access> {
    [Access::Read, Access::Write, Access::ReadWrite]
        .into_iter()
        .find(|access| no_page(*access) == stop)
}

/// True if the lane stopped for the host to do something, after which it goes on.
pub fn is_for_host(stop: u32) -> bool {
    matches!(stop, NO_CODE | CODE_WRITE | NO_FRAME | NO_HANDLER)
        || access_without_page(stop).is_some()
}

/// The guest's stop that a number means, if it is not for the host.
pub fn meaning(stop: u32, detail: u64, bounds: Bounds) -> Stop {
    let fault = |access| Stop::from_fault(access, bounds.first_refused(access, detail));
    match stop {
        MAX_CYCLES => Stop::MaxCycles,
        UNDEFINED => Stop::Undefined { word: detail as u32 },
        BREAKPOINT => Stop::Breakpoint { imm: None },
        FAULT => fault(Access::Read),
        _ if stop > FAULT => fault(Access::Write),
        _ => Stop::from_exit((stop - EXIT) as u8, detail),
    }
}

#[cfg(test)]
mod tests {
    use kvrm_a64::stop;

    use super::*;

    /// Kernels tell exceptions by their numbers.
    #[test]
    fn numbers_tell_exceptions() {
        let faults = [Access::Read, Access::Write, Access::ReadWrite].map(fault);
        let exits = [stop::SVC, stop::HLT, stop::BRK, stop::UDF, stop::UNALIGNED].map(exit);
        let bounds = Bounds { size: 1 << 20, read_only: false };
        for number in [MAX_CYCLES, BREAKPOINT, UNDEFINED].into_iter().chain(faults).chain(exits) {
            let is_exception = meaning(number, 0, bounds).is_exception();
            assert_eq!(is_exception, number >= FIRST_EXCEPTION, "{number}");
        }
        assert!(
            [RUNNING, NO_CODE, CODE_WRITE, NO_FRAME, ENDED].iter().all(|n| *n < FIRST_EXCEPTION)
        );
        let without_page = [Access::Read, Access::Write, Access::ReadWrite].map(no_page);
        assert!(without_page.iter().all(|n| (NO_HANDLER + 1..FIRST_EXCEPTION).contains(n)));
    }
}
