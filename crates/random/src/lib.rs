//! Reproducible random numbers and programs: a seed gives the same ones on every computer.

pub mod program;
pub mod vectors;

/// Steele, Lea and Flood's SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the sequence for a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the sequence for part `part` of a seed, which is unrelated to those for the other parts.
    pub fn part(seed: u64, part: u64) -> Random {
        let mut random = Random(seed);
        random.0 = random.next() ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93);
        random.0 = random.next();
        random
    }

    /// Returns 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence, never `None`")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number from 0 to `limit - 1`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Returns true once in `n` times, on average.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns one of the values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    /// Returns a 64-bit value, preferring those that show mistakes: zero, all ones, sign bits, powers of two and their
    /// neighbours, small numbers.
    pub fn hard_value(&mut self) -> u64 {
        const SIGNS: [u64; 8] = [
            0x7f,
            0x80,
            0x7fff,
            0x8000,
            0x7fff_ffff,
            0x8000_0000,
            i64::MAX as u64,
            i64::MIN as u64,
        ];
        let around = self.pick(&[0, 1, u64::MAX]);
        match self.below(8) {
            0 => self.pick(&[0, 1, u64::MAX, u64::MAX - 1]),
            1 => self.pick(&SIGNS).wrapping_add(around),
            2 => (1u64 << self.below(64)).wrapping_add(around),
            3 => !(1u64 << self.below(64)).wrapping_add(around),
            4 => self.below(256),
            5 => self.below(1 << 32),
            _ => self.next(),
        }
    }

    /// Returns the bits of a floating-point number of 16, 32 or 64 bits, preferring those that show mistakes: zeros,
    /// subnormal numbers, infinities, NaNs of both kinds, numbers around one and at the ends of the range.
    pub fn hard_float(&mut self, bits: u32) -> u64 {
        let fraction_bits = match bits {
            16 => 10,
            32 => 23,
            _ => 52,
        };
        let largest = ones(bits - 1 - fraction_bits);
        let one = largest >> 1;
        let exponent = match self.below(8) {
            0 | 1 => self.pick(&[0, largest]),
            2 => self.pick(&[1, largest - 1]),
            3 | 4 => one + self.below(5) - 2,
            _ => self.next() & largest,
        };
        let all = ones(fraction_bits);
        let fraction = match self.below(4) {
            0 => 0,
            1 => self.pick(&[1, all, all - 1, all >> 1, (all >> 1) + 1]),
            // Few bits, so that results are exact, or half-way between two.
            2 => all & !(all >> self.below(4)),
            _ => self.next() & all,
        };
        self.below(2) << (bits - 1) | exponent << fraction_bits | fraction
    }

    /// Returns a value of 128 bits: elements of one size, either integers or floating-point numbers.
    pub fn hard_vector(&mut self) -> u128 {
        let bits = self.pick(&[8, 16, 32, 64]);
        let floats = bits > 8 && !self.once_in(3);
        (0..128 / bits).fold(0, |vector, _| {
            let element = if floats { self.hard_float(bits) } else { self.hard_value() };
            vector << bits | u128::from(element & ones(bits))
        })
    }
}

/// A number of this many ones, up to 64.
fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_repeat_and_parts_differ() {
        let sequence = |mut random: Random| [random.next(), random.next()];
        assert_eq!(sequence(Random::new(7)), sequence(Random::new(7)));
        assert_ne!(sequence(Random::part(7, 1)), sequence(Random::part(7, 2)));
    }

    #[test]
    fn floating_point_numbers_are_of_all_kinds() {
        let mut random = Random::new(1);
        let kinds: Vec<_> =
            (0..1000).map(|_| f32::from_bits(random.hard_float(32) as u32)).collect();
        let some = |kind: fn(&f32) -> bool| assert!(kinds.iter().filter(|x| kind(x)).count() > 5);
        some(|x| *x == 0.0 && x.is_sign_negative());
        some(|x| x.is_subnormal());
        some(|x| x.is_infinite() && *x > 0.0);
        some(|x| x.is_nan() && x.to_bits() & 1 << 22 == 0);
        some(|x| x.is_nan() && x.to_bits() & 1 << 22 != 0);
        some(|x| x.abs() == 1.0);
        assert!((0..1000).all(|_| random.hard_float(16) < 1 << 16));
        assert!((0..99).any(|_| random.hard_vector() >> 64 != 0));
    }
}
