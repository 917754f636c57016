//! Values from a fuzzer's bytes.

/// Takes values from bytes; gives zeros once all bytes are used up.
pub struct Source<'a> {
    bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// Makes a source that takes from `bytes`, first to last.
    pub fn new(bytes: &'a [u8]) -> Source<'a> {
        Source { bytes }
    }

    /// True once all bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes eight bits.
    pub fn u8(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// Takes sixteen bits.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    /// Takes thirty-two bits.
    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    /// Takes sixty-four bits.
    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// Takes a number below `end`, which is at most 65,536.
    pub fn below(&mut self, end: u64) -> u64 {
        u64::from(self.u16()) % end
    }

    /// Returns true about once in `n` times.
    pub fn one_in(&mut self, n: u8) -> bool {
        self.u8().is_multiple_of(n)
    }
}

/// Returns pseudorandom bytes, the same for the same seed (SplitMix64).
pub fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((z ^ z >> 31).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
