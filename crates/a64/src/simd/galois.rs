//! Fields of 256 elements: polynomials over {0, 1}, modulo one of degree eight. A `u64` holds eight elements, one in
//! each byte.

use kvrm_ir::Val;

/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// A field, given by what the eighth power of `x` is.
#[derive(Clone, Copy)]
pub(super) struct Field(pub(super) u8);

impl Field {
    /// Times `x`.
    pub(super) fn doubled(self, a: Val<'_>) -> Val<'_> {
        ((a & (0x7f * ONES)) << 1) ^ (((a >> 7) & ONES) * u64::from(self.0))
    }

    fn products<'b>(self, a: Val<'b>, b: Val<'b>) -> Val<'b> {
        let term = |i: u32, a: Val<'b>| (((b >> i) & ONES) * 0xff_u64) & a;
        let (_, product) = (1..8).fold((a, term(0, a)), |(a, sum), i| {
            let a = self.doubled(a);
            (a, sum ^ term(i, a))
        });
        product
    }

    /// The square: the sum of the squares of all terms.
    fn square(self, a: Val<'_>) -> Val<'_> {
        let term = |i: u32| ((a >> i) & ONES) * u64::from(self.power_of_x(2 * i));
        (0..8).map(term).reduce(|a, b| a ^ b).expect("eight terms")
    }

    fn times_x(self, a: u8) -> u8 {
        (a << 1) ^ (if a >> 7 == 1 { self.0 } else { 0 })
    }

    fn power_of_x(self, exponent: u32) -> u8 {
        (0..exponent).fold(1, |power, _| self.times_x(power))
    }

    /// The inverse, and zero for zero: the 254th power.
    pub(super) fn inverse(self, a: Val<'_>) -> Val<'_> {
        let a2 = self.square(a);
        let a3 = self.products(a2, a);
        let a12 = self.square(self.square(a3));
        let a15 = self.products(a12, a3);
        let a240 = (0..4).fold(a15, |power, _| self.square(power));
        self.products(self.products(a240, a12), a2)
    }

    /// The product of two elements.
    pub(super) fn product(self, a: u8, b: u8) -> u8 {
        let terms = (0..8).filter(|i| b >> i & 1 == 1);
        terms.fold(0, |sum, i| sum ^ (0..i).fold(a, |a, _| self.times_x(a)))
    }

    /// A power of an element.
    pub(super) fn power(self, a: u8, exponent: u32) -> u8 {
        (0..exponent).fold(1, |power, _| self.product(power, a))
    }
}

/// Each byte rotated to the left, by 1 to 7 bits.
fn rotated(a: Val<'_>, amount: u32) -> Val<'_> {
    let low = (0xff >> (8 - amount)) * ONES;
    ((a << amount) & !low) | ((a >> (8 - amount)) & low)
}

/// The sum of a byte's rotations by some amounts, and of a constant.
#[derive(Clone, Copy)]
pub(super) struct Affine {
    pub(super) rotations: &'static [u32],
    pub(super) constant: u8,
}

impl Affine {
    pub(super) const IDENTITY: Affine = Affine { rotations: &[0], constant: 0 };

    /// Of eight bytes.
    pub(super) fn of(self, a: Val<'_>) -> Val<'_> {
        let sum = self.rotations.iter().map(|k| if *k == 0 { a } else { rotated(a, *k) });
        sum.reduce(|a, b| a ^ b).expect("rotations") ^ (u64::from(self.constant) * ONES)
    }

    pub(super) fn of_byte(self, a: u8) -> u8 {
        self.rotations.iter().fold(self.constant, |sum, k| sum ^ a.rotate_left(*k))
    }
}
