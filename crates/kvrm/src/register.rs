//! Names of registers.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use kvrm_a64::state::{CpuState, FPCR_MASK, FPSR_MASK, SP, V_REGISTERS, VectorState};

use crate::{Error, FloatFormat};

/// A register that the host can read and write.
///
/// ```
/// use kvrm::Reg;
/// assert_eq!("x7".parse::<Reg>()?, Reg::X(7));
/// assert_eq!("LR".parse::<Reg>()?, Reg::X(30));
/// assert_eq!(("v2".parse::<Reg>()?, "q2".parse::<Reg>()?), (Reg::V(2), Reg::V(2)));
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
    /// A vector register, 0 to 31, which has 128 bits; also called Q. Calls that pass 64 bits do not take it:
    /// see [`Machine::vector`](crate::Machine::vector).
    V(u8),
    /// The low 64 bits of a vector register; writing them clears the others.
    D(u8),
    /// The low 32 bits of a vector register; writing them clears the others.
    S(u8),
    /// The low 16 bits of a vector register; writing them clears the others.
    H(u8),
    /// The low 8 bits of a vector register; writing them clears the others.
    B(u8),
    /// The floating-point control register; bits that do not exist stay zero.
    Fpcr,
    /// The floating-point status register; bits that do not exist stay zero.
    Fpsr,
}

impl Reg {
    /// Returns all registers, without the narrow views. The values of all fit in 128 bits, and of all but V in 64.
    pub fn all() -> impl Iterator<Item = Reg> {
        let general = (0..31).map(Reg::X).chain([Reg::Sp, Reg::Pc, Reg::Nzcv, Reg::TpidrEl0]);
        general.chain((0..V_REGISTERS as u8).map(Reg::V)).chain([Reg::Fpcr, Reg::Fpsr])
    }

    /// Returns the number of its bits.
    ///
    /// ```
    /// use kvrm::Reg;
    /// assert_eq!([Reg::X(1), Reg::W(1), Reg::V(1), Reg::H(1)].map(Reg::bits), [64, 32, 128, 16]);
    /// ```
    pub fn bits(self) -> u32 {
        match self {
            Reg::X(_) | Reg::Sp | Reg::Pc | Reg::Nzcv | Reg::TpidrEl0 | Reg::D(_) => 64,
            Reg::Fpcr | Reg::Fpsr => 64,
            Reg::W(_) | Reg::S(_) => 32,
            Reg::V(_) => 128,
            Reg::H(_) => 16,
            Reg::B(_) => 8,
        }
    }

    /// Returns the format of the floating-point numbers that it holds; `None` if it is not a register for one.
    pub fn float_format(self) -> Option<FloatFormat> {
        match self {
            Reg::D(_) => Some(FloatFormat::Double),
            Reg::S(_) => Some(FloatFormat::Single),
            Reg::H(_) => Some(FloatFormat::Half),
            Reg::X(_) | Reg::W(_) | Reg::Sp | Reg::Pc | Reg::Nzcv | Reg::TpidrEl0 => None,
            Reg::V(_) | Reg::B(_) | Reg::Fpcr | Reg::Fpsr => None,
        }
    }

    /// Returns the number of the vector register that it is, or has the low bits of.
    pub(crate) fn vector(self) -> Option<u8> {
        match self {
            Reg::V(n) | Reg::D(n) | Reg::S(n) | Reg::H(n) | Reg::B(n) => Some(n),
            Reg::X(_) | Reg::W(_) | Reg::Sp | Reg::Pc | Reg::Nzcv | Reg::TpidrEl0 => None,
            Reg::Fpcr | Reg::Fpsr => None,
        }
    }

    /// Returns as many of the low bits as it has.
    fn low_bits(self, value: u128) -> u128 {
        value & u128::MAX >> (128 - self.bits())
    }

    /// Reads it from one of the vector registers, of which it is a part.
    pub(crate) fn get_vector(self, vectors: &VectorState) -> u128 {
        let n = self.vector().expect("it is a vector register");
        self.low_bits(vectors.get(n.into()))
    }

    /// Writes it to one of the vector registers, of which it is a part.
    pub(crate) fn set_vector(self, vectors: &mut VectorState, value: u128) {
        let n = self.vector().expect("it is a vector register");
        vectors.set(n.into(), self.low_bits(value));
    }

    /// Reads it from the state, where everything is but vector registers.
    pub(crate) fn get(self, state: &CpuState) -> u64 {
        match self {
            Reg::X(n) => state.x[usize::from(n)],
            Reg::W(n) => state.x[usize::from(n)] & 0xffff_ffff,
            Reg::Sp => state.x[SP as usize],
            Reg::Pc => state.pc,
            Reg::Nzcv => state.nzcv(),
            Reg::TpidrEl0 => state.tpidr_el0,
            Reg::Fpcr => state.fpcr,
            Reg::Fpsr => state.fpsr,
            Reg::V(_) | Reg::D(_) | Reg::S(_) | Reg::H(_) | Reg::B(_) => {
                unreachable!("{self} is not in the state")
            }
        }
    }

    /// Writes it to the state, where everything is but vector registers.
    pub(crate) fn set(self, state: &mut CpuState, value: u64) {
        match self {
            Reg::X(n) => state.x[usize::from(n)] = value,
            Reg::W(n) => state.x[usize::from(n)] = value & 0xffff_ffff,
            Reg::Sp => state.x[SP as usize] = value,
            Reg::Pc => state.pc = value,
            Reg::Nzcv => state.set_nzcv(value),
            Reg::TpidrEl0 => state.tpidr_el0 = value,
            Reg::Fpcr => state.fpcr = value & FPCR_MASK,
            Reg::Fpsr => state.fpsr = value & FPSR_MASK,
            Reg::V(_) | Reg::D(_) | Reg::S(_) | Reg::H(_) | Reg::B(_) => {
                unreachable!("{self} is not in the state")
            }
        }
    }

    /// Checks the register's number.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Reg::X(31..) | Reg::W(31..) => Err(Error::UnknownRegister(self.to_string())),
            Reg::V(32..) | Reg::D(32..) | Reg::S(32..) | Reg::H(32..) | Reg::B(32..) => {
                Err(Error::UnknownRegister(self.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the register exists and has at most 64 bits.
    pub(crate) fn check_narrow(self) -> Result<(), Error> {
        self.check()?;
        match self {
            Reg::V(n) => Err(Error::WideRegister(n)),
            _ => Ok(()),
        }
    }

    /// Checks that the register exists and can have this value.
    pub(crate) fn check_value(self, value: u64) -> Result<(), Error> {
        self.check_narrow()?;
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
    /// The floating-point control register; bits that do not exist are ignored.
    pub fpcr: u64,
    /// The floating-point status register; bits that do not exist are ignored.
    pub fpsr: u64,
}

impl Registers {
    /// Returns one of them, whatever its size.
    ///
    /// ```
    /// use kvrm::{Reg, Registers};
    /// let registers = Registers { sp: 0x8000, v: [u128::MAX; 32], ..Registers::default() };
    /// assert_eq!((registers.get(Reg::Sp), registers.get(Reg::X(7))), (0x8000, 0));
    /// assert_eq!((registers.get(Reg::V(7)), registers.get(Reg::H(7))), (u128::MAX, 0xffff));
    /// ```
    pub fn get(&self, reg: Reg) -> u128 {
        match reg.vector() {
            Some(n) => reg.low_bits(self.v[usize::from(n)]),
            None => {
                let mut state = CpuState::new();
                self.put_into(&mut state);
                reg.get(&state).into()
            }
        }
    }

    pub(crate) fn of(state: &CpuState, vectors: &VectorState) -> Registers {
        let mut v = [0; V_REGISTERS];
        vectors.copy_to(&mut v);
        Registers {
            x: std::array::from_fn(|n| state.x[n]),
            sp: state.x[SP as usize],
            pc: state.pc,
            nzcv: state.nzcv(),
            tpidr_el0: state.tpidr_el0,
            v,
            fpcr: state.fpcr,
            fpsr: state.fpsr,
        }
    }

    pub(crate) fn put_into(&self, state: &mut CpuState) {
        state.x[..self.x.len()].copy_from_slice(&self.x);
        state.x[SP as usize] = self.sp;
        state.pc = self.pc;
        state.set_nzcv(self.nzcv);
        state.tpidr_el0 = self.tpidr_el0;
        Reg::Fpcr.set(state, self.fpcr);
        Reg::Fpsr.set(state, self.fpsr);
    }
}

impl FromStr for Reg {
    type Err = Error;

    fn from_str(name: &str) -> Result<Reg, Error> {
        let lower = name.to_ascii_lowercase();
        let unknown = || Error::UnknownRegister(name.to_string());
        let number = |digits: &str| match digits.parse::<u8>() {
            Ok(n) if !digits.starts_with('+') => Ok(n),
            _ => Err(unknown()),
        };
        let reg = match lower.as_str() {
            "sp" => Reg::Sp,
            "pc" => Reg::Pc,
            "nzcv" => Reg::Nzcv,
            "tpidr_el0" => Reg::TpidrEl0,
            "fpcr" => Reg::Fpcr,
            "fpsr" => Reg::Fpsr,
            "fp" => Reg::X(29),
            "lr" => Reg::X(30),
            _ => match lower.split_at_checked(1) {
                Some(("x", digits)) => Reg::X(number(digits)?),
                Some(("w", digits)) => Reg::W(number(digits)?),
                Some(("v" | "q", digits)) => Reg::V(number(digits)?),
                Some(("d", digits)) => Reg::D(number(digits)?),
                Some(("s", digits)) => Reg::S(number(digits)?),
                Some(("h", digits)) => Reg::H(number(digits)?),
                Some(("b", digits)) => Reg::B(number(digits)?),
                _ => return Err(unknown()),
            },
        };
        reg.check().map_err(|_| unknown())?;
        Ok(reg)
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
            Reg::V(n) => write!(f, "v{n}"),
            Reg::D(n) => write!(f, "d{n}"),
            Reg::S(n) => write!(f, "s{n}"),
            Reg::H(n) => write!(f, "h{n}"),
            Reg::B(n) => write!(f, "b{n}"),
            Reg::Fpcr => f.write_str("fpcr"),
            Reg::Fpsr => f.write_str("fpsr"),
        }
    }
}
