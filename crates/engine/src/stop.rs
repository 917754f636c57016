//! Why a lane stopped.

use std::fmt::{self, Display, Formatter};

use kvrm_a64::stop as exit;
use kvrm_ir::Access;

/// Why a lane stopped: exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// HLT. PC is at the instruction.
    Halt {
        /// Immediate of the HLT.
        imm: u16,
    },
    /// The word at PC is zero: the program ran into memory that holds nothing. It is a `HALT` too, because programs may
    /// end so.
    ZeroWord,
    /// SVC. PC is at the next instruction: running again resumes.
    Syscall {
        /// Immediate of the SVC.
        imm: u16,
    },
    /// BRK, or a breakpoint that the host set. PC is at the instruction.
    Breakpoint {
        /// Immediate of the BRK; `None` for a breakpoint of the host.
        imm: Option<u16>,
    },
    /// The run's limit was reached: running again resumes.
    MaxCycles,
    /// The word at PC is not an instruction.
    Undefined {
        /// The word.
        word: u32,
    },
    /// The instruction at PC could not access memory, and had no effect.
    Fault {
        /// The kind of access.
        kind: FaultKind,
        /// The first address that could not be accessed.
        address: u64,
    },
    /// The engine has no room for what the instruction at PC needs; nothing of it was done. Running again tries
    /// again, which helps after other lanes have been reset. Only engines on devices stop lanes so; what others
    /// cannot get is an error.
    OutOfMemory {
        /// What there is no room for.
        lacking: Lacking,
    },
}

/// What a device has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lacking {
    /// A copy of the page that the lane is about to write.
    Pages,
    /// The code at PC in decoded form: it is too far away from other code, or too different from that of other
    /// lanes.
    Code,
}

impl Lacking {
    /// What is lacking, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Lacking::Pages => "pages",
            Lacking::Code => "code",
        }
    }

    /// What there is no room for, and what helps, in a sentence.
    pub fn advice(self) -> &'static str {
        match self {
            Lacking::Pages => {
                "no room on the device for a copy of the page that is written: use fewer lanes, several devices or the cpu engine"
            }
            Lacking::Code => {
                "no room on the device for code so far from the rest, or so different in each lane: use the cpu engine"
            }
        }
    }
}

/// What was wrong with a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Reading outside memory, or where a page does not allow it.
    Read,
    /// Writing outside memory, or where memory does not allow it.
    Write,
    /// Fetching an instruction outside memory, or where a page does not allow it.
    Fetch,
    /// An address that must be aligned is not.
    Unaligned,
}

impl FaultKind {
    /// Returns the kind of access as a word.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Read => "read",
            FaultKind::Write => "write",
            FaultKind::Fetch => "fetch",
            FaultKind::Unaligned => "unaligned",
        }
    }
}

impl Stop {
    /// Returns the stop's name, for tools and scripts.
    ///
    /// ```
    /// use kvrm_engine::Stop;
    /// assert_eq!(Stop::MaxCycles.name(), "MAX_CYCLES");
    /// assert_eq!((Stop::ZeroWord.name(), Stop::Halt { imm: 0 }.name()), ("HALT", "HALT"));
    /// assert_eq!(Stop::ZeroWord.to_string(), "HALT (all-zero word)");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Stop::Halt { .. } | Stop::ZeroWord => "HALT",
            Stop::Syscall { .. } => "SYSCALL",
            Stop::Breakpoint { .. } => "BREAKPOINT",
            Stop::MaxCycles => "MAX_CYCLES",
            Stop::Undefined { .. } => "UNDEFINED",
            Stop::Fault { .. } => "FAULT",
            Stop::OutOfMemory { .. } => "OUT_OF_MEMORY",
        }
    }

    /// Returns the stop's number, for arrays of stops. A lane that has not stopped has [`Stop::NONE`].
    ///
    /// ```
    /// use kvrm_engine::Stop;
    /// assert_eq!((Stop::Halt { imm: 7 }.code(), Stop::Syscall { imm: 0 }.code()), (1, 2));
    /// ```
    pub fn code(&self) -> u8 {
        match self {
            Stop::MaxCycles => 0,
            Stop::Halt { .. } | Stop::ZeroWord => 1,
            Stop::Syscall { .. } => 2,
            Stop::Breakpoint { .. } => 3,
            Stop::Undefined { .. } => 4,
            Stop::Fault { .. } => 5,
            Stop::OutOfMemory { .. } => 6,
        }
    }

    /// The [code](Self::code) of a lane that has not stopped.
    pub const NONE: u8 = 255;

    /// True if the lane failed: it reached an undefined word, faulted, or the engine had no room for it.
    ///
    /// ```
    /// use kvrm_engine::{Lacking, Stop};
    /// assert!(Stop::OutOfMemory { lacking: Lacking::Pages }.is_failure() && !Stop::MaxCycles.is_failure());
    /// ```
    pub fn is_failure(&self) -> bool {
        match self {
            Stop::Undefined { .. } | Stop::Fault { .. } | Stop::OutOfMemory { .. } => true,
            Stop::Halt { .. }
            | Stop::ZeroWord
            | Stop::Syscall { .. }
            | Stop::Breakpoint { .. }
            | Stop::MaxCycles => false,
        }
    }

    /// Returns the stop for an exit of A64 semantics.
    pub fn from_exit(reason: u8, detail: u64) -> Stop {
        let imm = detail as u16;
        match reason {
            exit::SVC => Stop::Syscall { imm },
            exit::HLT => Stop::Halt { imm },
            exit::BRK => Stop::Breakpoint { imm: Some(imm) },
            exit::UDF if imm == 0 => Stop::ZeroWord,
            exit::UDF => Stop::Undefined { word: imm.into() },
            exit::UNALIGNED => Stop::Fault { kind: FaultKind::Unaligned, address: detail },
            _ => unreachable!("no such exit"),
        }
    }

    /// Returns the stop for a failed probe.
    pub fn from_fault(access: Access, address: u64) -> Stop {
        let kind = match access {
            Access::Read => FaultKind::Read,
            Access::Write | Access::ReadWrite => FaultKind::Write,
        };
        Stop::Fault { kind, address }
    }

    /// Returns the stop as [mapped](crate::Config::mapped) memory has it: without the tag of an address.
    ///
    /// ```
    /// use kvrm_engine::{FaultKind, Stop};
    /// let at = |address| Stop::Fault { kind: FaultKind::Unaligned, address };
    /// assert_eq!(at(0x3f00_0000_0000_0001).untagged(), at(1));
    /// ```
    pub fn untagged(self) -> Stop {
        match self {
            Stop::Fault { kind, address } => {
                Stop::Fault { kind, address: kvrm_mem::untagged(address) }
            }
            Stop::Halt { .. }
            | Stop::ZeroWord
            | Stop::Syscall { .. }
            | Stop::Breakpoint { .. }
            | Stop::MaxCycles
            | Stop::Undefined { .. }
            | Stop::OutOfMemory { .. } => self,
        }
    }

    /// True if the guest took an exception, which clears the exclusive monitor in hardware.
    pub fn is_exception(&self) -> bool {
        match self {
            Stop::MaxCycles | Stop::Breakpoint { imm: None } | Stop::OutOfMemory { .. } => false,
            Stop::Halt { .. }
            | Stop::ZeroWord
            | Stop::Syscall { .. }
            | Stop::Breakpoint { imm: Some(_) }
            | Stop::Undefined { .. }
            | Stop::Fault { .. } => true,
        }
    }
}

impl Display for Stop {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Stop::Halt { imm } | Stop::Syscall { imm } | Stop::Breakpoint { imm: Some(imm) } => {
                write!(f, " #{imm:#x}")
            }
            Stop::ZeroWord => f.write_str(" (all-zero word)"),
            Stop::Breakpoint { imm: None } | Stop::MaxCycles => Ok(()),
            Stop::Undefined { word } => write!(f, " {word:#010x}"),
            Stop::Fault { kind, address } => write!(f, " {} at {address:#x}", kind.name()),
            Stop::OutOfMemory { lacking } => write!(f, " for {}", lacking.name()),
        }
    }
}
