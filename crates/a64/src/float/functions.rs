//! The functions: their names, parameters and results.
//!
//! The last parameter is FPCR and the last result is what FPSR gains, unless a function says otherwise.

use kvrm_ir::{FloatOp, Function, Type};

use super::compare::{Extreme, Nans, Relation};
use super::estimate::{self, Step};
use super::fixed::integer_type;
use super::native::Right;
use super::round::Rounding;
use super::{DOUBLE, Format, Fp, HALF, SINGLE};
use crate::Sign::{self, Signed, Unsigned};

/// The type of FPCR, FPSR and the like.
const W: Type = Type::U32;

/// A function that works on numbers of one format, as FPCR says; after `or`, its shortcut; after `also if`, when the number
/// that this gives is right nevertheless.
macro_rules! function {
    (
        $name:expr, $format:expr, ($($param:ident: $ty:expr),*) -> ($($result:expr),*),
        |$fp:ident| $body:expr
    ) => {
        Function::new(
            $name, &[$($ty),*, W], &[$($result),*],
            function!(@body $format, ($($param),*), $fp, $body),
        )
    };
    (
        $name:expr, $format:expr, ($($param:ident: $ty:expr),*) -> ($($result:expr),*),
        |$fp:ident| $body:expr, or $shortcut:expr
    ) => {
        function!($name, $format, ($($param: $ty),*) -> ($($result),*), |$fp| $body)
            .with_shortcut(function!(@body $format, ($($param),*), $fp, $shortcut))
    };
    (
        $name:expr, $format:expr, ($($param:ident: $ty:expr),*) -> ($($result:expr),*),
        |$fp:ident| $body:expr, or $shortcut:expr, also if |$number:ident| $right:expr
    ) => {
        function!(
            $name, $format, ($($param: $ty),*) -> ($($result),*), |$fp| $body, or $shortcut
        )
        .with_detour(|b, args| {
            let &[$($param),*, fpcr, $number, _] = args else {
                unreachable!("it has these parameters and results")
            };
            let $fp = Fp::new(b, $format, fpcr);
            vec![$right]
        })
    };
    (@body $format:expr, ($($param:ident),*), $fp:ident, $body:expr) => {
        |b, args| {
            let &[$($param),*, fpcr] = args else { unreachable!("it has these parameters") };
            let $fp = Fp::new(b, $format, fpcr);
            $body.to_vec()
        }
    };
}

/// Declares functions that exist once for each format. `F` is the format's type, `W` is `u32`.
macro_rules! by_format {
    ($(
        $(#[$doc:meta])*
        $lookup:ident = $name:literal ($($param:ident: $ty:ident),*) -> ($($result:ident),*)
            |$fp:ident| $body:expr $(, or $shortcut:expr $(, also if |$number:ident| $right:expr)?)?;
    )*) => {$(
        $(#[$doc])*
        pub(crate) fn $lookup(format: Format) -> &'static Function {
            static FUNCTIONS: [Function; 3] = [
                by_format!(
                    @one HALF concat!($name, "_16"), ($($param: $ty),*), ($($result),*),
                    $fp, $body $(, or $shortcut $(, also if |$number| $right)?)?
                ),
                by_format!(
                    @one SINGLE concat!($name, "_32"), ($($param: $ty),*), ($($result),*),
                    $fp, $body $(, or $shortcut $(, also if |$number| $right)?)?
                ),
                by_format!(
                    @one DOUBLE concat!($name, "_64"), ($($param: $ty),*), ($($result),*),
                    $fp, $body $(, or $shortcut $(, also if |$number| $right)?)?
                ),
            ];
            &FUNCTIONS[format.index()]
        }
    )*};
    (
        @one $format:ident $name:expr, ($($param:ident: $ty:ident),*), ($($result:ident),*),
        $fp:ident, $body:expr $(, or $shortcut:expr $(, also if |$number:ident| $right:expr)?)?
    ) => {{
        const F: Type = $format.ty();
        function!(
            $name, $format, ($($param: $ty),*) -> ($($result),*),
            |$fp| $body $(, or $shortcut $(, also if |$number| $right)?)?
        )
    }};
}

by_format! {
    /// The sum.
    fp_add = "FPAdd" (op1: F, op2: F) -> (F, W) |fp| fp.add(op1, op2),
        or fp.native(FloatOp::Add, &[op1, op2], Right::Finite);
    /// The difference.
    fp_sub = "FPSub" (op1: F, op2: F) -> (F, W) |fp| fp.sub(op1, op2),
        or fp.native(FloatOp::Sub, &[op1, op2], Right::Finite);
    /// The product.
    fp_mul = "FPMul" (op1: F, op2: F) -> (F, W) |fp| fp.mul(op1, op2),
        or fp.native(FloatOp::Mul, &[op1, op2], Right::AboveLeastNormal),
        also if |number| fp.is_exact(FloatOp::Mul, &[op1, op2], number);
    /// The sum of the first and the product of the other two operands, rounded once.
    fp_mul_add = "FPMulAdd" (addend: F, op1: F, op2: F) -> (F, W) |fp| fp.mul_add(addend, op1, op2),
        or fp.native(FloatOp::MulAdd, &[op1, op2, addend], Right::AboveLeastNormal),
        also if |number| fp.is_exact(FloatOp::MulAdd, &[op1, op2, addend], number);
    /// The quotient.
    fp_div = "FPDiv" (op1: F, op2: F) -> (F, W) |fp| fp.div(op1, op2),
        or fp.native(FloatOp::Div, &[op1, op2], Right::AboveLeastNormal),
        also if |number| fp.is_exact(FloatOp::Div, &[op1, op2], number);
    /// The product; that of zero and infinity is two.
    fp_mul_x = "FPMulX" (op1: F, op2: F) -> (F, W) |fp| fp.mul_x(op1, op2),
        or fp.native(FloatOp::Mul, &[op1, op2], Right::AboveLeastNormal),
        also if |number| fp.is_exact(FloatOp::Mul, &[op1, op2], number);
    /// The square root.
    fp_sqrt = "FPSqrt" (op: F) -> (F, W) |fp| fp.sqrt(op),
        or fp.native(FloatOp::Sqrt, &[op], Right::AboveLeastNormal),
        also if |number| fp.is_exact(FloatOp::Sqrt, &[op], number);

    /// N, Z, C and V of a comparison, from bit 3 to bit 0. Only signalling NaNs are invalid.
    fp_compare = "FPCompare" (op1: F, op2: F) -> (W, W) |fp| fp.compare(op1, op2, Nans::Signalling),
        or fp.native_compare(op1, op2);
    /// The same, but all NaNs are invalid.
    fp_compare_signalling = "FPCompareSignalling" (op1: F, op2: F) -> (W, W)
        |fp| fp.compare(op1, op2, Nans::All),
        or fp.native_compare(op1, op2);
    /// Whether operands are equal, as 0 or 1. Only signalling NaNs are invalid.
    fp_compare_eq = "FPCompareEQ" (op1: F, op2: F) -> (W, W) |fp| fp.compares(op1, op2, Relation::Equal),
        or fp.native_compares(op1, op2, Relation::Equal);
    /// Whether the first operand is greater than or equal to the second. All NaNs are invalid.
    fp_compare_ge = "FPCompareGE" (op1: F, op2: F) -> (W, W)
        |fp| fp.compares(op1, op2, Relation::GreaterOrEqual),
        or fp.native_compares(op1, op2, Relation::GreaterOrEqual);
    /// Whether the first operand is greater than the second. All NaNs are invalid.
    fp_compare_gt = "FPCompareGT" (op1: F, op2: F) -> (W, W) |fp| fp.compares(op1, op2, Relation::Greater),
        or fp.native_compares(op1, op2, Relation::Greater);
    /// The greater operand.
    fp_max = "FPMax" (op1: F, op2: F) -> (F, W) |fp| fp.extreme(op1, op2, Extreme::Max),
        or fp.native_extreme(op1, op2, Extreme::Max);
    /// The lesser operand.
    fp_min = "FPMin" (op1: F, op2: F) -> (F, W) |fp| fp.extreme(op1, op2, Extreme::Min),
        or fp.native_extreme(op1, op2, Extreme::Min);
    /// The greater operand, or the one that is not a quiet NaN.
    fp_max_num = "FPMaxNum" (op1: F, op2: F) -> (F, W) |fp| fp.extreme_number(op1, op2, Extreme::Max),
        or fp.native_extreme(op1, op2, Extreme::Max);
    /// The lesser operand, or the one that is not a quiet NaN.
    fp_min_num = "FPMinNum" (op1: F, op2: F) -> (F, W) |fp| fp.extreme_number(op1, op2, Extreme::Min),
        or fp.native_extreme(op1, op2, Extreme::Min);

    /// The number as an integer of the same format: `rounding` is 0 to 3 as RMode, or 4 (to nearest, ties away
    /// from zero); inexact counts if `exact` is 1.
    fp_round_int = "FPRoundInt" (op: F, rounding: W, exact: W) -> (F, W)
        |fp| fp.round_int(op, rounding, exact);

    /// About 1/op.
    fp_recip_estimate = "FPRecipEstimate" (op: F) -> (F, W) |fp| fp.recip_estimate(op);
    /// About 1/√op.
    fp_rsqrt_estimate = "FPRSqrtEstimate" (op: F) -> (F, W) |fp| fp.rsqrt_estimate(op);
    /// `2 - op1 op2`, rounded once.
    fp_recip_step_fused = "FPRecipStepFused" (op1: F, op2: F) -> (F, W) |fp| fp.step(op1, op2, Step::Recip);
    /// `(3 - op1 op2) / 2`, rounded once.
    fp_rsqrt_step_fused = "FPRSqrtStepFused" (op1: F, op2: F) -> (F, W) |fp| fp.step(op1, op2, Step::RSqrt);
    /// A power of two that is near the reciprocal.
    fp_recp_x = "FPRecpX" (op: F) -> (F, W) |fp| fp.recp_x(op);
}

/// About 2^63/op for operands from 2^31 on, and all ones for others: a `u32` of a `u32`.
pub(crate) fn unsigned_recip_estimate() -> &'static Function {
    static FUNCTION: Function = Function::new("UnsignedRecipEstimate", &[W], &[W], |b, args| {
        vec![estimate::unsigned_recip_estimate(b, args[0])]
    });
    &FUNCTION
}

/// About 2^47/√op for operands from 2^30 on, and all ones for others: a `u32` of a `u32`.
pub(crate) fn unsigned_rsqrt_estimate() -> &'static Function {
    static FUNCTION: Function = Function::new("UnsignedRSqrtEstimate", &[W], &[W], |b, args| {
        vec![estimate::unsigned_rsqrt_estimate(b, args[0])]
    });
    &FUNCTION
}

/// `FPToFixedJS`: a double as an integer of 32 bits, modulo 2^32, as JavaScript converts. The second result is
/// 1 if it is exact, which minus zero is not.
pub(crate) fn fp_to_fixed_js() -> &'static Function {
    static FUNCTION: Function =
        function!("FPToFixedJS", DOUBLE, (op: Type::U64) -> (W, W, W), |fp| fp.to_fixed_js(op));
    &FUNCTION
}

/// The results of a conversion that are right: none is too small for a larger format.
const fn exactly(from: Format, to: Format) -> Right {
    if to.bits > from.bits { Right::Finite } else { Right::AboveLeastNormal }
}

/// Converts to another format.
pub(crate) fn fp_convert(from: Format, to: Format) -> &'static Function {
    macro_rules! convert {
        ($from:ident $to:ident $name:literal) => {{
            static FUNCTION: Function = function!(
                $name, $from, (op: $from.ty()) -> ($to.ty(), W),
                |fp| fp.convert(op, $to, Rounding::Fpcr),
                or fp.native_as(FloatOp::Convert, &[op], $to, exactly($from, $to)),
                also if |number| fp.is_exact(FloatOp::Convert, &[op], number)
            );
            &FUNCTION
        }};
    }
    match (from.bits, to.bits) {
        (16, 32) => convert!(HALF SINGLE "FPConvert_16_32"),
        (16, 64) => convert!(HALF DOUBLE "FPConvert_16_64"),
        (32, 16) => convert!(SINGLE HALF "FPConvert_32_16"),
        (32, 64) => convert!(SINGLE DOUBLE "FPConvert_32_64"),
        (64, 16) => convert!(DOUBLE HALF "FPConvert_64_16"),
        (64, 32) => convert!(DOUBLE SINGLE "FPConvert_64_32"),
        _ => unreachable!("conversions change the format"),
    }
}

/// A half as the single that `FPMulAddH` computes with: NaNs are as they were, and FPSR gains nothing.
pub(crate) fn fp_unpack_half() -> &'static Function {
    static FUNCTION: Function =
        function!("FPUnpackHalf", HALF, (op: W) -> (W), |fp| fp.half_as_single(op));
    &FUNCTION
}

/// Converts a double to a single, rounding to odd.
pub(crate) fn fp_convert_odd() -> &'static Function {
    static FUNCTION: Function = function!(
        "FPConvertOdd_64_32", DOUBLE, (op: Type::U64) -> (W, W),
        |fp| fp.convert(op, SINGLE, Rounding::Odd)
    );
    &FUNCTION
}

/// Converts a single to the Brain format.
pub(crate) fn fp_convert_bf() -> &'static Function {
    static FUNCTION: Function =
        function!("FPConvertBF", SINGLE, (op: W) -> (W, W), |fp| fp.convert_bf(op));
    &FUNCTION
}

/// The sum of two singles as in BFDOT: a `u32` of two, whatever FPCR says, without flags.
pub(crate) fn fp_add_bf16() -> &'static Function {
    static FUNCTION: Function = Function::new("FPAdd_BF16", &[W; 2], &[W], |b, args| {
        vec![Fp::bfloat(b).add(args[0], args[1])[0]]
    });
    &FUNCTION
}

/// The product of two numbers in the Brain format, as a single, as in BFDOT: a `u32` of the lower halves of
/// two, whatever FPCR says, without flags.
pub(crate) fn bf_mul_h() -> &'static Function {
    static FUNCTION: Function = Function::new("BFMulH", &[W; 2], &[W], |b, args| {
        vec![Fp::bfloat(b).bf_mul_h(args[0], args[1])]
    });
    &FUNCTION
}

/// Converts between numbers and integers: each format with the widths that instructions have for it.
macro_rules! with_integers {
    ($format:expr, $bits:expr, $sign:expr; $function:ident) => {
        match ($format.bits, $bits, $sign) {
            (16, 16, Signed) => $function!(HALF 16 Signed "_16_S16"),
            (16, 16, Unsigned) => $function!(HALF 16 Unsigned "_16_U16"),
            (16, 32, Signed) => $function!(HALF 32 Signed "_16_S32"),
            (16, 32, Unsigned) => $function!(HALF 32 Unsigned "_16_U32"),
            (16, 64, Signed) => $function!(HALF 64 Signed "_16_S64"),
            (16, 64, Unsigned) => $function!(HALF 64 Unsigned "_16_U64"),
            (32, 32, Signed) => $function!(SINGLE 32 Signed "_32_S32"),
            (32, 32, Unsigned) => $function!(SINGLE 32 Unsigned "_32_U32"),
            (32, 64, Signed) => $function!(SINGLE 64 Signed "_32_S64"),
            (32, 64, Unsigned) => $function!(SINGLE 64 Unsigned "_32_U64"),
            (64, 32, Signed) => $function!(DOUBLE 32 Signed "_64_S32"),
            (64, 32, Unsigned) => $function!(DOUBLE 32 Unsigned "_64_U32"),
            (64, 64, Signed) => $function!(DOUBLE 64 Signed "_64_S64"),
            (64, 64, Unsigned) => $function!(DOUBLE 64 Unsigned "_64_U64"),
            _ => unreachable!("no instruction has integers of {} bits there", $bits),
        }
    };
}

/// A number times 2^fbits, as an integer of that many bits, saturated. `rounding` is 0 to 3 as RMode, or 4 (to
/// nearest, ties away from zero).
pub(crate) fn fp_to_fixed(format: Format, bits: u32, sign: Sign) -> &'static Function {
    macro_rules! to_fixed {
        ($format:ident $bits:literal $sign:ident $suffix:literal) => {{
            static FUNCTION: Function = function!(
                concat!("FPToFixed", $suffix), $format,
                (op: $format.ty(), fbits: W, rounding: W) -> (integer_type($bits), W),
                |fp| fp.to_fixed(op, fbits, rounding, ($bits, $sign)),
                or fp.native_to_integer(op, [fbits, rounding], ($bits, $sign))
            );
            &FUNCTION
        }};
    }
    with_integers!(format, bits, sign; to_fixed)
}

/// An integer of that many bits, divided by 2^fbits.
pub(crate) fn fixed_to_fp(format: Format, bits: u32, sign: Sign) -> &'static Function {
    macro_rules! from_fixed {
        ($format:ident $bits:literal $sign:ident $suffix:literal) => {{
            static FUNCTION: Function = function!(
                concat!("FixedToFP", $suffix), $format,
                (op: integer_type($bits), fbits: W) -> ($format.ty(), W),
                |fp| fp.fixed_to_fp(op, fbits, ($bits, $sign)),
                or fp.native_from_integer(op, fbits, ($bits, $sign))
            );
            &FUNCTION
        }};
    }
    with_integers!(format, bits, sign; from_fixed)
}

/// The number as an integer that fits a signed one of that many bits; the least one if there is none.
/// `rounding` is 0 to 3 as RMode.
pub(crate) fn fp_round_int_n(format: Format, bits: u32) -> &'static Function {
    macro_rules! round_int_n {
        ($format:ident $bits:literal $name:literal) => {{
            static FUNCTION: Function = function!(
                $name, $format, (op: $format.ty(), rounding: W) -> ($format.ty(), W),
                |fp| fp.round_int_n(op, rounding, $bits)
            );
            &FUNCTION
        }};
    }
    match (format.bits, bits) {
        (32, 32) => round_int_n!(SINGLE 32 "FPRoundIntN_32_32"),
        (32, 64) => round_int_n!(SINGLE 64 "FPRoundIntN_32_64"),
        (64, 32) => round_int_n!(DOUBLE 32 "FPRoundIntN_64_32"),
        (64, 64) => round_int_n!(DOUBLE 64 "FPRoundIntN_64_64"),
        _ => unreachable!("no instruction has these widths"),
    }
}
