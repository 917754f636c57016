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

    /// Returns the seed whose sequence is what is left of this one.
    ///
    /// ```
    /// let mut random = kvrm_random::Random::new(7);
    /// random.next();
    /// assert_eq!(kvrm_random::Random::new(random.seed()).next(), random.next());
    /// ```
    pub fn seed(&self) -> u64 {
        self.0
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

    /// Fills bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.next().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
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
}
