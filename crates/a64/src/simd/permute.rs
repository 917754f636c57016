//! Rearranging elements: ZIP, UZP, TRN, EXT, TBL, TBX.

use kvrm_ir::{PackedOp, Val};

use super::arrangement::{ALL, Arrangement, BYTES, Lane, Part};
use super::vector::Vector;
use crate::Sign;
use crate::context::Context;
use crate::row::{Choice, Row, rows};

/// Which elements are taken, by the operation code: the first or the second of each two.
const ORDER: &[Choice<Order>] = &[
    ("UZP1", "001", Order::Unzip(0)),
    ("TRN1", "010", Order::Transpose(0)),
    ("ZIP1", "011", Order::Zip(0)),
    ("UZP2", "101", Order::Unzip(1)),
    ("TRN2", "110", Order::Transpose(1)),
    ("ZIP2", "111", Order::Zip(1)),
];

#[derive(Clone, Copy)]
enum Order {
    /// Every other element of both operands, one operand after the other.
    Unzip(usize),
    /// Every other element of both operands, in turn.
    Transpose(usize),
    /// Half of both operands, in turn.
    Zip(usize),
}

/// What becomes of bytes whose index is beyond the table.
#[derive(Clone, Copy)]
enum Beyond {
    Zero,
    Keep,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Advanced SIMD permute" for (order in ORDER, t in ALL):
        "{order}_{t}" "0 {t} 0 01110 {t} 0 Rm:5 0 {order} 10 Rn:5 Rd:5" => permute(t, order);
    },
    rows! { "Advanced SIMD extract":
        "EXT_8B"  "0 0 1 01110 00 0 Rm:5 0 0 imm4:3 0 Rn:5 Rd:5" => extract_half();
        "EXT_16B" "0 1 1 01110 00 0 Rm:5 0 imm4:4 0 Rn:5 Rd:5" => extract();
    },
    rows! { "Advanced SIMD table lookup" for (t in BYTES):
        "TBL_{t}" "0 {t} 0 01110 00 0 Rm:5 0 len#2 0 00 Rn:5 Rd:5" => look_up(t, Beyond::Zero);
        "TBX_{t}" "0 {t} 0 01110 00 0 Rm:5 0 len#2 1 00 Rn:5 Rd:5" => look_up(t, Beyond::Keep);
    },
];

fn permute(cx: &Context<'_>, t: Arrangement, order: Order) {
    let count = t.count();
    let number = |i: usize| match order {
        Order::Unzip(first) => 2 * i + first,
        Order::Transpose(first) => i % 2 * count + i / 2 * 2 + first,
        Order::Zip(half) => i % 2 * count + half * count / 2 + i / 2,
    };
    cx.set_result(t, cx.vector_of("Rn").permuted(t, cx.vector_of("Rm"), number));
}

/// 64 bits from a byte on, of two words.
fn funnel<'b>(low: Val<'b>, high: Val<'b>, bytes: Val<'b>) -> Val<'b> {
    let bits = bytes << 3;
    // In two steps, because the upper word may have to go altogether.
    low.shr_by(bits) | (high << 1).shl_by(!bits & 63u64)
}

fn extract_half(cx: &Context<'_>) {
    let [n, m] = ["Rn", "Rm"].map(|field| cx.vector_of(field).0[0]);
    cx.set_vector_of("Rd", Vector::of([funnel(n, m, cx.field("imm4")), cx.b.u64(0)]));
}

fn extract(cx: &Context<'_>) {
    let (n, m, imm) = (cx.vector_of("Rn"), cx.vector_of("Rm"), cx.field("imm4"));
    if let Some(first) = imm.constant() {
        let bytes = Arrangement { lane: Lane::B, part: Part::Whole };
        return cx.set_vector_of("Rd", n.permuted(bytes, m, |i| i + first as usize));
    }
    let ([n0, n1], [m0, m1]) = (n.0, m.0);
    let (bytes, far) = (imm & 7u64, imm.bit(3));
    let [a, b, c] = [far.select(n1, n0), far.select(m0, n1), far.select(m1, m0)];
    cx.set_vector_of("Rd", Vector::of([funnel(a, b, bytes), funnel(b, c, bytes)]));
}

/// TBL, TBX: the table is in up to four registers, of which V0 follows V31.
fn look_up<'b>(cx: &Context<'b>, t: Arrangement, beyond: Beyond) {
    let first = cx.field("Rn");
    let registers = u64::from(cx.shape("len")) + 1;
    let table: Vec<_> = (0..registers).map(|i| cx.vector((first + i) & 31u64)).collect();
    if let Some(found) = look_up_wholes(cx, &table, beyond) {
        return cx.set_result(t, found);
    }
    let table: Vec<_> = table.into_iter().flat_map(|vector| vector.0).collect();
    let old = cx.vector_of("Rd").elements(t, Sign::Unsigned);
    let indices = cx.vector_of("Rm").elements(t, Sign::Unsigned);
    let entry = |(index, old): (Val<'b>, Val<'b>)| {
        let word = chosen(&table, index >> 3);
        let byte = word.shr_by((index & 7u64) << 3).trunc(Lane::B.value_type());
        let otherwise = match beyond {
            Beyond::Zero => index.like(0),
            Beyond::Keep => old,
        };
        index.ult(16 * registers).select(byte, otherwise)
    };
    let elements: Vec<_> = indices.into_iter().zip(old).map(entry).collect();
    cx.set_elements(t, &elements);
}

/// The same with wholes: bytes of each register, by numbers from that register on.
fn look_up_wholes<'b>(
    cx: &Context<'b>,
    table: &[Vector<'b>],
    beyond: Beyond,
) -> Option<Vector<'b>> {
    let bytes = Arrangement { lane: Lane::B, part: Part::Whole };
    let number = |n: usize| Vector::both(cx.b.u64(Lane::B.repeated(n as u64)));
    let indices = cx.vector_of("Rm");
    let found = table.iter().enumerate().map(|(i, own)| {
        own.packed(PackedOp::Lookup, Lane::B, [indices.sub(Lane::B, number(16 * i))])
    });
    let found = found.reduce(|a, b| Some(a?.bits(b?, |a, b| a | b))).flatten()?;
    Some(match beyond {
        Beyond::Zero => found,
        Beyond::Keep => {
            let is_beyond = indices.greater(bytes, Sign::Unsigned, number(16 * table.len() - 1));
            is_beyond.choose(cx.vector_of("Rd"), found)
        }
    })
}

/// The word with that number, by the bits of the number.
fn chosen<'b>(words: &[Val<'b>], number: Val<'b>) -> Val<'b> {
    match words {
        [word] => *word,
        _ => {
            let half = words.len().next_power_of_two() / 2;
            let (low, high) = words.split_at(half);
            number.bit(half.ilog2()).select(chosen(high, number), chosen(low, number))
        }
    }
}
