//! Maps by small numbers, such as addresses: their hash is one multiplication, where that of `std` would be most of what it
//! takes to decode an instruction. A number that differs from map to map keeps guests from choosing addresses that collide.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};

/// A map by numbers.
pub(crate) type NumberMap<K, V> = HashMap<K, V, Mixing>;
/// A set of numbers.
pub(crate) type NumberSet<K> = HashSet<K, Mixing>;

/// Makes hashers that begin with the same number.
#[derive(Clone)]
pub(crate) struct Mixing(u64);

impl Default for Mixing {
    fn default() -> Mixing {
        Mixing(RandomState::new().hash_one(0u64))
    }
}

impl BuildHasher for Mixing {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer(self.0)
    }
}

/// Hashes numbers.
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        // Both halves of the product depend on all bits.
        let product = u128::from(self.0 ^ number) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_spread() {
        let mixing = Mixing::default();
        for step in [4u64, 4096, 1 << 20, 1 << 32] {
            // Maps take the lowest bits and the highest.
            let hashes = || (0..1024).map(|i| mixing.hash_one(i * step));
            let low: HashSet<u64> = hashes().map(|hash| hash % 1024).collect();
            let high: HashSet<u64> = hashes().map(|hash| hash >> 57).collect();
            assert!(low.len() > 400 && high.len() > 100, "{step}: {} {}", low.len(), high.len());
        }
    }
}
