//! Hard contents for vector registers: integers and floating-point numbers at the edges of what instructions do.

use crate::Random;

/// A floating-point format: a sign, an exponent and a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// All bits.
    pub bits: u32,
    /// Bits of the fraction.
    pub fraction: u32,
}

/// What the elements of a vector are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Integers of 8, 16, 32 or 64 bits.
    Integer(u32),
    /// Floating-point numbers.
    Float(Format),
}

impl Format {
    /// Half precision.
    pub const HALF: Format = Format { bits: 16, fraction: 10 };
    /// Google's half of single precision.
    pub const BFLOAT: Format = Format { bits: 16, fraction: 7 };
    /// Single precision.
    pub const SINGLE: Format = Format { bits: 32, fraction: 23 };
    /// Double precision.
    pub const DOUBLE: Format = Format { bits: 64, fraction: 52 };

    /// The sign bit.
    pub const fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// Infinity. All that lies between it and the sign bit is a NaN.
    pub const fn infinity(self) -> u64 {
        self.sign() - (1 << self.fraction)
    }

    /// The bit that tells a quiet NaN from a signalling one.
    pub const fn quiet(self) -> u64 {
        1 << (self.fraction - 1)
    }

    /// The exponent of one, as it is encoded.
    pub const fn bias(self) -> i32 {
        (self.infinity() >> (self.fraction + 1)) as i32
    }

    /// The largest exponent of a number, as it is encoded.
    const fn largest_exponent(self) -> i32 {
        2 * self.bias()
    }

    /// Two to this power, or a number near it if the format does not reach as far.
    pub fn power_of_two(self, power: i32) -> u64 {
        let exponent = (power + self.bias()).clamp(1, self.largest_exponent());
        (exponent as u64) << self.fraction
    }

    const fn fraction_mask(self) -> u64 {
        (1 << self.fraction) - 1
    }

    /// Returns the number as a double. That of a NaN is a NaN.
    pub fn to_f64(self, bits: u64) -> f64 {
        let magnitude = bits & (self.sign() - 1);
        let exponent = (magnitude >> self.fraction) as i32;
        let fraction = magnitude & self.fraction_mask();
        let value = if magnitude > self.infinity() {
            f64::NAN
        } else if magnitude == self.infinity() {
            f64::INFINITY
        } else if self == Format::DOUBLE {
            f64::from_bits(magnitude)
        } else if exponent == 0 {
            fraction as f64 * two_to(1 - self.bias() - self.fraction as i32)
        } else {
            let whole = (fraction | 1 << self.fraction) as f64;
            whole * two_to(exponent - self.bias() - self.fraction as i32)
        };
        if bits & self.sign() == 0 { value } else { -value }
    }

    /// Returns a double in this format, without the digits that it has no room for; zero if it is too small. NaNs are
    /// positive: which sign they get from an operation depends on the computer.
    pub fn from_f64(self, value: f64) -> u64 {
        let double = Format::DOUBLE;
        let bits = value.to_bits();
        let is_positive = bits & double.sign() == 0 || value.is_nan();
        let sign = if is_positive { 0 } else { self.sign() };
        let magnitude = bits & (double.sign() - 1);
        let exponent = (magnitude >> double.fraction) as i32 - double.bias() + self.bias();
        let fraction = (magnitude & double.fraction_mask()) >> (double.fraction - self.fraction);
        let magnitude = if value.is_nan() {
            self.infinity() | self.quiet()
        } else if exponent > self.largest_exponent() {
            self.infinity()
        } else if self == double {
            magnitude
        } else if exponent <= 0 {
            0
        } else {
            (exponent as u64) << self.fraction | fraction
        };
        sign | magnitude
    }
}

/// Two to this power, exactly; `powi` need not be exact.
fn two_to(power: i32) -> f64 {
    f64::from_bits(Format::DOUBLE.power_of_two(power))
}

impl Element {
    /// All kinds of elements.
    pub const ALL: [Element; 8] = [
        Element::Integer(8),
        Element::Integer(16),
        Element::Integer(32),
        Element::Integer(64),
        Element::Float(Format::HALF),
        Element::Float(Format::BFLOAT),
        Element::Float(Format::SINGLE),
        Element::Float(Format::DOUBLE),
    ];

    /// Width in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Element::Integer(bits) => bits,
            Element::Float(format) => format.bits,
        }
    }

    /// All bits of an element.
    const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Makes a vector of what `element` returns for each place, counted from the lowest.
    pub fn fill(self, mut element: impl FnMut(u32) -> u64) -> u128 {
        let bits = self.bits();
        (0..128 / bits)
            .fold(0, |vector, i| vector | u128::from(element(i) & self.mask()) << (i * bits))
    }

    /// Returns an element of a vector, counted from the lowest.
    pub const fn get(self, vector: u128, index: u32) -> u64 {
        (vector >> (index * self.bits())) as u64 & self.mask()
    }
}

impl Random {
    /// Returns a floating-point number, preferring those that show mistakes.
    pub fn hard_float(&mut self, format: Format) -> u64 {
        let infinity = format.infinity();
        let ulp = self.pick(&[0, 0, 1, u64::MAX]);
        let magnitude = match self.below(18) {
            0 => 0,
            1 => format.from_f64(1.0 + self.below(16) as f64),
            // The least and the largest denormal, or any; the least normal.
            2 => self.pick(&[1, 2, format.fraction_mask(), format.fraction_mask() - 1]),
            3 => self.hard_fraction(format),
            4 => format.power_of_two(-format.bias()).wrapping_add(ulp),
            // The largest numbers.
            5 => infinity - 1 - self.below(2),
            6 => infinity,
            // A NaN: its payload has a bit set, or it would be infinity.
            7 => infinity | format.quiet() | self.hard_fraction(format),
            8 => infinity | (self.hard_fraction(format) & !format.quiet()).max(1),
            9 => {
                let exponent = self.exponent(format, 1, format.largest_exponent());
                exponent.wrapping_add(ulp)
            }
            // Around the limits of integer types, and halves of them.
            10 => {
                let power = self.pick(&[7, 8, 15, 16, 31, 32, 63, 64]) - self.below(2) as i32;
                format.power_of_two(power).wrapping_add(ulp)
            }
            11 => self.near_integer(format).wrapping_add(ulp),
            // Huge and tiny.
            12 => {
                let most = format.largest_exponent();
                self.exponent(format, most - 3, most) | self.hard_fraction(format)
            }
            13 => {
                let least = 2 + format.fraction as i32;
                self.exponent(format, 0, least) | self.hard_fraction(format)
            }
            // Those whose product or square root is huge or tiny.
            14 => {
                let middle = self.pick(&[format.bias() / 2, format.bias() * 3 / 2]);
                self.exponent(format, middle - 2, middle + 2) | self.hard_fraction(format)
            }
            // Those that are added digit by digit.
            15 | 16 => {
                let near = format.fraction as i32 / 2;
                let (least, most) = (format.bias() - near, format.bias() + near);
                self.exponent(format, least, most) | self.hard_fraction(format)
            }
            _ => self.next(),
        };
        let sign = self.pick(&[0, format.sign()]);
        magnitude & (format.sign() - 1) | sign
    }

    /// Returns an exponent between two, in its place.
    fn exponent(&mut self, format: Format, least: i32, most: i32) -> u64 {
        let (least, most) = (least.max(0), most.min(format.largest_exponent()));
        (least as u64 + self.below((most - least + 1) as u64)) << format.fraction
    }

    /// Returns a fraction: any, or one of many equal digits.
    fn hard_fraction(&mut self, format: Format) -> u64 {
        let fraction = match self.below(8) {
            0 => 0,
            1 => 1 << self.below(format.fraction.into()),
            2 => !(1 << self.below(format.fraction.into())),
            3 => u64::MAX << self.below(format.fraction.into()),
            4 => u64::MAX,
            _ => self.next(),
        };
        fraction & format.fraction_mask()
    }

    /// Returns an integer, or the middle between two.
    fn near_integer(&mut self, format: Format) -> u64 {
        // From one half to where all numbers are integers.
        let power = self.below(u64::from(format.fraction) + 3) as i32 - 1;
        let below_point = format.fraction as i32 - power;
        let number = format.power_of_two(power) | self.hard_fraction(format);
        if below_point <= 0 {
            return number;
        }
        let integer = number >> below_point << below_point;
        let half = 1 << (below_point - 1) & format.fraction_mask();
        integer | self.pick(&[0, half])
    }

    /// Returns an integer, preferring those that show mistakes.
    pub fn hard_integer(&mut self, bits: u32) -> u64 {
        let around = self.pick(&[0, 1, u64::MAX]);
        let value = match self.below(12) {
            0 => self.pick(&[0, 1, u64::MAX]),
            // The limits of this size and of half of it.
            1 | 2 => {
                let limit = self.pick(&[bits, bits - 1, bits / 2, bits / 2 - 1]);
                let limit = 1u64.checked_shl(limit).unwrap_or(0).wrapping_add(around);
                self.pick(&[limit, limit.wrapping_neg()])
            }
            3 => (1u64 << self.below(bits.into())).wrapping_add(around),
            // Shift amounts around the size, alone and with other bits above the lowest byte.
            4 | 5 => {
                let amount = self.pick(&[0, 1, bits / 2, bits, 2 * bits]);
                let amount = u64::from(amount).wrapping_add(around);
                let amount = self.pick(&[amount, amount.wrapping_neg()]);
                let above = self.next() << 8;
                self.pick(&[amount, amount & 0xff, amount & 0xff | above])
            }
            // Indices into a table, in each byte.
            6 => (0..8).fold(0, |bytes, _| {
                let index =
                    self.pick(&[0u64, 16, 32, 48, 64]).wrapping_add(self.pick(&[0, 1, 255]));
                bytes << 8 | index & 0xff
            }),
            7 => self.below(16),
            8 => self.below(16).wrapping_neg(),
            _ => self.next(),
        };
        value & (u64::MAX >> (64 - bits))
    }

    /// Returns an element, preferring those that show mistakes.
    pub fn hard_element(&mut self, element: Element) -> u64 {
        match element {
            Element::Integer(bits) => self.hard_integer(bits),
            Element::Float(format) => self.hard_float(format),
        }
    }

    /// Returns a vector of hard elements.
    pub fn hard_vector(&mut self, element: Element) -> u128 {
        match self.below(16) {
            0 => {
                let value = self.hard_element(element);
                element.fill(|_| value)
            }
            1 => Element::Integer(64).fill(|_| self.next()),
            2 => self.pick(&[0, u128::MAX]),
            _ => element.fill(|_| self.hard_element(element)),
        }
    }

    /// Returns contents for FPCR: the rounding mode and the control bits FZ16, FZ, DN and AHP, all zero as often as not.
    pub fn hard_fpcr(&mut self) -> u64 {
        const CONTROLS: [u64; 4] = [1 << 19, 1 << 24, 1 << 25, 1 << 26];
        if self.once_in(2) {
            return 0;
        }
        let rounding = self.below(4) << 22;
        let with = |bits, bit| if self.once_in(4) { bits | bit } else { bits };
        CONTROLS.into_iter().fold(rounding, with)
    }

    /// Returns contents for FPSR: cumulative exceptions and QC. Mostly they are few, because one that is set already
    /// cannot be seen to be set.
    pub fn hard_fpsr(&mut self) -> u64 {
        const FLAGS: [u64; 7] = [1, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 7, 1 << 27];
        match self.below(4) {
            0 | 1 => 0,
            2 => self.pick(&FLAGS),
            _ => self.next() & FLAGS.iter().sum::<u64>(),
        }
    }

    /// Returns an element that is the same as another or differs in a way that shows mistakes: next to it, negated,
    /// twice as large.
    pub fn related_element(&mut self, element: Element, value: u64) -> u64 {
        let related = match element {
            Element::Integer(_) => [
                value.wrapping_add(1),
                value.wrapping_sub(1),
                value.wrapping_neg(),
                !value,
                value << 1,
            ],
            Element::Float(Format { fraction, bits }) => {
                let (sign, exponent) = (1 << (bits - 1), 1 << fraction);
                let [next, previous] = [value.wrapping_add(1), value.wrapping_sub(1)];
                [next, previous, value ^ sign, next ^ sign, value.wrapping_add(exponent)]
            }
        };
        let related = if self.once_in(3) { value } else { self.pick(&related) };
        related & element.mask()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMATS: [Format; 4] = [Format::HALF, Format::BFLOAT, Format::SINGLE, Format::DOUBLE];

    #[test]
    fn formats_are_those_of_ieee_754() {
        let parts = |f: Format| (f.sign(), f.infinity(), f.quiet(), f.bias());
        assert_eq!(parts(Format::HALF), (0x8000, 0x7c00, 0x200, 15));
        assert_eq!(parts(Format::BFLOAT), (0x8000, 0x7f80, 0x40, 127));
        assert_eq!(parts(Format::SINGLE), (0x8000_0000, 0x7f80_0000, 0x40_0000, 127));
        assert_eq!(parts(Format::DOUBLE), (1 << 63, 0x7ff << 52, 1 << 51, 1023));
    }

    #[test]
    fn numbers_are_converted_to_double_and_back() {
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            let single = random.hard_float(Format::SINGLE);
            let expected = f64::from(f32::from_bits(single as u32));
            let found = Format::SINGLE.to_f64(single);
            assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan());
            for format in FORMATS {
                let number = random.hard_float(format);
                let magnitude = number & (format.sign() - 1);
                let is_normal = magnitude <= format.infinity() && magnitude >> format.fraction > 0;
                if is_normal || magnitude == 0 {
                    assert_eq!(format.from_f64(format.to_f64(number)), number, "{format:?}");
                }
            }
        }
    }

    #[test]
    fn every_kind_of_number_is_drawn() {
        for format in FORMATS {
            let mut random = Random::new(7);
            let drawn: Vec<_> = (0..20_000).map(|_| random.hard_float(format)).collect();
            let has = |what: &str, is: &dyn Fn(u64) -> bool| {
                let count = drawn.iter().filter(|number| is(**number)).count();
                assert!(count >= 10, "{count} of {what} in {format:?}");
            };
            let (sign, infinity) = (format.sign(), format.infinity());
            let magnitude = |number: u64| number & (sign - 1);
            for negative in [0, sign] {
                has("zero", &|number| number == negative);
                has("one", &|number| number == negative | format.from_f64(1.0));
                has("the least denormal", &|number| number == negative | 1);
                has("the largest denormal", &|number| {
                    number == negative | ((1 << format.fraction) - 1)
                });
                has("the least normal", &|number| number == negative | 1 << format.fraction);
                has("the largest number", &|number| number == negative | (infinity - 1));
                has("infinity", &|number| number == negative | infinity);
            }
            let is_nan = |number| magnitude(number) > infinity;
            has("a quiet NaN", &|number| is_nan(number) && number & format.quiet() != 0);
            has("a signalling NaN", &|number| is_nan(number) && number & format.quiet() == 0);
            has("a middle between integers", &|number| format.to_f64(number).abs().fract() == 0.5);
            has("the neighbour of an integer", &|number| {
                let integral = |number| format.to_f64(number).fract() == 0.0;
                magnitude(number) > format.from_f64(1.0)
                    && !integral(number)
                    && [1, u64::MAX].iter().any(|step| integral(number.wrapping_add(*step)))
            });
        }
    }

    #[test]
    fn integers_are_near_limits_shifts_and_indices() {
        for bits in [8, 16, 32, 64] {
            let mut random = Random::new(3);
            let drawn: Vec<_> = (0..5000).map(|_| random.hard_integer(bits)).collect();
            let all = u64::MAX >> (64 - bits);
            assert!(drawn.iter().all(|value| *value <= all));
            let min = 1 << (bits - 1);
            for wanted in [0, 1, all, all - 1, min, min - 1, min + 1, u64::from(bits)] {
                assert!(drawn.contains(&wanted), "no {wanted:#x} among {bits} bits");
            }
            for amount in [-(bits as i8) - 1, -1, bits as i8 - 1, bits as i8] {
                assert!(
                    drawn.iter().any(|value| *value as i8 == amount),
                    "{amount} in {bits} bits"
                );
            }
            for index in [15, 16, 31, 32, 47, 48, 63, 64] {
                assert!(drawn.iter().any(|value| value & 0xff == index), "{index} in {bits} bits");
            }
        }
    }

    #[test]
    fn control_bits_are_on_and_off() {
        let mut random = Random::new(5);
        let drawn: Vec<_> = (0..2000).map(|_| random.hard_fpcr()).collect();
        let zero = drawn.iter().filter(|fpcr| **fpcr == 0).count();
        assert!((1000..1600).contains(&zero), "{zero}");
        for bit in [19, 22, 23, 24, 25, 26] {
            let on = drawn.iter().filter(|fpcr| *fpcr >> bit & 1 == 1).count();
            assert!((100..1000).contains(&on), "bit {bit} is on in {on}");
        }
        assert!(drawn.iter().all(|fpcr| fpcr & !0x07c8_0000 == 0));
        assert!((0..100).all(|_| random.hard_fpsr() & !0x0800_009f == 0));
    }

    #[test]
    fn vectors_are_filled_and_read() {
        let element = Element::Integer(16);
        let vector = element.fill(|i| 0x1_0000 + u64::from(i));
        assert_eq!(vector, 0x0007_0006_0005_0004_0003_0002_0001_0000);
        assert_eq!(
            (0..8).map(|i| element.get(vector, i)).collect::<Vec<_>>(),
            (0..8).collect::<Vec<_>>()
        );
    }
}
