//! Rounds of AES.
//!
//! The state is a register: byte `4 c + r` is in column `c` and row `r`.

use kvrm_ir::{Function, Type, Val};

use super::arrangement::{Arrangement, Lane, Part};
use super::galois::{Field, affine};
use super::vector::Vector;
use crate::Sign;
use crate::context::Context;
use crate::row::{Choice, Row, rows};

const AES: Field = Field(0x1b);

/// By the last bit of the operation code.
const ROUND: &[Choice<Way>] = &[("AESE", "0", Way::Encrypt), ("AESD", "1", Way::Decrypt)];
const MIX: &[Choice<Way>] = &[("AESMC", "0", Way::Encrypt), ("AESIMC", "1", Way::Decrypt)];

#[derive(Clone, Copy)]
enum Way {
    Encrypt,
    Decrypt,
}

pub(super) const ROWS: &[&[Row]] = &[
    rows! { "Cryptographic AES" for (op in ROUND):
        "{op}" "01001110 00 10100 0010{op} 10 Rn:5 Rd:5" => round(op);
    },
    rows! { "Cryptographic AES" for (op in MIX):
        "{op}" "01001110 00 10100 0011{op} 10 Rn:5 Rd:5" => mix_columns(op);
    },
];

/// Eight bytes at once.
static SUB_BYTES: Function = Function::new("AESSubBytes", &[Type::U64], &[Type::U64], |_, args| {
    vec![affine(AES.inverse(args[0]), &[0, 1, 2, 3, 4], 0x63)]
});
static INV_SUB_BYTES: Function =
    Function::new("AESInvSubBytes", &[Type::U64], &[Type::U64], |_, args| {
        vec![AES.inverse(affine(args[0], &[1, 3, 6], 0x05))]
    });

/// `AESShiftRows`, `AESInvShiftRows`: row `r` is rotated by `r` columns.
fn shift_rows<'b>(cx: &Context<'b>, state: Vector<'b>, way: Way) -> Vector<'b> {
    let t = Arrangement { lane: Lane::B, part: Part::Whole };
    let bytes = state.elements(t, Sign::Unsigned);
    let from = |i: usize| {
        let (column, row) = (i / 4, i % 4);
        let column = match way {
            Way::Encrypt => column + row,
            Way::Decrypt => column + 4 - row,
        };
        bytes[4 * (column % 4) + row]
    };
    let shifted: Vec<_> = (0..16).map(from).collect();
    Vector::from_elements(cx.b, Lane::B, &shifted)
}

/// AESE, AESD.
fn round(cx: &Context<'_>, way: Way) {
    let state = cx.vector_of("Rd").bits(cx.vector_of("Rn"), |d, n| d ^ n);
    let function = match way {
        Way::Encrypt => &SUB_BYTES,
        Way::Decrypt => &INV_SUB_BYTES,
    };
    let shifted = shift_rows(cx, state, way);
    cx.set_vector_of("Rd", Vector::of(shifted.0.map(|half| cx.b.call(function, &[half])[0])));
}

/// Each byte of two columns, replaced by the one that is `rows` further down.
fn further(columns: Val<'_>, rows: u32) -> Val<'_> {
    let low = 0x0000_0001_0000_0001 * (u64::from(u32::MAX) >> (8 * rows));
    ((columns >> (8 * rows)) & low) | ((columns << (32 - 8 * rows)) & !low)
}

/// AESMC, AESIMC.
fn mix_columns(cx: &Context<'_>, way: Way) {
    let mixed = cx.vector_of("Rn").0.map(|a| {
        let a = match way {
            Way::Encrypt => a,
            Way::Decrypt => a ^ AES.doubled(AES.doubled(a ^ further(a, 2))),
        };
        let next = further(a, 1);
        AES.doubled(a ^ next) ^ next ^ further(a, 2) ^ further(a, 3)
    });
    cx.set_vector_of("Rd", Vector::of(mixed));
}
