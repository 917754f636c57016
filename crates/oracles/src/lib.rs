//! Runs AArch64 test cases on emulators written elsewhere: Unicorn and QEMU's
//! user mode.
//!
//! Each oracle is a process that reads cases and writes results. Both show the
//! guest the same machine: 192 KiB of memory at [`MEMORY_START`], zero except
//! for the code and for a data window at its very end, at EL0.
//!
//! # What a case must keep to
//!
//! - A case may access only the window and unmapped addresses. Memory outside
//!   the window is cleared only when code addresses are reused, so a stray
//!   store is seen by later cases.
//! - Code addresses should rise from case to case and then start over: an
//!   oracle discards its translations whenever an address is not above the
//!   ones before it.
//! - Cases that differ only in registers and window are cheapest one after the
//!   other: code that is the same as the case's before, at the same address, is
//!   not translated again.
//! - A case of more than one word must end by itself. Unicorn counts
//!   instructions; QEMU cannot, and stops a case after about a second.
//! - A single instruction that branches to itself takes QEMU a few
//!   milliseconds. `BLR X30` to itself gets a wrong answer from it, because it
//!   is executed a second time.
//!
//! # Where the oracles differ from the architecture or from each other
//!
//! Unicorn is derived from QEMU, so their agreement does not prove them right.
//!
//! - QEMU answers [`OutcomeKind::Other`] to a case with SVC or `HLT #0xF000`,
//!   without running it: they would act on the process itself.
//! - Unicorn computes LDSMAX, LDSMIN and their store forms wrongly for 8, 16 and
//!   32 bits.
//! - Unicorn does not check the alignment of LDAR, STLR, LDAPUR and STLUR, and
//!   neither oracle checks that of LDAPR, or of SP as a base. QEMU has no
//!   FEAT_LSE2: it faults wherever such an access is not naturally aligned.
//! - Neither faults on cache maintenance by an unmapped address, or on a store
//!   exclusive that fails.
//! - A store that straddles the end of memory writes its first bytes on
//!   Unicorn and nothing on QEMU.
//! - QEMU ignores the top byte of data addresses, as Linux does; Unicorn faults.
//! - DC ZVA clears 64 bytes on Unicorn and 512 on QEMU. CTR_EL0 and DCZID_EL0
//!   differ accordingly.
//! - QEMU lets EL0 read the ID registers, as Linux does, and has MTE, SSBS and
//!   DIT; Unicorn has none of these.
//! - Pointer authentication is off on QEMU (its hints do nothing, the rest is
//!   undefined) and has no effect on Unicorn (RETAA acts as RET).
//! - Unicorn's process aborts on some unallocated half-precision vector
//!   encodings; see [`Error::Cases`].
//!
//! # Floating point and vectors
//!
//! Both oracles are their `max` processor, with half precision (FEAT_FP16),
//! cryptography (AES, PMULL, SHA1, SHA256, SHA512, SHA3, SM3, SM4), RDM, DotProd,
//! FHM, FCMA, JSCVT and FRINTTS. QEMU 7.2 has BF16 and I8MM too; Unicorn, made
//! from QEMU 5.0, finds their instructions UNDEFINED, so there QEMU is alone.
//! Neither has AFP, RPRES, EBF16 or anything newer; SVE and SME are off on QEMU.
//!
//! Both compute with the same library, and on hundreds of thousands of random
//! words with hard values they differ in nothing else but FCMLA by element of
//! four halves, where Unicorn's FPSR has the exceptions of eight. What they agree
//! in may still be wrong: both extend the sign of FCVTZS to a scalar half with
//! fraction bits, and set Z where FJCVTZS flushes a denormal.

mod error;
mod oracle;
mod process;
mod record;

pub use error::{CaseFailure, Error};
pub use oracle::{QemuOracle, UnicornOracle, build_qemu_harness};

/// The first address of the guest's memory.
pub const MEMORY_START: u64 = 0x10000;
/// The address after the guest's memory. Nothing is mapped from here on.
pub const MEMORY_END: u64 = 0x40000;
/// The first address where code can be placed.
pub const CODE_START: u64 = MEMORY_START;
/// The address after the code area. One word must stay free after a case's
/// code, for the oracle's end marker.
pub const CODE_END: u64 = 0x20000;
/// The number of bytes in the data window.
pub const WINDOW_LEN: usize = 512;
/// The address of the data window, which reaches to the end of memory.
pub const WINDOW_START: u64 = MEMORY_END - WINDOW_LEN as u64;

/// The registers of a guest, before or after a case.
///
/// The last three, the vectors, are zero unless a [case](Case::vectors) has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// X0 to X30.
    pub x: [u64; 31],
    /// The stack pointer.
    pub sp: u64,
    /// The condition flags, in bits 31 to 28.
    pub nzcv: u64,
    /// The thread pointer.
    pub tpidr_el0: u64,
    /// V0 to V31.
    pub v: [u128; 32],
    /// The floating-point control register.
    pub fpcr: u64,
    /// The floating-point status register.
    pub fpsr: u64,
}

impl State {
    /// Returns the same state with all vectors zero.
    pub fn without_vectors(&self) -> State {
        State { v: [0; 32], fpcr: 0, fpsr: 0, ..*self }
    }
}

/// A program to run and the state to start it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The instructions. The case ends when the PC reaches the end of them.
    pub code: Vec<u32>,
    /// With 1, which needs exactly one instruction, that instruction is executed
    /// once and the result shows the PC after it, even where nothing is mapped.
    /// Any other number is a limit that the case is not expected to reach.
    pub max_instructions: u32,
    /// Where the instructions are placed and started.
    pub code_address: u64,
    /// The registers at the start.
    pub state: State,
    /// Whether the vectors take part: V0 to V31, FPCR and FPSR. Without them, they are zero at the start, and those
    /// of the outcome say nothing.
    pub vectors: bool,
    /// The contents of the data window at the start.
    pub window: [u8; WINDOW_LEN],
}

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    /// The end of the code was reached, or the single instruction completed.
    Done,
    /// An instruction was undefined.
    Undefined,
    /// An access was to unmapped memory; the detail is its address.
    MemoryFault,
    /// An access was not aligned; the detail is its address where the oracle
    /// knows it (QEMU) and 0 otherwise (Unicorn).
    AlignmentFault,
    /// SVC was executed; the detail is its immediate.
    Svc,
    /// BRK was executed.
    Brk,
    /// The case did not end within its limit.
    Limit,
    /// The oracle cannot run the case, or something else happened.
    Other,
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the case ended.
    pub kind: OutcomeKind,
    /// What it means depends on the kind, see [`OutcomeKind`]; 0 for most.
    pub detail: u64,
    /// The PC. It is at the instruction that did not complete, if there is one,
    /// and after an SVC.
    pub pc: u64,
    /// The registers at the end.
    pub state: State,
    /// The contents of the data window at the end.
    pub window: [u8; WINDOW_LEN],
}

/// An emulator that says what a case should do.
pub trait Oracle {
    /// The emulator's name.
    fn name(&self) -> &str;

    /// Runs the cases and returns their outcomes in the same order.
    ///
    /// A case that makes the oracle's process crash or hang does not stop the
    /// rest: [`Error::Cases`] names such cases and holds all other outcomes.
    /// The oracle can be used again after that.
    fn run(&mut self, cases: &[Case]) -> Result<Vec<Outcome>, Error>;
}
