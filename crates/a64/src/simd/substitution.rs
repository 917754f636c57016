//! S-boxes on wholes, by looking up nibbles.
//!
//! The S-boxes of AES and SM4 are inverses in a field of 256 elements, with an affine map before or after. Such a field
//! has a subfield of 16 elements, in which a function is a table of 16 bytes; and its elements are `k + i t`, where `k`
//! and `i` are of the subfield and `t` is not. We take a `t` whose trace and norm are the same `a`, so `t² = a t + a`.
//! Then the norm of an element is `N = k² + a i k + a i²`, and with `j = i + k`
//!
//! ```text
//! 1 / (1/i + a/k) + j = N / (k + a i)
//! 1 / (1/j + a/k) + i = N / (k + a j)
//! ```
//!
//! Of their reciprocals `u` and `v` the inverse is a linear function, `u/t + (u + v) t/a²`. So inverting takes five
//! look-ups for the left sides, and two for what `u` and `v` contribute to the result.
//!
//! A quotient by zero is [`INFINITE`]. It stays beyond all tables when something finite is added, and what is looked up
//! there is zero, as the reciprocal should be. Both `1/i` and `a/k` are infinite for the element zero only; their sum is
//! zero, then, whose reciprocal is infinite again: `u` and `v` are zero, and so is the inverse.

use std::ops::BitXor;

use kvrm_ir::{PackedOp, Type, Val};

use super::arrangement::Lane;
use super::galois::{Affine, Field};

/// A function of a nibble.
type Table = [u8; 16];

const INFINITE: u8 = 0x80;

/// A linear or affine function of bytes: the sum of those of their lower and upper nibbles.
pub(super) struct ByNibbles([Table; 2]);

impl ByNibbles {
    pub(super) fn new(f: impl Fn(u8) -> u8) -> ByNibbles {
        let low = |n: usize| f(n as u8);
        let high = |n: usize| f((n << 4) as u8) ^ f(0);
        ByNibbles([std::array::from_fn(low), std::array::from_fn(high)])
    }

    fn sum<T: BitXor<Output = T>>(&self, nibbles: [T; 2], look_up: impl Fn(&Table, T) -> T) -> T {
        let [low, high] = nibbles;
        look_up(&self.0[0], low) ^ look_up(&self.0[1], high)
    }

    /// Of all bytes of a whole.
    pub(super) fn of<'b>(&self, bytes: Val<'b>) -> Val<'b> {
        self.sum(nibbles(bytes), look_up)
    }
}

/// The lower and upper nibbles of all bytes.
fn nibbles(bytes: Val<'_>) -> [Val<'_>; 2] {
    let b = bytes.builder();
    [bytes & repeated(bytes, 0xf), b.packed(PackedOp::Shr, Type::U8, &[bytes, b.u32(4)])]
}

fn look_up<'b>(table: &Table, indices: Val<'b>) -> Val<'b> {
    let b = indices.builder();
    let bits = u128::from_le_bytes(*table);
    let table = b.pair([b.u64(bits as u64), b.u64((bits >> 64) as u64)]);
    b.packed(PackedOp::LookupSmall, Type::U8, &[table, indices])
}

/// A byte in all bytes of a whole, for the builder of a value.
pub(super) fn repeated(like: Val<'_>, byte: u8) -> Val<'_> {
    let b = like.builder();
    b.pair([b.u64(Lane::B.repeated(byte.into())); 2])
}

/// An S-box.
pub(super) struct SBox {
    /// `i` and `k` after the first map.
    i: ByNibbles,
    k: ByNibbles,
    /// One, and `a`, by an element of the subfield.
    reciprocals: Table,
    quotients: Table,
    /// What `u` and `v` contribute, by their reciprocals.
    of_u: Table,
    of_v: Table,
    constant: u8,
}

impl SBox {
    /// The inverse in a field, between two maps.
    pub(super) fn new(field: Field, before: Affine, after: Affine) -> SBox {
        let power = |x, exponent| field.power(x, exponent);
        let inverse = |x| power(x, 254);
        let subfield = subfield(field);
        let t = (0..=255)
            .find(|t| power(*t, 16) != *t && *t ^ power(*t, 16) == power(*t, 17))
            .expect("every field has one");
        let a = power(t, 17);

        let number = |x| subfield.iter().position(|y| *y == x).expect("of the subfield") as u8;
        let quotients = |dividend| {
            subfield.map(|x| match x {
                0 => INFINITE,
                _ => number(field.product(dividend, inverse(x))),
            })
        };
        let coordinates = |x| {
            let x = before.of_byte(x);
            let element = |i: u8, k: u8| {
                let [i, k] = [i, k].map(|number| subfield[usize::from(number)]);
                k ^ field.product(i, t)
            };
            let mut pairs = (0..=255).map(|pair| [pair >> 4, pair & 15]);
            pairs.find(|[i, k]| element(*i, *k) == x).expect("all elements have coordinates")
        };
        let contributed = |factor| {
            subfield.map(|x| after.of_byte(field.product(inverse(x), factor)) ^ after.of_byte(0))
        };
        let of_v = field.product(t, inverse(field.product(a, a)));
        SBox {
            i: ByNibbles::new(|x| coordinates(x)[0]),
            k: ByNibbles::new(|x| coordinates(x)[1]),
            reciprocals: quotients(1),
            quotients: quotients(a),
            of_u: contributed(inverse(t) ^ of_v),
            of_v: contributed(of_v),
            constant: after.of_byte(0),
        }
    }

    /// All but the constant.
    fn linear<T: Copy + BitXor<Output = T>>(
        &self,
        nibbles: [T; 2],
        look_up: impl Fn(&Table, T) -> T,
    ) -> T {
        let [i, k] = [&self.i, &self.k].map(|coordinate| coordinate.sum(nibbles, &look_up));
        let j = i ^ k;
        let reciprocal = |x| look_up(&self.reciprocals, x);
        let quotient = look_up(&self.quotients, k);
        let from_u = look_up(&self.of_u, reciprocal(reciprocal(i) ^ quotient) ^ j);
        let from_v = look_up(&self.of_v, reciprocal(reciprocal(j) ^ quotient) ^ i);
        from_u ^ from_v
    }

    /// Of all bytes of a whole.
    pub(super) fn of<'b>(&self, bytes: Val<'b>) -> Val<'b> {
        let substituted = self.linear(nibbles(bytes), look_up);
        match self.constant {
            0 => substituted,
            constant => substituted ^ repeated(bytes, constant),
        }
    }
}

/// The elements of the subfield, numbered such that sums of numbers are numbers of sums.
fn subfield(field: Field) -> [u8; 16] {
    let mut elements = vec![0];
    for x in (0..=255).filter(|x| field.power(*x, 16) == *x) {
        if !elements.contains(&x) {
            let others: Vec<_> = elements.iter().map(|y| x ^ y).collect();
            elements.extend(others);
        }
    }
    elements.try_into().expect("sixteen elements")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{crypto_aes, crypto_sm};

    impl SBox {
        fn of_byte(&self, x: u8) -> u8 {
            let look_up = |table: &Table, i: u8| table.get(usize::from(i)).copied().unwrap_or(0);
            self.linear([x & 15, x >> 4], look_up) ^ self.constant
        }
    }

    #[test]
    fn look_ups_invert() {
        for field in [crypto_aes::AES, crypto_sm::SM4] {
            let sbox = SBox::new(field, Affine::IDENTITY, Affine::IDENTITY);
            assert_eq!(sbox.of_byte(0), 0);
            assert!((1..=255).all(|x| field.product(sbox.of_byte(x), x) == 1));
        }
    }

    #[test]
    fn boxes_of_aes_are_inverses() {
        let [encrypt, decrypt] = [&crypto_aes::S_BOX, &crypto_aes::INV_S_BOX];
        assert!((0..=255).all(|x| decrypt.of_byte(encrypt.of_byte(x)) == x));
        // FIPS 197, section 5.1.1.
        assert_eq!([0x00, 0x53, 0xff].map(|x| encrypt.of_byte(x)), [0x63, 0xed, 0x16]);
    }

    #[test]
    fn box_of_sm4() {
        // The corners of the table in GB/T 32907.
        let entries = [0x00, 0x0f, 0xf0, 0xff].map(|x| crypto_sm::S_BOX.of_byte(x));
        assert_eq!(entries, [0xd6, 0x05, 0x18, 0x48]);
    }
}
