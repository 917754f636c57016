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

    fn product<'b>(self, a: Val<'b>, b: Val<'b>) -> Val<'b> {
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

    const fn power_of_x(self, exponent: u32) -> u8 {
        let (mut power, mut i) = (1u8, 0);
        while i < exponent {
            power = (power << 1) ^ (if power >> 7 == 1 { self.0 } else { 0 });
            i += 1;
        }
        power
    }

    /// The inverse, and zero for zero: the 254th power.
    pub(super) fn inverse(self, a: Val<'_>) -> Val<'_> {
        let a2 = self.square(a);
        let a3 = self.product(a2, a);
        let a12 = self.square(self.square(a3));
        let a15 = self.product(a12, a3);
        let a240 = (0..4).fold(a15, |power, _| self.square(power));
        self.product(self.product(a240, a12), a2)
    }
}

/// Each byte rotated to the left, by 1 to 7 bits.
fn rotated(a: Val<'_>, amount: u32) -> Val<'_> {
    let low = (0xff >> (8 - amount)) * ONES;
    ((a << amount) & !low) | ((a >> (8 - amount)) & low)
}

/// The sum of each byte's rotations by these amounts, and of a constant.
pub(super) fn affine<'b>(a: Val<'b>, rotations: &[u32], constant: u8) -> Val<'b> {
    let sum = rotations.iter().map(|k| if *k == 0 { a } else { rotated(a, *k) });
    sum.reduce(|a, b| a ^ b).expect("rotations") ^ (u64::from(constant) * ONES)
}
