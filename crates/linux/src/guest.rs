//! What a process needs of the machine that it runs on.

use std::ops::Range;
use std::sync::Arc;

use kvrm_a64::state::{CpuState, VectorState};
use kvrm_engine::{EngineError, RunControl, Stop};
use kvrm_ir::derive::Derivation;

use crate::memory::Permissions;

/// The processor and the memory of one process. Its threads take turns on the processor.
///
/// Memory goes from address 0 to [`TOP`](crate::memory::TOP). All of it is zero and nothing may be accessed at the
/// start. Addresses and lengths of [`protect`](Guest::protect) and [`discard`](Guest::discard) are those of whole pages,
/// and all ranges lie within memory.
pub trait Guest: Send {
    /// Returns the registers.
    fn registers(&self) -> Result<CpuState, EngineError>;
    /// Sets the registers.
    fn set_registers(&mut self, state: &CpuState) -> Result<(), EngineError>;
    /// Returns the vector registers.
    fn vectors(&self) -> Result<VectorState, EngineError>;
    /// Sets the vector registers.
    fn set_vectors(&mut self, vectors: &VectorState) -> Result<(), EngineError>;

    /// Returns how many instructions the machine has executed, which its virtual counter begins with.
    fn executed(&self) -> Result<u64, EngineError>;

    /// Reads memory, whatever the guest may do with it.
    fn read(&self, addr: u64, bytes: &mut [u8]) -> Result<(), EngineError>;
    /// Reads memory, of which only bytes up to a zero count: where that is, if there is one.
    fn read_text(&self, addr: u64, bytes: &mut [u8]) -> Result<Option<usize>, EngineError> {
        self.read(addr, bytes)?;
        Ok(bytes.iter().position(|byte| *byte == 0))
    }

    /// Writes memory, whatever the guest may do with it.
    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), EngineError>;
    /// Says what the guest may do with pages.
    fn protect(&mut self, addr: u64, len: u64, access: Permissions) -> Result<(), EngineError>;
    /// Makes pages zero.
    fn discard(&mut self, addr: u64, len: u64) -> Result<(), EngineError>;

    /// Runs until it stops or has executed so many instructions; why it stopped, and how many it executed. `None` if the
    /// run was cancelled.
    fn run(
        &mut self,
        instructions: u64,
        control: &RunControl,
    ) -> Result<(Option<Stop>, u64), EngineError>;

    /// The same, but stops with [`Stop::Breakpoint`] before it executes an instruction at one of these addresses, which are in
    /// order; it does not begin at one.
    fn run_to(
        &mut self,
        instructions: u64,
        addresses: &[u64],
        control: &RunControl,
    ) -> Result<(Option<Stop>, u64), EngineError> {
        // Whoever can do so otherwise does.
        for executed in 0..instructions {
            let is_there = executed > 0 && addresses.binary_search(&self.registers()?.pc).is_ok();
            if is_there {
                return Ok((Some(Stop::Breakpoint { imm: None }), executed));
            }
            let (stop, more) = self.run(1, control)?;
            if stop != Some(Stop::MaxCycles) {
                return Ok((stop, executed + more));
            }
        }
        Ok((Some(Stop::MaxCycles), instructions))
    }

    /// Runs like [`run`](Guest::run), while a derivation follows it, until that has come to its end; `at` is the number of
    /// instructions that the program has completed before. `None` if it cannot.
    fn run_deriving(
        &mut self,
        _instructions: u64,
        _at: u64,
        _derivation: &mut Derivation,
        _control: &RunControl,
    ) -> Result<Option<(Option<Stop>, u64)>, EngineError> {
        Ok(None)
    }

    /// What others have done since then with bytes that hold values of the derivation.
    fn take_accesses(&mut self) -> Accesses {
        Accesses::default()
    }

    /// Makes another one with the same memory; its registers are zero. Both go on separately.
    fn fork(&mut self) -> Result<Box<dyn Guest>, EngineError>;

    /// Many will be forked of this one: what it has now becomes what they begin with.
    fn freeze(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Watches ranges of memory from now on, each until something of it is read, written or executed by the guest or by a
    /// method of this trait; false if it cannot.
    fn watch(&mut self, _ranges: &[Range<u64>]) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Which ranges were accessed since the last call: by the guest, after so many instructions of its last
    /// [`run`](Guest::run), or by others since then.
    fn take_touched(&mut self) -> Vec<(usize, Option<u64>)> {
        Vec::new()
    }
}

/// What others than the guest have done with some bytes of memory.
#[derive(Debug, Default)]
pub struct Accesses {
    /// Bytes that were written.
    pub written: Vec<Range<u64>>,
    /// Some were read, or more was done with them.
    pub others: bool,
}

/// Makes a guest with empty memory.
pub type MakeGuest = Arc<dyn Fn() -> Result<Box<dyn Guest>, EngineError> + Send + Sync>;
