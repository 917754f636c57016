//! Rounds of AES.
//!
//! The state is a register: byte `4 c + r` is in column `c` and row `r`.

use std::sync::LazyLock;

use kvrm_ir::{Function, PackedOp, Type, Val};

use super::arrangement::{Arrangement, Lane, Part};
use super::galois::{Affine, Field};
use super::substitution::{ByNibbles, SBox, repeated};
use super::vector::Vector;
use crate::context::Context;
use crate::row::{Choice, Row, rows};

pub(super) const AES: Field = Field(0x1b);

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

/// After the inverse, and before it on the way back.
const AFFINE: Affine = Affine { rotations: &[0, 1, 2, 3, 4], constant: 0x63 };
const INV_AFFINE: Affine = Affine { rotations: &[1, 3, 6], constant: 0x05 };

/// Eight bytes at once.
static SUB_BYTES: Function = Function::new("AESSubBytes", &[Type::U64], &[Type::U64], |_, args| {
    vec![AFFINE.of(AES.inverse(args[0]))]
});
static INV_SUB_BYTES: Function =
    Function::new("AESInvSubBytes", &[Type::U64], &[Type::U64], |_, args| {
        vec![AES.inverse(INV_AFFINE.of(args[0]))]
    });

pub(super) static S_BOX: LazyLock<SBox> =
    LazyLock::new(|| SBox::new(AES, Affine::IDENTITY, AFFINE));
pub(super) static INV_S_BOX: LazyLock<SBox> =
    LazyLock::new(|| SBox::new(AES, INV_AFFINE, Affine::IDENTITY));

/// `AESShiftRows`, `AESInvShiftRows`: row `r` is rotated by `r` columns.
fn shift_rows(state: Vector<'_>, way: Way) -> Vector<'_> {
    let bytes = Arrangement { lane: Lane::B, part: Part::Whole };
    state.permuted(bytes, state, |i| {
        let (column, row) = (i / 4, i % 4);
        let column = match way {
            Way::Encrypt => column + row,
            Way::Decrypt => column + 4 - row,
        };
        4 * (column % 4) + row
    })
}

/// `AESSubBytes`, `AESInvSubBytes`.
fn sub_bytes<'b>(cx: &Context<'b>, state: Vector<'b>, way: Way) -> Vector<'b> {
    let (sbox, function) = match way {
        Way::Encrypt => (&S_BOX, &SUB_BYTES),
        Way::Decrypt => (&INV_S_BOX, &INV_SUB_BYTES),
    };
    match state.whole() {
        Some(whole) => Vector::of_whole(cx.b, sbox.of(whole)),
        None => Vector::of(state.0.map(|half| cx.b.call(function, &[half])[0])),
    }
}

/// AESE, AESD.
fn round(cx: &Context<'_>, way: Way) {
    let state = cx.vector_of("Rd").bits(cx.vector_of("Rn"), |d, n| d ^ n);
    cx.set_vector_of("Rd", sub_bytes(cx, shift_rows(state, way), way));
}

/// Each byte of two columns, replaced by the one that is `rows` further down.
fn further(columns: Val<'_>, rows: u32) -> Val<'_> {
    let low = 0x0000_0001_0000_0001 * (u64::from(u32::MAX) >> (8 * rows));
    ((columns >> (8 * rows)) & low) | ((columns << (32 - 8 * rows)) & !low)
}

/// AESMC, AESIMC.
fn mix_columns(cx: &Context<'_>, way: Way) {
    let columns = cx.vector_of("Rn");
    let mixed = match columns.whole() {
        Some(whole) => Vector::of_whole(cx.b, mix_whole(whole, way)),
        None => Vector::of(columns.0.map(|half| mix_half(half, way))),
    };
    cx.set_vector_of("Rd", mixed);
}

fn mix_half(a: Val<'_>, way: Way) -> Val<'_> {
    let a = match way {
        Way::Encrypt => a,
        Way::Decrypt => a ^ AES.doubled(AES.doubled(a ^ further(a, 2))),
    };
    let next = further(a, 1);
    AES.doubled(a ^ next) ^ next ^ further(a, 2) ^ further(a, 3)
}

static TIMES_4: LazyLock<ByNibbles> = LazyLock::new(|| ByNibbles::new(|x| AES.product(x, 4)));

/// The same for four columns, where moving bytes is one operation.
fn mix_whole(a: Val<'_>, way: Way) -> Val<'_> {
    let a = match way {
        Way::Encrypt => a,
        Way::Decrypt => a ^ TIMES_4.of(a ^ further_in_whole(a, 2)),
    };
    let next = further_in_whole(a, 1);
    let both = a ^ next;
    doubled_whole(both) ^ next ^ further_in_whole(both, 2)
}

fn further_in_whole(columns: Val<'_>, rows: usize) -> Val<'_> {
    let order = std::array::from_fn(|i| (i / 4 * 4 + (i + rows) % 4) as u8);
    columns.builder().packed(PackedOp::Shuffle(order), Type::U8, &[columns, columns])
}

/// Times `x`.
fn doubled_whole(a: Val<'_>) -> Val<'_> {
    let b = a.builder();
    let overflows = b.packed(PackedOp::SGreater, Type::U8, &[repeated(a, 0), a]);
    b.packed(PackedOp::Add, Type::U8, &[a, a]) ^ (overflows & repeated(a, AES.0))
}
