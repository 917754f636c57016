//! One operand and the result: reversals, counts, absolute values, comparisons with zero, narrowing, pairwise sums.

use kvrm_ir::{Type, Val};

use super::arrangement::{
    ALL, Arrangement, BH, BHS, BYTES, Lane, NARROW, NARROW_SCALAR, Part, SCALAR, SCALAR_D,
};
use super::elements::{saturated, saturated_unsigned, saturating_sub};
use super::three_same::SIGN;
use super::vector::Vector;
use crate::Sign;
use crate::context::Context;
use crate::row::{Choice, Row, rows};

/// Comparisons with zero, by U and the operation code.
const ZERO: &[Choice<ZeroTest>] = &[
    ("GT", "0|01000", ZeroTest::Greater),
    ("GE", "1|01000", ZeroTest::GreaterOrEqual),
    ("EQ", "0|01001", ZeroTest::Equal),
    ("LE", "1|01001", ZeroTest::LessOrEqual),
    ("LT", "0|01010", ZeroTest::Less),
];
/// Absolute values and negation, by U.
const ABS_NEG: &[Choice<Change>] = &[("ABS", "0", Change::Abs), ("NEG", "1", Change::Neg)];
/// Narrowing, by U and the operation code.
const EXTRACT: &[Choice<Narrowing>] = &[
    ("SQXTN", "0|10100", Narrowing { from: Sign::Signed, to: Sign::Signed }),
    ("UQXTN", "1|10100", Narrowing { from: Sign::Unsigned, to: Sign::Unsigned }),
    ("SQXTUN", "1|10010", Narrowing { from: Sign::Signed, to: Sign::Unsigned }),
];

#[derive(Clone, Copy)]
enum ZeroTest {
    Greater,
    GreaterOrEqual,
    Equal,
    LessOrEqual,
    Less,
}

#[derive(Clone, Copy)]
enum Change {
    Abs,
    Neg,
}

/// How elements are read before they are narrowed, and after it.
#[derive(Clone, Copy)]
struct Narrowing {
    from: Sign,
    to: Sign,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD two-register miscellaneous" for (t in BHS):
        "REV64_{t}" "0 {t} 0 01110 {t} 10000 00000 10 Rn:5 Rd:5" => reverse(t, 64);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (t in BH):
        "REV32_{t}" "0 {t} 1 01110 {t} 10000 00000 10 Rn:5 Rd:5" => reverse(t, 32);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (t in BYTES):
        "REV16_{t}" "0 {t} 0 01110 00 10000 00001 10 Rn:5 Rd:5" => reverse(t, 16);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (sign in SIGN, t in BHS):
        "{sign}ADDLP_{t}" "0 {t} {sign} 01110 {t} 10000 00010 10 Rn:5 Rd:5" => add_long_pairs(t, sign);
        "{sign}ADALP_{t}" "0 {t} {sign} 01110 {t} 10000 00110 10 Rn:5 Rd:5" => accumulate_long_pairs(t, sign);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (t in ALL):
        "SUQADD_{t}" "0 {t} 0 01110 {t} 10000 00011 10 Rn:5 Rd:5" => accumulate_mixed(t, Sign::Signed);
        "USQADD_{t}" "0 {t} 1 01110 {t} 10000 00011 10 Rn:5 Rd:5" => accumulate_mixed(t, Sign::Unsigned);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (t in SCALAR):
        "SUQADD_{t}" "01 0 11110 {t} 10000 00011 10 Rn:5 Rd:5" => accumulate_mixed(t, Sign::Signed);
        "USQADD_{t}" "01 1 11110 {t} 10000 00011 10 Rn:5 Rd:5" => accumulate_mixed(t, Sign::Unsigned);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (t in BHS):
        "CLS_{t}" "0 {t} 0 01110 {t} 10000 00100 10 Rn:5 Rd:5" => count_sign(t);
        "CLZ_{t}" "0 {t} 1 01110 {t} 10000 00100 10 Rn:5 Rd:5" => count_zeros(t);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (t in BYTES):
        "CNT_{t}"  "0 {t} 0 01110 00 10000 00101 10 Rn:5 Rd:5" => count_ones(t);
        "NOT_{t}"  "0 {t} 1 01110 00 10000 00101 10 Rn:5 Rd:5" => not(t);
        "RBIT_{t}" "0 {t} 1 01110 01 10000 00101 10 Rn:5 Rd:5" => reverse_bits(t);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (op in ABS_NEG, t in ALL):
        "SQ{op}_{t}" "0 {t} {op} 01110 {t} 10000 00111 10 Rn:5 Rd:5" => change_saturating(t, op);
        "{op}_{t}"   "0 {t} {op} 01110 {t} 10000 01011 10 Rn:5 Rd:5" => change(t, op);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (op in ABS_NEG, t in SCALAR):
        "SQ{op}_{t}" "01 {op} 11110 {t} 10000 00111 10 Rn:5 Rd:5" => change_saturating(t, op);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (op in ABS_NEG, t in SCALAR_D):
        "{op}_{t}" "01 {op} 11110 {t} 10000 01011 10 Rn:5 Rd:5" => change(t, op);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (op in ZERO, t in ALL):
        "CM{op}_zero_{t}" "0 {t} {op} 01110 {t} 10000 {op} 10 Rn:5 Rd:5" => compare_zero(t, op);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (op in ZERO, t in SCALAR_D):
        "CM{op}_zero_{t}" "01 {op} 11110 {t} 10000 {op} 10 Rn:5 Rd:5" => compare_zero(t, op);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (t in NARROW):
        "XTN_{t}"  "0 {t} 0 01110 {t} 10000 10010 10 Rn:5 Rd:5" => extract_narrow(t);
        "SHLL_{t}" "0 {t} 1 01110 {t} 10000 10011 10 Rn:5 Rd:5" => shift_left_long(t);
    },
    rows! { "Advanced SIMD two-register miscellaneous" for (op in EXTRACT, t in NARROW):
        "{op}_{t}" "0 {t} {op} 01110 {t} 10000 {op} 10 Rn:5 Rd:5" => extract_saturating(t, op);
    },
    rows! { "Advanced SIMD scalar two-register miscellaneous" for (op in EXTRACT, t in NARROW_SCALAR):
        "{op}_{t}" "01 {op} 11110 {t} 10000 {op} 10 Rn:5 Rd:5" => extract_saturating(t, op);
    },
];

/// The same operation on each element.
fn each<'b>(cx: &Context<'b>, t: Arrangement, sign: Sign, f: impl Fn(Val<'b>) -> Val<'b>) {
    let elements: Vec<_> = cx.vector_of("Rn").elements(t, sign).into_iter().map(f).collect();
    cx.set_elements(t, &elements);
}

/// REV16, REV32, REV64.
fn reverse(cx: &Context<'_>, t: Arrangement, within: u32) {
    let n = cx.vector_of("Rn");
    let group = (within / t.lane.bits()) as usize;
    // The last of a group comes first.
    cx.set_result(t, n.permuted(t, n, |i| i ^ (group - 1)));
}

/// Sums of pairs of elements, each as long as two of them.
fn long_pairs<'b>(cx: &Context<'b>, t: Arrangement, sign: Sign) -> Vec<Val<'b>> {
    let n = cx.vector_of("Rn").elements(t, sign);
    let sum = |pair: &[Val<'b>]| {
        let [a, b] = [pair[0], pair[1]].map(|v| extended(t.lane.doubled(), sign, v));
        a + b
    };
    n.chunks(2).map(sum).collect()
}

/// An element as one of another size.
pub(super) fn extended(to: Lane, sign: Sign, element: Val<'_>) -> Val<'_> {
    match sign {
        Sign::Signed => element.sext(to.value_type()),
        Sign::Unsigned => element.zext(to.value_type()),
    }
}

fn doubled(t: Arrangement) -> Arrangement {
    Arrangement { lane: t.lane.doubled(), ..t }
}

/// SADDLP, UADDLP.
fn add_long_pairs(cx: &Context<'_>, t: Arrangement, sign: Sign) {
    cx.set_elements(doubled(t), &long_pairs(cx, t, sign));
}

/// SADALP, UADALP.
fn accumulate_long_pairs(cx: &Context<'_>, t: Arrangement, sign: Sign) {
    let lane = t.lane.doubled();
    let sums = Vector::from_elements(cx.b, lane, &long_pairs(cx, t, sign));
    cx.set_result(doubled(t), cx.vector_of("Rd").add(lane, sums));
}

/// SUQADD, USQADD: adds elements of one kind to accumulators of the other.
fn accumulate_mixed(cx: &Context<'_>, t: Arrangement, to: Sign) {
    let from = match to {
        Sign::Signed => Sign::Unsigned,
        Sign::Unsigned => Sign::Signed,
    };
    let d = cx.vector_of("Rd").elements(t, to);
    let n = cx.vector_of("Rn").elements(t, from);
    let (elements, saturation): (Vec<_>, Vec<_>) =
        d.into_iter().zip(n).map(|(d, n)| add_mixed(t.lane, to, d, n)).unzip();
    cx.set_elements(t, &elements);
    cx.set_saturation(saturation);
}

/// The sum of an element of one kind and one of the other, as one of the first kind.
fn add_mixed<'b>(lane: Lane, to: Sign, d: Val<'b>, n: Val<'b>) -> (Val<'b>, Val<'b>) {
    match (lane, to) {
        (Lane::B | Lane::H, _) => saturated(lane, to, d + n),
        (Lane::S, Sign::Signed) => saturated(lane, to, d.sext(Type::U64) + n.zext(Type::U64)),
        (Lane::S, Sign::Unsigned) => saturated(lane, to, d.zext(Type::U64) + n.sext(Type::U64)),
        (Lane::D, Sign::Signed) => {
            // The sum is too large if it wraps around, or if it leaves the positive numbers.
            let sum = d + n;
            let largest = d.like(u64::MAX >> 1);
            let over = sum.slt(d) | n.sign() & !d.sign();
            (over.select(largest, sum), over)
        }
        (Lane::D, Sign::Unsigned) => {
            let sum = d + n;
            let over = !n.sign() & sum.ult(d);
            let under = n.sign() & d.ult(sum);
            let limit = over.select(d.like(u64::MAX), d.like(0));
            let outside = over | under;
            (outside.select(limit, sum), outside)
        }
    }
}

/// Leading zeros of the low bits of a value.
fn leading_zeros(lane: Lane, n: Val<'_>) -> Val<'_> {
    let unused = u64::from(lane.value_type().bits() - lane.bits());
    n.clz() - unused
}

fn count_zeros(cx: &Context<'_>, t: Arrangement) {
    each(cx, t, Sign::Unsigned, |n| leading_zeros(t.lane, n));
}

fn count_sign(cx: &Context<'_>, t: Arrangement) {
    each(cx, t, Sign::Signed, |n| {
        let unused = u64::from(n.ty().bits() - t.lane.bits());
        (n ^ n.sar(n.ty().bits() - 1)).clz() - (unused + 1)
    });
}

/// Both halves, by the same formula.
fn halves<'b>(cx: &Context<'b>, t: Arrangement, f: impl Fn(Val<'b>) -> Val<'b>) {
    cx.set_result(t, Vector::of(cx.vector_of("Rn").0.map(f)));
}

/// CNT: sums within pairs of bits, of those within four, of those within eight.
fn count_ones(cx: &Context<'_>, t: Arrangement) {
    halves(cx, t, |n| {
        let pairs = n - ((n >> 1) & 0x5555_5555_5555_5555);
        let fours = (pairs & 0x3333_3333_3333_3333) + ((pairs >> 2) & 0x3333_3333_3333_3333);
        (fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f
    });
}

fn not(cx: &Context<'_>, t: Arrangement) {
    cx.set_result(t, cx.vector_of("Rn").inverted());
}

fn reverse_bits(cx: &Context<'_>, t: Arrangement) {
    halves(cx, t, |n| n.rbit().bswap());
}

/// ABS, NEG.
fn change(cx: &Context<'_>, t: Arrangement, op: Change) {
    let n = cx.vector_of("Rn");
    match op {
        Change::Neg => {
            let zero = Vector::both(cx.b.u64(0));
            cx.set_result(t, zero.sub(t.lane, n));
        }
        Change::Abs => each(cx, t, Sign::Signed, |n| n.sign().select(-n, n)),
    }
}

/// SQABS, SQNEG.
fn change_saturating(cx: &Context<'_>, t: Arrangement, op: Change) {
    let n = cx.vector_of("Rn").elements(t, Sign::Signed);
    let results = n.into_iter().map(|n| {
        let (negated, saturates) = saturating_sub(t.lane, Sign::Signed, n.like(0), n);
        match op {
            Change::Neg => (negated, saturates),
            Change::Abs => (n.sign().select(negated, n), saturates),
        }
    });
    let (elements, saturation): (Vec<_>, Vec<_>) = results.unzip();
    cx.set_elements(t, &elements);
    cx.set_saturation(saturation);
}

/// CMGT, CMGE, CMEQ, CMLE, CMLT with zero.
fn compare_zero(cx: &Context<'_>, t: Arrangement, test: ZeroTest) {
    let (n, zero) = (cx.vector_of("Rn"), Vector::both(cx.b.u64(0)));
    let holds = match test {
        ZeroTest::Greater => n.greater(t, Sign::Signed, zero),
        ZeroTest::GreaterOrEqual => zero.greater(t, Sign::Signed, n).inverted(),
        ZeroTest::Equal => n.equal(t, zero),
        ZeroTest::LessOrEqual => n.greater(t, Sign::Signed, zero).inverted(),
        ZeroTest::Less => zero.greater(t, Sign::Signed, n),
    };
    cx.set_result(t, holds);
}

/// The elements of twice the size that a narrowing instruction reads.
pub(super) fn long_elements<'b>(cx: &Context<'b>, t: Arrangement, sign: Sign) -> Vec<Val<'b>> {
    let part = if t.part == Part::Element { Part::Element } else { Part::Whole };
    cx.vector_of("Rn").elements(Arrangement { lane: t.lane.doubled(), part }, sign)
}

/// Puts narrowed elements where the arrangement says: into the lower half, or into the upper half of what is there.
pub(super) fn set_narrowed<'b>(cx: &Context<'b>, t: Arrangement, elements: &[Val<'b>]) {
    set_narrow_vector(cx, t, Vector::from_elements(cx.b, t.lane, elements));
}

/// The same for a vector with narrowed elements in its lower half.
pub(super) fn set_narrow_vector<'b>(cx: &Context<'b>, t: Arrangement, narrowed: Vector<'b>) {
    let vector = match t.part {
        Part::Whole => Vector::of([cx.vector_of("Rd").0[0], narrowed.0[0]]),
        Part::Half | Part::Element => narrowed,
    };
    cx.set_vector_of("Rd", vector);
}

/// XTN, XTN2.
fn extract_narrow(cx: &Context<'_>, t: Arrangement) {
    set_narrow_vector(cx, t, cx.vector_of("Rn").narrowed(t.lane));
}

/// SQXTN, UQXTN, SQXTUN and their upper forms.
fn extract_saturating(cx: &Context<'_>, t: Arrangement, op: Narrowing) {
    let narrowed = long_elements(cx, t, op.from).into_iter().map(|n| match op.from {
        Sign::Signed => saturated(t.lane, op.to, n),
        Sign::Unsigned => saturated_unsigned(t.lane, n),
    });
    let (elements, saturation): (Vec<_>, Vec<_>) = narrowed.unzip();
    set_narrowed(cx, t, &elements);
    cx.set_saturation(saturation);
}

/// SHLL, SHLL2: by the size of an element.
fn shift_left_long<'b>(cx: &Context<'b>, t: Arrangement) {
    let long = cx.vector_of("Rn").widened(t.lane, Sign::Unsigned, t.part == Part::Whole);
    cx.set_vector_of("Rd", long.shl(t.lane.doubled(), cx.b.u32(t.lane.bits())));
}
