//! Between numbers and integers in general registers.

use kvrm_ir::{Flags, Type, Val};

use super::{FTYPE, RoundingMode};
use crate::Sign;
use crate::context::Context;
use crate::float::{fixed_to_fp, fp_to_fixed, fp_to_fixed_js};
use crate::row::{Choice, Row, rows};
use crate::simd::arrangement::Lane;
use crate::simd::three_same::SIGN;
use crate::{SF, W, X};

/// How a number is rounded, by `rmode` and the highest bit of the operation code.
const ROUNDING: &[Choice<RoundingMode>] = &[
    ("N", "00 0", RoundingMode::TieEven),
    ("A", "00 1", RoundingMode::TieAway),
    ("P", "01 0", RoundingMode::Up),
    ("M", "10 0", RoundingMode::Down),
    ("Z", "11 0", RoundingMode::Zero),
];
/// Operand sizes, by `sf` and the field `scale`, in which the number of fraction bits is subtracted from 64.
const SCALED: &[Choice<Type>] = &[("W", "0|1 scale:5", W), ("X", "1|scale:6", X)];
/// Registers that FMOV moves between, by `sf` and `ftype`.
const MOVED: &[Choice<(Type, Lane)>] = &[
    ("W_H", "0|11", (W, Lane::H)),
    ("X_H", "1|11", (X, Lane::H)),
    ("W_S", "0|00", (W, Lane::S)),
    ("X_D", "1|01", (X, Lane::D)),
];

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Conversion between floating-point and integer" for (mode in ROUNDING, sign in SIGN, sf in SF, t in FTYPE):
        "FCVT{mode}{sign}_{sf}_{t}" "{sf} 0 0 11110 {t} 1 {mode}0{sign} 000000 Rn:5 Rd:5"
            => to_integer(sf, t, sign, mode);
    },
    rows! { "Conversion between floating-point and integer" for (sign in SIGN, sf in SF, t in FTYPE):
        "{sign}CVTF_{sf}_{t}" "{sf} 0 0 11110 {t} 1 00 01{sign} 000000 Rn:5 Rd:5" => from_integer(sf, t, sign);
    },
    rows! { "Conversion between floating-point and integer" for (t in MOVED):
        "FMOV_to_{t}"   "{t} 0 0 11110 {t} 1 00 110 000000 Rn:5 Rd:5" => move_to_general(t);
        "FMOV_from_{t}" "{t} 0 0 11110 {t} 1 00 111 000000 Rn:5 Rd:5" => move_from_general(t);
    },
    rows! { "Conversion between floating-point and integer":
        "FMOV_to_X_D1"   "1 0 0 11110 10 1 01 110 000000 Rn:5 Rd:5" => move_to_general_upper();
        "FMOV_from_X_D1" "1 0 0 11110 10 1 01 111 000000 Rn:5 Rd:5" => move_from_general_upper();
        "FJCVTZS"        "0 0 0 11110 01 1 11 110 000000 Rn:5 Rd:5" => to_integer_javascript();
    },
    rows! { "Conversion between floating-point and fixed-point" for (sign in SIGN, sf in SCALED, t in FTYPE):
        "FCVTZ{sign}_fixed_{sf}_{t}" "{sf} 0 0 11110 {t} 0 11 00{sign} {sf} Rn:5 Rd:5" => to_fixed(sf, t, sign);
        "{sign}CVTF_fixed_{sf}_{t}"  "{sf} 0 0 11110 {t} 0 00 01{sign} {sf} Rn:5 Rd:5" => from_fixed(sf, t, sign);
    },
];

/// Sets a general register to a number times 2^fbits.
fn convert_to<'b>(
    cx: &Context<'b>,
    (ty, lane, sign): (Type, Lane, Sign),
    mode: RoundingMode,
    fbits: Val<'b>,
) {
    let n = cx.number_of(lane, "Rn");
    let function = fp_to_fixed(lane.format(), ty.bits(), sign);
    cx.set_reg_of("Rd", cx.floating(|fp| fp.call(function, &[n, fbits, fp.rounding(mode)])));
}

/// Sets a register to the number in a general register, divided by 2^fbits.
fn convert_from<'b>(cx: &Context<'b>, (ty, lane, sign): (Type, Lane, Sign), fbits: Val<'b>) {
    let function = fixed_to_fp(lane.format(), ty.bits(), sign);
    cx.set_number(lane, cx.fp_call(function, &[cx.reg_of(ty, "Rn"), fbits]));
}

/// FCVTNS, FCVTNU, FCVTAS and so on.
fn to_integer(cx: &Context<'_>, ty: Type, lane: Lane, sign: Sign, mode: RoundingMode) {
    convert_to(cx, (ty, lane, sign), mode, cx.b.u32(0));
}

/// SCVTF, UCVTF.
fn from_integer(cx: &Context<'_>, ty: Type, lane: Lane, sign: Sign) {
    convert_from(cx, (ty, lane, sign), cx.b.u32(0));
}

/// The number of fraction bits.
fn fbits<'b>(cx: &Context<'b>, ty: Type) -> Val<'b> {
    cx.b.u32(ty.bits()) - cx.field("scale")
}

/// FCVTZS, FCVTZU (fixed-point).
fn to_fixed(cx: &Context<'_>, ty: Type, lane: Lane, sign: Sign) {
    convert_to(cx, (ty, lane, sign), RoundingMode::Zero, fbits(cx, ty));
}

/// SCVTF, UCVTF (fixed-point).
fn from_fixed(cx: &Context<'_>, ty: Type, lane: Lane, sign: Sign) {
    convert_from(cx, (ty, lane, sign), fbits(cx, ty));
}

/// FMOV to a general register.
fn move_to_general(cx: &Context<'_>, (ty, lane): (Type, Lane)) {
    cx.set_reg_of("Rd", cx.number_of(lane, "Rn").zext(ty));
}

/// FMOV from a general register.
fn move_from_general(cx: &Context<'_>, (ty, lane): (Type, Lane)) {
    cx.set_number(lane, cx.reg_of(ty, "Rn"));
}

/// FMOV from the upper half of a register.
fn move_to_general_upper(cx: &Context<'_>) {
    cx.set_reg_of("Rd", cx.vector_of("Rn").0[1]);
}

/// FMOV to the upper half of a register, which leaves the lower half.
fn move_from_general_upper(cx: &Context<'_>) {
    cx.set_element_of(cx.field("Rd"), Lane::D, cx.b.u32(1), cx.reg_of(X, "Rn"));
}

/// FJCVTZS: Z says whether the result is exact.
fn to_integer_javascript(cx: &Context<'_>) {
    let n = cx.number_of(Lane::D, "Rn");
    let [result, exact] = cx.floating(|fp| {
        let [result, exact, flags] = fp.results(fp_to_fixed_js(), &[n]);
        fp.gain(flags);
        [result, exact]
    });
    let no = cx.b.bool(false);
    cx.set_flags(Flags::Bits([no, exact.ne(0u64), no, no]));
    cx.set_reg_of("Rd", result);
}
