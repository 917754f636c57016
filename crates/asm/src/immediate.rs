//! Converts numbers to and from the fields of instructions.

use crate::names::Width;

/// Returns the bits of a number for a register, signed or unsigned.
pub(crate) fn register_bits(value: i128, width: Width) -> Option<u64> {
    let bits = width.bits();
    let fits = (-(1i128 << (bits - 1))..1i128 << bits).contains(&value);
    fits.then_some(value as u64 & (u64::MAX >> (64 - bits)))
}

/// Returns `N`, `immr` and `imms` of a logical immediate: a run of ones, rotated, and repeated to fill the
/// register.
pub(crate) fn bitmask(bits: u64, width: Width) -> Option<(u32, u32, u32)> {
    let whole = match width {
        Width::W => bits << 32 | bits & 0xffff_ffff,
        Width::X => bits,
    };
    if whole == 0 || whole == u64::MAX {
        return None;
    }
    // The shortest element that the number repeats.
    let repeats = |size: &u32| whole.rotate_right(*size) == whole;
    let size = [2, 4, 8, 16, 32, 64].into_iter().find(repeats)?;
    let element = whole & (u64::MAX >> (64 - size));
    let ones = element.count_ones();
    let run = u64::MAX >> (64 - ones);
    let rotated = |by: &u32| {
        let right = run >> by | if *by == 0 { 0 } else { run << (size - by) };
        right & (u64::MAX >> (64 - size)) == element
    };
    let immr = (0..size).find(rotated)?;
    // The size is in the leading ones of N:NOT(imms).
    let imms = !(2 * size - 1) & 0x3f | (ones - 1);
    Some((u32::from(size == 64), immr, imms))
}

/// Returns the number that a logical immediate stands for.
pub(crate) fn bitmask_value(n: u32, immr: u32, imms: u32, width: Width) -> Option<u64> {
    let size = 1u32 << (n << 6 | !imms & 0x3f).checked_ilog2()?;
    let (ones, rotation) = ((imms & (size - 1)) + 1, immr & (size - 1));
    if size < 2 || ones == size || size > width.bits() {
        return None;
    }
    let run = u64::MAX >> (64 - ones);
    let whole = (0..64 / size).fold(0, |bits, index| bits | run << (index * size));
    // Rotating the whole rotates every element.
    Some(whole.rotate_right(rotation) & (u64::MAX >> (64 - width.bits())))
}

/// Returns a number as 16 bits and the quarter of the register that they are in.
pub(crate) fn wide(bits: u64, width: Width) -> Option<(u32, u32)> {
    let halfwords = width.bits() / 16;
    let place = |hw: &u32| bits & !(0xffff << (16 * hw)) == 0;
    let hw = (0..halfwords).find(place)?;
    Some(((bits >> (16 * hw)) as u32, hw))
}

/// Returns 8 bits, one for each byte, of a number whose bytes are all zeros or all ones.
pub(crate) fn byte_mask(bits: u64) -> Option<u32> {
    let imm8 = (0..8).fold(0, |imm8, byte| imm8 | ((bits >> (8 * byte) & 1) as u32) << byte);
    (byte_mask_value(imm8) == bits).then_some(imm8)
}

/// Returns the number whose bytes are all zeros or all ones, by the bits.
pub(crate) fn byte_mask_value(imm8: u32) -> u64 {
    (0..8).fold(0, |bits, byte| bits | (u64::from(imm8 >> byte & 1) * 0xff) << (8 * byte))
}

/// Returns the 8 bits of a floating-point number.
pub(crate) fn float8(value: f64) -> Option<u32> {
    (0..256).find(|imm8| float8_value(*imm8) == value)
}

/// Returns the floating-point number of 8 bits: a sign, 3 bits of exponent, and 4 of fraction.
pub(crate) fn float8_value(imm8: u32) -> f64 {
    let exponent = (imm8 >> 4 & 7 ^ 4) as i32 - 3;
    let magnitude = f64::from(16 + (imm8 & 15)) / 16.0 * 2f64.powi(exponent);
    if imm8 >> 7 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_registers() {
        assert_eq!(register_bits(-1, Width::W), Some(0xffff_ffff));
        assert_eq!(register_bits(0xffff_ffff, Width::W), Some(0xffff_ffff));
        assert_eq!(register_bits(1 << 32, Width::W), None);
        assert_eq!(register_bits(-(1 << 31) - 1, Width::W), None);
        assert_eq!(register_bits(u64::MAX.into(), Width::X), Some(u64::MAX));
    }

    /// Generates every bitmask of every size in the obvious way.
    #[test]
    fn all_bitmasks_are_found() {
        let mut count = 0;
        for size in [2, 4, 8, 16, 32, 64] {
            for ones in 1..size {
                for rotation in 0..size {
                    let element = u64::MAX >> (64 - ones);
                    let repeated = (0..64 / size).fold(0, |bits, n| bits | element << (n * size));
                    let bits = repeated.rotate_right(rotation);
                    let expected_imms = !(2 * size - 1) & 0x3f | (ones - 1);
                    let expected = (u32::from(size == 64), rotation, expected_imms);
                    assert_eq!(bitmask(bits, Width::X), Some(expected), "{bits:#x}");
                    let (n, immr, imms) = expected;
                    assert_eq!(bitmask_value(n, immr, imms, Width::X), Some(bits));
                    count += 1;
                }
            }
        }
        assert_eq!(count, 5334);
        for bad in [0, u64::MAX, 5, 0x1234, 0xffff_0000_ffff_0001] {
            assert_eq!(bitmask(bad, Width::X), None, "{bad:#x}");
        }
        assert_eq!(bitmask(0xffff_ffff, Width::W), None);
        assert_eq!(bitmask(0xff, Width::W), Some((0, 0, 7)));
    }

    #[test]
    fn wide_moves() {
        assert_eq!(wide(0, Width::X), Some((0, 0)));
        assert_eq!(wide(0x1234_0000, Width::W), Some((0x1234, 1)));
        assert_eq!(wide(0x1234 << 48, Width::X), Some((0x1234, 3)));
        assert_eq!(wide(0x1_0001, Width::X), None);
    }

    #[test]
    fn modified_immediates() {
        assert_eq!(byte_mask(0xff00_0000_0000_00ff), Some(0x81));
        assert_eq!(byte_mask(0x1ff), None);
        assert_eq!(
            (float8(1.0), float8(-0.125), float8(31.0)),
            (Some(0x70), Some(0xc0), Some(0x3f))
        );
        assert_eq!((float8(0.0), float8(32.0), float8(1.03)), (None, None, None));
        assert!((0..256).all(|imm8| float8(float8_value(imm8)) == Some(imm8)));
    }
}
