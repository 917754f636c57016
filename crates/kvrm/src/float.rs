//! Floating-point numbers as registers hold them.

use std::cmp::Ordering;

/// A format of IEEE 754, as the registers H, S and D hold it.
///
/// ```
/// use kvrm::{FloatFormat, Reg};
/// let single = Reg::S(3).float_format().expect("it holds numbers");
/// assert_eq!(single, FloatFormat::Single);
/// assert_eq!(single.parse("0.1"), Some(0.1f32.to_bits().into()));
/// assert_eq!(FloatFormat::Half.value_of(0x3c00), 1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatFormat {
    /// 16 bits.
    Half,
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

impl FloatFormat {
    /// The bits of the nearest number; of two, the one whose last bit is zero. Too large ones become infinite, and
    /// NaNs become the quiet NaN that Arm has by default.
    ///
    /// ```
    /// use kvrm::FloatFormat;
    /// assert_eq!(FloatFormat::Half.bits_of(-0.25), 0xb400);
    /// assert_eq!(FloatFormat::Single.bits_of(1e300), f32::INFINITY.to_bits().into());
    /// ```
    pub fn bits_of(self, value: f64) -> u64 {
        match self {
            FloatFormat::Half if value.is_nan() => 0x7e00,
            FloatFormat::Half => half(value).into(),
            FloatFormat::Single if value.is_nan() => 0x7fc0_0000,
            FloatFormat::Single => (value as f32).to_bits().into(),
            FloatFormat::Double if value.is_nan() => 0x7ff8_0000_0000_0000,
            FloatFormat::Double => value.to_bits(),
        }
    }

    /// The number that its bits stand for; those above them are ignored.
    pub fn value_of(self, bits: u64) -> f64 {
        match self {
            FloatFormat::Half => half_value(bits as u16),
            FloatFormat::Single => f32::from_bits(bits as u32).into(),
            FloatFormat::Double => f64::from_bits(bits),
        }
    }

    /// The bits of the number nearest to a decimal one, as [`bits_of`](Self::bits_of) rounds, but only once: `1.5`,
    /// `-2e-3`, `inf`, `nan`. `None` if it is not one.
    ///
    /// ```
    /// use kvrm::FloatFormat;
    /// // As the nearest double, it would be half-way between two.
    /// assert_eq!(FloatFormat::Half.parse("1.00048828125000000000000001"), Some(0x3c01));
    /// assert_eq!(FloatFormat::Double.parse("one"), None);
    /// ```
    pub fn parse(self, text: &str) -> Option<u64> {
        let value: f64 = text.parse().ok()?;
        Some(match self {
            FloatFormat::Half if value.is_finite() => half_nearest(text, value).into(),
            FloatFormat::Single if value.is_finite() => text.parse::<f32>().ok()?.to_bits().into(),
            FloatFormat::Half | FloatFormat::Single | FloatFormat::Double => self.bits_of(value),
        })
    }
}

fn power_of_two(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// The step between halves of this magnitude, as a power of two.
fn half_step(magnitude: f64) -> i32 {
    let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
    exponent.max(-14) - 10
}

/// The nearest half of a number that is not NaN.
fn half(value: f64) -> u16 {
    let (sign, magnitude) = (u16::from(value.is_sign_negative()) << 15, value.abs());
    let step = half_step(magnitude);
    // 11 bits of a normal number, fewer of others; exact, as the step is a power of two.
    let steps = (magnitude * power_of_two(-step)).round_ties_even();
    if steps * power_of_two(step) >= 65536.0 {
        return sign | 0x7c00;
    }
    // A carry out of the fraction goes to the exponent.
    let exponent = (step + 24) as u16;
    sign | ((exponent << 10) + steps as u16)
}

/// The value of a half.
fn half_value(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * power_of_two(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * power_of_two(exponent - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

/// The half nearest to a decimal number, `value` being the double nearest to it.
///
/// Rounding twice goes wrong only if the double is half-way between two halves, and the decimal number is not.
fn half_nearest(text: &str, value: f64) -> u16 {
    let magnitude = value.abs();
    let is_tie = magnitude * power_of_two(1 - half_step(magnitude)) % 2.0 == 1.0;
    // All its digits: it is a multiple of 2^-25.
    match is_tie.then(|| compare_decimals(text, &format!("{magnitude:.25}"))) {
        Some(Ordering::Less) => half(value.signum() * magnitude.next_down()),
        Some(Ordering::Greater) => half(value.signum() * magnitude.next_up()),
        Some(Ordering::Equal) | None => half(value),
    }
}

/// Compares the magnitudes of two decimal numbers that are not zero.
fn compare_decimals(a: &str, b: &str) -> Ordering {
    decimal(a).cmp(&decimal(b))
}

/// A decimal number as the power of ten above its first digit, and its digits.
fn decimal(text: &str) -> (i64, String) {
    let text = text.trim_start_matches(['+', '-']);
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let zeros = digits.len() - significant.len();
    let power = whole.len() as i64 - zeros as i64 + exponent.parse().unwrap_or(0);
    (power, significant.trim_end_matches('0').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: FloatFormat = FloatFormat::Half;
    const INFINITE: u16 = 0x7c00;

    #[test]
    fn halves_have_their_values() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x0001, 2f64.powi(-24)),
            (0x03ff, 1023.0 * 2f64.powi(-24)),
            (0x0400, 2f64.powi(-14)),
            (0x3555, 0.333_251_953_125),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x7c00, f64::INFINITY),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!((HALF.value_of(bits), HALF.bits_of(value)), (value, bits), "{bits:#06x}");
        }
        assert_eq!(HALF.value_of(0x8000).to_bits(), (-0f64).to_bits());
        assert!(HALF.value_of(0x7c01).is_nan() && HALF.value_of(0xfe00).is_nan());
        assert_eq!((HALF.bits_of(-0.0), HALF.bits_of(-f64::NAN)), (0x8000, 0x7e00));
    }

    /// Every half, what is half-way to the next, and the doubles around that.
    #[test]
    fn halves_are_rounded_to_even() {
        for bits in 0..INFINITE {
            let value = half_value(bits);
            let next = if bits + 1 == INFINITE { 65536.0 } else { half_value(bits + 1) };
            let middle = (value + next) / 2.0;
            let even = bits + (bits & 1);
            for (number, nearest) in [
                (value, bits),
                (value.next_up(), bits),
                (middle.next_down(), bits),
                (middle, even),
                (middle.next_up(), bits + 1),
            ] {
                assert_eq!(half(number), nearest, "{number:e}");
                assert_eq!(half(-number), 0x8000 | nearest, "-{number:e}");
            }
        }
        assert_eq!((half(1e300), half(f64::MIN_POSITIVE), half(5e-324)), (INFINITE, 0, 0));
    }

    /// Decimal numbers so near to the middle that no double is nearer.
    #[test]
    fn decimals_are_rounded_once() {
        for bits in (0..INFINITE).step_by(7) {
            let next = if bits + 1 == INFINITE { 65536.0 } else { half_value(bits + 1) };
            let middle = format!("{:.25}", (half_value(bits) + next) / 2.0);
            // One less in the last digit that is not zero, then nines.
            let digit = middle.rfind(|c: char| ('1'..='9').contains(&c)).expect("it is not zero");
            let less = char::from(middle.as_bytes()[digit] - 1);
            let nines = middle[digit + 1..].replace('0', "9");
            let below = format!("{}{less}{nines}9999999999999", &middle[..digit]);
            let above = format!("{middle}00000000000001");
            assert_eq!(HALF.parse(&below), Some(bits.into()), "{below}");
            assert_eq!(HALF.parse(&middle), Some((bits + (bits & 1)).into()), "{middle}");
            assert_eq!(HALF.parse(&above), Some((bits + 1).into()), "{above}");
            assert_eq!(HALF.parse(&format!("-{above}")), Some((0x8000 | (bits + 1)).into()));
        }
    }

    #[test]
    fn exponents_count() {
        // Half-way between 1 and the next, and a little more.
        for text in ["1.000488281250001", "1000.488281250001e-3", "0.001000488281250001E+3"] {
            assert_eq!(HALF.parse(text), Some(0x3c01), "{text}");
        }
        for text in
            ["1.00048828125", "100048828125e-11", "0.000100048828125000e4", "+1.00048828125"]
        {
            assert_eq!(HALF.parse(text), Some(0x3c00), "{text}");
        }
        assert_eq!(decimal("-0012.50e1"), (3, "125".to_string()));
    }

    #[test]
    fn other_formats() {
        let single = FloatFormat::Single;
        // Half-way between two singles as a double, but not as it is written.
        assert_eq!(single.parse("1.00000005960464477540"), Some(0x3f80_0001));
        assert_eq!(single.parse("-0.25"), Some(0xbe80_0000));
        assert_eq!(
            (single.parse("inf"), single.parse("-inf")),
            (Some(0x7f80_0000), Some(0xff80_0000))
        );
        assert_eq!(single.parse("nan"), Some(0x7fc0_0000));
        assert_eq!(FloatFormat::Double.parse("1.5"), Some(1.5f64.to_bits()));
        assert_eq!(FloatFormat::Double.parse("1e400"), Some(f64::INFINITY.to_bits()));
        assert_eq!((HALF.parse("1e400"), HALF.parse("nan")), (Some(0x7c00), Some(0x7e00)));
        for bad in ["", "1,5", "0x10", "1.5f", "--1", "e5", " 1"] {
            assert_eq!(FloatFormat::Double.parse(bad), None, "{bad}");
        }
    }
}
