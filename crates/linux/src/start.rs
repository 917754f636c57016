//! What a program finds on its stack when it starts.

use std::ops::Range;

use kvrm_a64::state::{CpuState, SP};
use linux_raw_sys::auxvec::*;

use crate::Errno;
use crate::answer::Answer;
use crate::elf::Loaded;
use crate::memory::{Area, Backing, Label, Memory, PAGE, Permissions, Placement, STACK};

/// `AT_MINSIGSTKSZ`: the least that a signal's frame takes, which ARM64's Linux gives as this without SVE.
const LEAST_SIGNAL_STACK: u64 = 4720;
/// Bytes of arguments and environment, at the most: a quarter of the stack, as on Linux.
const MOST_STRINGS: u64 = STACK / 4;
/// `mov x8, #139; svc #0`: what handlers of signals return to. Unwinders know these two words.
const RETURN_FROM_SIGNAL: [u32; 2] = [0xd280_1168, 0xd400_0001];

/// What a program is started with.
pub(crate) struct Start<'a> {
    /// The path that it was found at.
    pub path: &'a [u8],
    /// Its arguments, the first of which is its name.
    pub args: &'a [Vec<u8>],
    /// Its environment.
    pub env: &'a [Vec<u8>],
    /// Sixteen random bytes.
    pub random: [u8; 16],
    /// Where it was loaded.
    pub program: Loaded,
    /// Where its interpreter was, if it has one.
    pub interpreter: Option<Loaded>,
}

/// Registers and other addresses of a program that was started.
pub(crate) struct Started {
    /// The first thread's registers.
    pub registers: CpuState,
    /// What handlers of signals return to.
    pub signal_return: u64,
    /// The auxiliary vector, for `/proc/self/auxv`.
    pub auxv: Vec<u8>,
    /// The bytes of arguments and environment, without the zeros behind them.
    pub strings: [Vec<Range<u64>>; 2],
}

impl Start<'_> {
    /// Puts everything on a new stack.
    pub(crate) fn put(&self, memory: &mut Memory) -> Answer<Started> {
        memory.begin_heap(self.program.end);
        let top = memory.map_stack()?;
        let signal_return = map_signal_return(memory)?;
        let mut stack = Stack { memory, at: top - 16 };
        stack.check_size(self.args.iter().chain(self.env))?;
        let path = stack.push_string(self.path)?;
        let env = stack.push_strings(self.env)?;
        let args = stack.push_strings(self.args)?;
        // As on Linux. Whoever reads the platform 16 bytes at a time does not reach the last argument, in which lanes differ
        // more often than in the first.
        let platform = stack.push_string(b"aarch64")?;
        stack.at &= !15;
        let random = stack.push(&self.random)?;
        let auxv = self.auxv(path, platform, random);
        let mut words = vec![self.args.len() as u64];
        words.extend(args.iter().chain([&0]).chain(&env).chain([&0]));
        words.extend(auxv.iter().flatten());
        stack.at = (stack.at - 8 * words.len() as u64) & !15;
        let sp = stack.at;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        stack.memory.guest.write(sp, &bytes)?;
        let mut registers = CpuState::new();
        registers.x[SP as usize] = sp;
        registers.pc = self.interpreter.unwrap_or(self.program).entry;
        let auxv = auxv.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let place = |(at, string): (&u64, &Vec<u8>)| *at..*at + string.len() as u64;
        let places = |at: &[u64], strings: &[Vec<u8>]| at.iter().zip(strings).map(place).collect();
        let strings = [places(&args, self.args), places(&env, self.env)];
        Ok(Started { registers, signal_return, auxv, strings })
    }

    fn auxv(&self, path: u64, platform: u64, random: u64) -> Vec<[u64; 2]> {
        let (hwcap, hwcap2) = (kvrm_a64::hwcap::HWCAP, kvrm_a64::hwcap::HWCAP2);
        let entries = [
            (AT_HWCAP, hwcap),
            (AT_PAGESZ, PAGE),
            (AT_CLKTCK, 100),
            (AT_PHDR, self.program.headers),
            (AT_PHENT, 56),
            (AT_PHNUM, self.program.header_count),
            (AT_BASE, self.interpreter.map_or(0, |interpreter| interpreter.bias)),
            (AT_FLAGS, 0),
            (AT_ENTRY, self.program.entry),
            (AT_UID, 0),
            (AT_EUID, 0),
            (AT_GID, 0),
            (AT_EGID, 0),
            (AT_SECURE, 0),
            (AT_RANDOM, random),
            (AT_HWCAP2, hwcap2),
            (AT_EXECFN, path),
            (AT_PLATFORM, platform),
            (AT_MINSIGSTKSZ, LEAST_SIGNAL_STACK),
            (AT_NULL, 0),
        ];
        entries.map(|(kind, value)| [kind.into(), value]).to_vec()
    }
}

/// A stack that grows downwards.
struct Stack<'m> {
    memory: &'m mut Memory,
    at: u64,
}

impl Stack<'_> {
    fn check_size<'s>(&self, strings: impl Iterator<Item = &'s Vec<u8>>) -> Result<(), Errno> {
        let total: u64 = strings.map(|string| string.len() as u64 + 9).sum();
        if total > MOST_STRINGS { Err(Errno::TOOBIG) } else { Ok(()) }
    }

    fn push(&mut self, bytes: &[u8]) -> Answer {
        self.at -= bytes.len() as u64;
        self.memory.guest.write(self.at, bytes)?;
        Ok(self.at)
    }

    fn push_string(&mut self, string: &[u8]) -> Answer {
        self.push(&[string, &[0]].concat())
    }

    /// Pushes strings so that the first is lowest, as `ps` expects it; their addresses.
    fn push_strings(&mut self, strings: &[Vec<u8>]) -> Answer<Vec<u64>> {
        let mut at =
            strings.iter().rev().map(|s| self.push_string(s)).collect::<Answer<Vec<u64>>>()?;
        at.reverse();
        Ok(at)
    }
}

/// Maps the code that handlers of signals return to; programs have no vDSO, which would have it.
fn map_signal_return(memory: &mut Memory) -> Answer {
    let access = Permissions::READ | Permissions::EXECUTE;
    let label = Label::SignalReturn;
    let area = Area { end: 0, access, backing: Backing::Anonymous, beyond: false, label };
    let at = memory.map(Placement::Anywhere(0), PAGE, area)?;
    let code: Vec<u8> = RETURN_FROM_SIGNAL.iter().flat_map(|word| word.to_le_bytes()).collect();
    memory.guest.write(at, &code)?;
    Ok(at)
}
