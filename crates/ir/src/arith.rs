//! The arithmetic of the pure operations on constants, shared by the folder and the evaluator.
//!
//! Operands and results are the low bits of a `u64`; the bits above the type's width are zero.

use crate::{BinOp, CmpOp, ConvOp, FloatOp, Type, UnOp};

/// The value as a signed number.
fn signed(ty: Type, a: u64) -> i64 {
    let unused = 64 - ty.bits();
    (a << unused) as i64 >> unused
}

pub(crate) fn unary(op: UnOp, ty: Type, a: u64) -> u64 {
    let unused = 64 - ty.bits();
    let result = match op {
        UnOp::Not => !a,
        UnOp::Neg => a.wrapping_neg(),
        UnOp::Clz => u64::from((a << unused).leading_zeros().min(ty.bits())),
        UnOp::Rbit => a.reverse_bits() >> unused,
        UnOp::Bswap => a.swap_bytes() >> unused,
    };
    result & ty.mask()
}

pub(crate) fn binary(op: BinOp, ty: Type, a: u64, b: u64) -> u64 {
    let (sa, sb) = (signed(ty, a), signed(ty, b));
    // Widths are powers of two.
    let amount = b as u32 & (ty.bits() - 1);
    let result = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::UMulH => ((u128::from(a) * u128::from(b)) >> ty.bits()) as u64,
        BinOp::SMulH => ((i128::from(sa) * i128::from(sb)) >> ty.bits()) as u64,
        BinOp::UDiv => a.checked_div(b).unwrap_or(0),
        BinOp::SDiv if sb == 0 => 0,
        BinOp::SDiv => sa.wrapping_div(sb) as u64,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => a << amount,
        BinOp::Shr => a >> amount,
        BinOp::Sar => (sa >> amount) as u64,
        BinOp::Rotr if amount == 0 => a,
        BinOp::Rotr => (a >> amount) | (a << (ty.bits() - amount)),
    };
    result & ty.mask()
}

/// Arithmetic on numbers, or from integers and to integers.
pub(crate) fn float(op: FloatOp, from: Type, to: Type, args: &[u64]) -> u64 {
    let a = args[0];
    let single = |i: usize| f32::from_bits(args[i] as u32);
    let double = |i: usize| f64::from_bits(args[i]);
    let result = match (op, from, to) {
        (FloatOp::Equal, Type::U32, _) => (single(0) == single(1)).into(),
        (FloatOp::Equal, ..) => (double(0) == double(1)).into(),
        (FloatOp::Less, Type::U32, _) => (single(0) < single(1)).into(),
        (FloatOp::Less, ..) => (double(0) < double(1)).into(),
        (FloatOp::Convert, Type::U32, _) => f64::from(single(0)).to_bits(),
        (FloatOp::Convert, ..) => u64::from((double(0) as f32).to_bits()),
        (FloatOp::FromSigned, _, Type::U32) => u64::from((signed(from, a) as f32).to_bits()),
        (FloatOp::FromSigned, ..) => (signed(from, a) as f64).to_bits(),
        (FloatOp::FromUnsigned, _, Type::U32) => u64::from((a as f32).to_bits()),
        (FloatOp::FromUnsigned, ..) => (a as f64).to_bits(),
        (FloatOp::ToSigned, Type::U32, _) => single(0) as i64 as u64,
        (FloatOp::ToSigned, ..) => double(0) as i64 as u64,
        (FloatOp::ToUnsigned, Type::U32, _) => single(0) as u64,
        (FloatOp::ToUnsigned, ..) => double(0) as u64,
        (_, Type::U32, _) => u64::from(
            match op {
                FloatOp::Add => single(0) + single(1),
                FloatOp::Sub => single(0) - single(1),
                FloatOp::Mul => single(0) * single(1),
                FloatOp::Div => single(0) / single(1),
                FloatOp::Sqrt => single(0).sqrt(),
                _ => single(0).mul_add(single(1), single(2)),
            }
            .to_bits(),
        ),
        _ => match op {
            FloatOp::Add => double(0) + double(1),
            FloatOp::Sub => double(0) - double(1),
            FloatOp::Mul => double(0) * double(1),
            FloatOp::Div => double(0) / double(1),
            FloatOp::Sqrt => double(0).sqrt(),
            _ => double(0).mul_add(double(1), double(2)),
        }
        .to_bits(),
    };
    result & to.mask()
}

pub(crate) fn compare(op: CmpOp, ty: Type, a: u64, b: u64) -> bool {
    let (sa, sb) = (signed(ty, a), signed(ty, b));
    match op {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Ult => a < b,
        CmpOp::Ule => a <= b,
        CmpOp::Slt => sa < sb,
        CmpOp::Sle => sa <= sb,
        CmpOp::SAddO => signed(ty, binary(BinOp::Add, ty, a, b)) as i128 != sa as i128 + sb as i128,
        CmpOp::SSubO => signed(ty, binary(BinOp::Sub, ty, a, b)) as i128 != sa as i128 - sb as i128,
    }
}

pub(crate) fn convert(op: ConvOp, from: Type, to: Type, a: u64) -> u64 {
    match op {
        ConvOp::Trunc | ConvOp::Zext => a & to.mask(),
        ConvOp::Sext => signed(from, a) as u64 & to.mask(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN32: u64 = 1 << 31;
    const MIN64: u64 = 1 << 63;

    #[test]
    fn division_edges() {
        for (ty, min) in [(Type::U32, MIN32), (Type::U64, MIN64)] {
            assert_eq!(binary(BinOp::UDiv, ty, 7, 0), 0);
            assert_eq!(binary(BinOp::SDiv, ty, 7, 0), 0);
            assert_eq!(binary(BinOp::SDiv, ty, min, ty.mask()), min);
            assert_eq!(binary(BinOp::SDiv, ty, ty.mask() - 6, 2), ty.mask() - 2, "-7 / 2 = -3");
        }
    }

    #[test]
    fn shifts_take_the_amount_modulo_the_width() {
        assert_eq!(binary(BinOp::Shl, Type::U32, 1, 33), 2);
        assert_eq!(binary(BinOp::Shr, Type::U64, 4, 65), 2);
        assert_eq!(binary(BinOp::Sar, Type::U32, MIN32, 31), 0xffff_ffff);
        assert_eq!(binary(BinOp::Rotr, Type::U32, 1, 1), MIN32);
        assert_eq!(binary(BinOp::Rotr, Type::U64, 5, 64), 5);
    }

    #[test]
    fn high_products() {
        let all = u64::MAX;
        assert_eq!(binary(BinOp::UMulH, Type::U64, all, all), all - 1);
        assert_eq!(binary(BinOp::SMulH, Type::U64, all, all), 0);
        assert_eq!(binary(BinOp::SMulH, Type::U64, MIN64, 2), all);
        assert_eq!(binary(BinOp::UMulH, Type::U32, 0xffff_ffff, 0xffff_ffff), 0xffff_fffe);
    }

    #[test]
    fn counting_and_reversing() {
        assert_eq!(unary(UnOp::Clz, Type::U32, 0), 32);
        assert_eq!(unary(UnOp::Clz, Type::U64, 0), 64);
        assert_eq!(unary(UnOp::Clz, Type::U32, 1), 31);
        assert_eq!(unary(UnOp::Rbit, Type::U32, 1), MIN32);
        assert_eq!(unary(UnOp::Bswap, Type::U32, 0x0102_0304), 0x0403_0201);
        assert_eq!(unary(UnOp::Not, Type::Bool, 1), 0);
    }

    #[test]
    fn conversions() {
        assert_eq!(convert(ConvOp::Sext, Type::U8, Type::U32, 0x80), 0xffff_ff80);
        assert_eq!(convert(ConvOp::Zext, Type::Bool, Type::U64, 1), 1);
        assert_eq!(convert(ConvOp::Trunc, Type::U64, Type::U16, 0x1_2345), 0x2345);
    }

    #[test]
    fn comparisons_know_the_sign_of_their_width() {
        assert!(compare(CmpOp::Slt, Type::U32, 0xffff_ffff, 0));
        assert!(!compare(CmpOp::Slt, Type::U64, 0xffff_ffff, 0));
        assert!(compare(CmpOp::Ule, Type::U64, 3, 3));
        assert!(compare(CmpOp::SAddO, Type::U32, MIN32 - 1, 1));
        assert!(!compare(CmpOp::SAddO, Type::U64, MIN32 - 1, 1));
        assert!(compare(CmpOp::SSubO, Type::U64, MIN64, 1));
        assert!(!compare(CmpOp::SSubO, Type::U64, MIN64, MIN64));
    }
}
