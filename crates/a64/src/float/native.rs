//! Shortcuts: functions by an instruction of the host, where that gives what the architecture asks for.
//!
//! Engines that have floating-point instructions take them if no bit of FPCR is set, so that results are rounded
//! to nearest and nothing is flushed, and if FPSR already says that something was inexact: an instruction of the host
//! does not tell. Then what is left to find out is in the result:
//!
//! - A sum that is finite had finite operands, and did not overflow. It cannot underflow: a sum that is less than the
//!   least normal number is exact.
//! - Another result that is larger than the least normal number and finite did neither overflow nor underflow. The
//!   least normal number itself may have been rounded up to, which counts as underflow.
//! - Where neither holds, a product, quotient, square root or conversion is still right if it is finite and an operand
//!   that makes it [exact](exact_if_zero) is zero.
//!
//! The upper 32 bits of a number tell enough of its magnitude; some hosts have no more in a register. Doubles whose upper
//! bits are those of the least normal number do not count as larger.

use kvrm_ir::{FloatOp, Function, Type, Val};

use super::compare::{EQUAL, Extreme, GREATER, LESS, Relation};
use super::{DOUBLE, Format, Fp, IXC, SINGLE, fp_add, fp_div, fp_mul, fp_mul_add, fp_sqrt, fp_sub};
use crate::Sign;
use crate::fp::ByFormat;

/// The results that are right.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Finite,
    AboveLeastNormal,
}

/// What gives the results of a function on packed numbers, as in [`Fp::native`]: the operation, the parameters of the
/// function that are its operands, and which results are right.
pub(crate) type Packed = (FloatOp, &'static [usize], Right);

/// That of a function of singles or doubles, if there is one.
pub(crate) fn packed(function: &Function, format: Format) -> Option<Packed> {
    const FUNCTIONS: &[(ByFormat, Packed)] = &[
        (fp_add, (FloatOp::Add, &[0, 1], Right::Finite)),
        (fp_sub, (FloatOp::Sub, &[0, 1], Right::Finite)),
        (fp_mul, (FloatOp::Mul, &[0, 1], Right::AboveLeastNormal)),
        (fp_div, (FloatOp::Div, &[0, 1], Right::AboveLeastNormal)),
        (fp_sqrt, (FloatOp::Sqrt, &[0], Right::AboveLeastNormal)),
        (fp_mul_add, (FloatOp::MulAdd, &[1, 2, 0], Right::AboveLeastNormal)),
    ];
    let same =
        |(own, _): &&(ByFormat, Packed)| format.bits > 16 && std::ptr::eq(own(format), function);
    FUNCTIONS.iter().find(same).map(|(_, packed)| *packed)
}

/// How many of its first operands make the result of an operation exact if one of them is zero: a factor, a dividend, a
/// number to take the root of or to convert. A sum with a product is then the addend.
pub(crate) const fn exact_if_zero(op: FloatOp) -> usize {
    match op {
        FloatOp::Mul | FloatOp::MulAdd => 2,
        FloatOp::Div | FloatOp::Sqrt | FloatOp::Convert => 1,
        FloatOp::Add
        | FloatOp::Sub
        | FloatOp::FromSigned
        | FloatOp::FromUnsigned
        | FloatOp::ToSigned
        | FloatOp::ToUnsigned
        | FloatOp::Equal
        | FloatOp::Less => 0,
    }
}

/// Whether the results count, the number, and what FPSR gains, which is nothing.
type Shortcut<'b> = [Val<'b>; 3];

/// The upper 32 bits of a number.
fn upper(number: Val<'_>) -> Val<'_> {
    match number.ty() {
        Type::U64 => (number >> 32).trunc(Type::U32),
        _ => number,
    }
}

/// Those of a constant.
const fn upper_bits(format: Format, number: u64) -> u64 {
    number >> (format.bits - 32)
}

impl<'b> Fp<'b> {
    /// A shortcut that never does.
    fn none(self, ty: Type) -> Shortcut<'b> {
        [self.b.bool(false), self.b.konst(ty, 0), self.b.u32(0)]
    }

    fn shortcut(self, does: Val<'b>, result: Val<'b>) -> Shortcut<'b> {
        [does, result, self.b.u32(0)]
    }

    /// True if results are rounded to nearest, nothing is flushed, and inexact results change nothing.
    fn is_plain(self) -> Val<'b> {
        self.fpcr.eq(u64::from(IXC))
    }

    /// The same where results are exact.
    fn is_plain_for_exact(self) -> Val<'b> {
        (self.fpcr & !u64::from(IXC)).eq(0u64)
    }

    pub(super) fn native(self, op: FloatOp, operands: &[Val<'b>], right: Right) -> Shortcut<'b> {
        self.native_as(op, operands, self.format, right)
    }

    /// The same with a result in another format.
    pub(super) fn native_as(
        self,
        op: FloatOp,
        operands: &[Val<'b>],
        to: Format,
        right: Right,
    ) -> Shortcut<'b> {
        if self.format.bits == 16 || to.bits == 16 {
            return self.none(to.ty());
        }
        let number = self.b.float(op, operands, to.ty());
        let magnitude = upper(number) << 1;
        let [least, infinity] = [to.least_normal(), to.infinity()].map(|n| upper_bits(to, n) << 1);
        let is_right = match right {
            Right::Finite => magnitude.ult(infinity),
            // The lowest bit of the magnitude is zero.
            Right::AboveLeastNormal => (magnitude - (least + 1)).ult(infinity - least - 1),
        };
        self.shortcut(self.is_plain() & is_right, number)
    }

    /// Whether what [`native_as`](Self::native_as) gives is right though it is zero or tiny.
    pub(super) fn is_exact(self, op: FloatOp, operands: &[Val<'b>], number: Val<'b>) -> Val<'b> {
        let to = if number.ty() == Type::U64 { DOUBLE } else { SINGLE };
        let is_finite = (upper(number) << 1).ult(upper_bits(to, to.infinity()) << 1);
        let zeros = operands[..exact_if_zero(op)].iter().map(|operand| (*operand << 1).eq(0u64));
        let any_zero = zeros.reduce(|a, b| a | b).expect("there are such operands");
        self.is_plain_for_exact() & is_finite & any_zero
    }

    /// `FPCompare`: numbers that are less, equal or greater, and so are not NaNs.
    pub(super) fn native_compare(self, op1: Val<'b>, op2: Val<'b>) -> Shortcut<'b> {
        if self.format.bits == 16 {
            return self.none(Type::U32);
        }
        let b = self.b;
        let [less, equal, greater] = self.native_order(op1, op2);
        let unless_less = equal.select(b.u32(EQUAL), b.u32(GREATER));
        let does = self.is_plain_for_exact() & (less | equal | greater);
        self.shortcut(does, less.select(b.u32(LESS), unless_less))
    }

    /// `FPCompareEQ`, `FPCompareGE`, `FPCompareGT`.
    pub(super) fn native_compares(
        self,
        op1: Val<'b>,
        op2: Val<'b>,
        relation: Relation,
    ) -> Shortcut<'b> {
        if self.format.bits == 16 {
            return self.none(Type::U32);
        }
        let [less, equal, greater] = self.native_order(op1, op2);
        let holds = match relation {
            Relation::Equal => equal,
            Relation::GreaterOrEqual => !less,
            Relation::Greater => greater,
        };
        let does = self.is_plain_for_exact() & (less | equal | greater);
        self.shortcut(does, holds.zext(Type::U32))
    }

    /// `FPMax`, `FPMin`, `FPMaxNum`, `FPMinNum`: of equal numbers only those that are the same, which zeros need not be.
    pub(super) fn native_extreme(
        self,
        op1: Val<'b>,
        op2: Val<'b>,
        extreme: Extreme,
    ) -> Shortcut<'b> {
        if self.format.bits == 16 {
            return self.none(Type::U32);
        }
        let [less, equal, greater] = self.native_order(op1, op2);
        let number = match extreme {
            Extreme::Max => less.select(op2, op1),
            Extreme::Min => less.select(op1, op2),
        };
        let does = less | greater | (equal & op1.eq(op2));
        self.shortcut(self.is_plain_for_exact() & does, number)
    }

    fn native_order(self, op1: Val<'b>, op2: Val<'b>) -> [Val<'b>; 3] {
        let float = |op, x, y| self.b.float(op, &[x, y], Type::Bool);
        [
            float(FloatOp::Less, op1, op2),
            float(FloatOp::Equal, op1, op2),
            float(FloatOp::Less, op2, op1),
        ]
    }

    /// `FPToFixed` without fraction bits, towards zero, of a number that is in range: its integer part is.
    pub(super) fn native_to_integer(
        self,
        op: Val<'b>,
        [fbits, rounding]: [Val<'b>; 2],
        (bits, sign): (u32, Sign),
    ) -> Shortcut<'b> {
        const TOWARDS_ZERO: u64 = 3;
        let ty = super::fixed::integer_type(bits);
        let is_plain = fbits.constant() == Some(0) && rounding.constant() == Some(TOWARDS_ZERO);
        if self.format.bits == 16 || bits == 16 || !is_plain {
            return self.none(ty);
        }
        let power_of_two = |exponent: u32| {
            let number = u64::from(self.format.bias() + exponent) << self.format.fraction;
            upper_bits(self.format, number)
        };
        // A number with its sign is larger than all of those without.
        let (op_code, in_range) = match sign {
            Sign::Signed => (FloatOp::ToSigned, (upper(op) << 1).ult(power_of_two(bits - 1) << 1)),
            Sign::Unsigned => (FloatOp::ToUnsigned, upper(op).ult(power_of_two(bits))),
        };
        self.shortcut(self.is_plain() & in_range, self.b.float(op_code, &[op], ty))
    }

    /// `FixedToFP` without fraction bits.
    pub(super) fn native_from_integer(
        self,
        op: Val<'b>,
        fbits: Val<'b>,
        (bits, sign): (u32, Sign),
    ) -> Shortcut<'b> {
        let ty = self.format.ty();
        if self.format.bits == 16 || bits == 16 || fbits.constant() != Some(0) {
            return self.none(ty);
        }
        let op_code = match sign {
            Sign::Signed => FloatOp::FromSigned,
            Sign::Unsigned => FloatOp::FromUnsigned,
        };
        self.shortcut(self.is_plain(), self.b.float(op_code, &[op], ty))
    }
}
