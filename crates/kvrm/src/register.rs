//! Names of registers.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use kvrm_a64::state::{CpuState, SP, VectorState};

use crate::Error;

/// A register that the host can read and write.
///
/// ```
/// use kvrm::Reg;
/// assert_eq!("x7".parse::<Reg>()?, Reg::X(7));
/// assert_eq!("LR".parse::<Reg>()?, Reg::X(30));
/// assert!("x31".parse::<Reg>().is_err());
/// # Ok::<(), kvrm::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reg {
    /// A general register, 0 to 30.
    X(u8),
    /// The low half of a general register, 0 to 30; writing it clears the upper half.
    W(u8),
    /// The stack pointer.
    Sp,
    /// The program counter.
    Pc,
    /// The flags, in bits 31 to 28.
    Nzcv,
    /// The thread pointer.
    TpidrEl0,
}

impl Reg {
    /// Returns all registers, without the narrow views.
    pub fn all() -> impl Iterator<Item = Reg> {
        (0..31).map(Reg::X).chain([Reg::Sp, Reg::Pc, Reg::Nzcv, Reg::TpidrEl0])
    }

    pub(crate) fn get(self, state: &CpuState) -> u64 {
        match self {
            Reg::X(n) => state.x[usize::from(n)],
            Reg::W(n) => state.x[usize::from(n)] & 0xffff_ffff,
            Reg::Sp => state.x[SP as usize],
            Reg::Pc => state.pc,
            Reg::Nzcv => state.nzcv(),
            Reg::TpidrEl0 => state.tpidr_el0,
        }
    }

    pub(crate) fn set(self, state: &mut CpuState, value: u64) {
        match self {
            Reg::X(n) => state.x[usize::from(n)] = value,
            Reg::W(n) => state.x[usize::from(n)] = value & 0xffff_ffff,
            Reg::Sp => state.x[SP as usize] = value,
            Reg::Pc => state.pc = value,
            Reg::Nzcv => state.set_nzcv(value),
            Reg::TpidrEl0 => state.tpidr_el0 = value,
        }
    }

    /// Checks the register's number.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Reg::X(31..) | Reg::W(31..) => Err(Error::UnknownRegister(self.to_string())),
            _ => Ok(()),
        }
    }

    /// Checks that the register exists and can have this value.
    pub(crate) fn check_value(self, value: u64) -> Result<(), Error> {
        self.check()?;
        match self {
            Reg::Pc if !value.is_multiple_of(4) => Err(Error::MisalignedPc(value)),
            _ => Ok(()),
        }
    }
}

/// All registers of a lane.
///
/// ```
/// use kvrm::{Machine, Reg, Registers};
/// let mut machine = Machine::builder().lanes(2).build()?;
/// machine.set_registers(0, &Registers { sp: 0x8000, pc: 0x1000, ..Registers::default() })?;
/// machine.set_register(0, Reg::X(3), 7)?;
/// // Lane 1 becomes like lane 0.
/// let registers = machine.registers(0)?;
/// machine.set_registers(1, &registers)?;
/// assert_eq!((registers.x[3], machine.register(1, Reg::Sp)?), (7, 0x8000));
/// # Ok::<(), kvrm::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers {
    /// The general registers.
    pub x: [u64; 31],
    /// The stack pointer.
    pub sp: u64,
    /// The program counter.
    pub pc: u64,
    /// The flags, in bits 31 to 28; the others are ignored.
    pub nzcv: u64,
    /// The thread pointer.
    pub tpidr_el0: u64,
    /// The vector registers.
    pub v: [u128; 32],
    /// The floating-point control register.
    pub fpcr: u64,
    /// The floating-point status register.
    pub fpsr: u64,
}

impl Registers {
    /// Returns one of them.
    ///
    /// ```
    /// use kvrm::{Reg, Registers};
    /// let registers = Registers { sp: 0x8000, ..Registers::default() };
    /// assert_eq!((registers.get(Reg::Sp), registers.get(Reg::X(7))), (0x8000, 0));
    /// ```
    pub fn get(&self, reg: Reg) -> u64 {
        let mut state = CpuState::new();
        self.put_into(&mut state);
        reg.get(&state)
    }

    pub(crate) fn of(state: &CpuState, vectors: &VectorState) -> Registers {
        Registers {
            x: std::array::from_fn(|n| state.x[n]),
            sp: state.x[SP as usize],
            pc: state.pc,
            nzcv: state.nzcv(),
            tpidr_el0: state.tpidr_el0,
            v: vectors.v.map(|[low, high]| u128::from(low) | u128::from(high) << 64),
            fpcr: state.fpcr,
            fpsr: state.fpsr,
        }
    }

    /// Returns the vector registers.
    pub(crate) fn vectors(&self) -> VectorState {
        VectorState { v: self.v.map(|v| [v as u64, (v >> 64) as u64]) }
    }

    pub(crate) fn put_into(&self, state: &mut CpuState) {
        state.x[..self.x.len()].copy_from_slice(&self.x);
        state.x[SP as usize] = self.sp;
        state.pc = self.pc;
        state.set_nzcv(self.nzcv);
        state.tpidr_el0 = self.tpidr_el0;
        state.fpcr = self.fpcr;
        state.fpsr = self.fpsr;
    }
}

impl FromStr for Reg {
    type Err = Error;

    fn from_str(name: &str) -> Result<Reg, Error> {
        let lower = name.to_ascii_lowercase();
        let unknown = || Error::UnknownRegister(name.to_string());
        let number = |digits: &str| match digits.parse() {
            Ok(n @ 0..=30) if !digits.starts_with('+') => Ok(n),
            _ => Err(unknown()),
        };
        match lower.as_str() {
            "sp" => Ok(Reg::Sp),
            "pc" => Ok(Reg::Pc),
            "nzcv" => Ok(Reg::Nzcv),
            "tpidr_el0" => Ok(Reg::TpidrEl0),
            "fp" => Ok(Reg::X(29)),
            "lr" => Ok(Reg::X(30)),
            _ => match lower.split_at_checked(1) {
                Some(("x", digits)) => number(digits).map(Reg::X),
                Some(("w", digits)) => number(digits).map(Reg::W),
                _ => Err(unknown()),
            },
        }
    }
}

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Reg::X(n) => write!(f, "x{n}"),
            Reg::W(n) => write!(f, "w{n}"),
            Reg::Sp => f.write_str("sp"),
            Reg::Pc => f.write_str("pc"),
            Reg::Nzcv => f.write_str("nzcv"),
            Reg::TpidrEl0 => f.write_str("tpidr_el0"),
        }
    }
}
