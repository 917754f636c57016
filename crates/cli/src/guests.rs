//! The programs that the demo and the benchmarks run.

use crate::failure::{Failure, Result};

/// Address where guests are loaded and entered.
pub(crate) const BASE: u64 = 0x10000;
/// Size of the memory that guests are built for.
pub(crate) const MEMORY: u64 = 1 << 20;
/// Distance between the words that lanes with shared memory write (`loop_store`), so that each has its own.
pub(crate) const SHARED_DISTANCE: u64 = 8;

/// Computes one row of a picture of the Mandelbrot set.
pub(crate) const MANDELBROT: &[u8] = include_bytes!("../../../guests/bin/mandelbrot.bin");
/// Runs 1,000 instructions, to be repeated after resets.
pub(crate) const RESET: Guest = Guest {
    name: "reset",
    code: include_bytes!("../../../guests/bin/reset.bin"),
    shareable: false,
    stores: true,
    vectors: false,
};

/// A program with an input (x0), a number of iterations (x1) and a result (x0). Where memory is shared,
/// x2 is [`SHARED_DISTANCE`].
pub(crate) struct Guest {
    pub(crate) name: &'static str,
    pub(crate) code: &'static [u8],
    /// True if lanes can run it in shared memory without disturbing each other.
    pub(crate) shareable: bool,
    /// True if it writes memory.
    pub(crate) stores: bool,
    /// True if it was built for floating point and vectors.
    pub(crate) vectors: bool,
}

macro_rules! guests {
    ($($name:literal $shareable:literal $stores:literal $vectors:literal)*) => {
        &[$(Guest {
            name: $name,
            code: include_bytes!(concat!("../../../guests/bin/", $name, ".bin")),
            shareable: $shareable,
            stores: $stores,
            vectors: $vectors,
        }),*]
    };
}

/// The guests that `kvrm bench` runs; those built for vectors only if they are named.
pub(crate) const GUESTS: &[Guest] = guests! {
    "loop" true false false
    "loop_store" true true false
    "collatz" true false false
    "sha256" false true false
    "sort" false true false
    "crc32" false true false
    "strsearch" false true false
    "matmul" false true false
    "nbody" false true true
    "fft" false true true
    "blur" false true true
    "aes" false true true
    "json" false true true
    "fmatmul" false true true
    "sha256_O3" false true true
    "sort_O3" false true true
    "crc32_O3" false true true
    "strsearch_O3" false true true
    "matmul_O3" false true true
    "nbody_O3" false true true
    "fft_O3" false true true
    "blur_O3" false true true
    "aes_O3" false true true
    "json_O3" false true true
    "fmatmul_O3" false true true
};

/// A run whose result is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) input: u64,
    pub(crate) iterations: u64,
    pub(crate) result: u64,
}

impl Guest {
    /// Returns the runs of this guest whose results are known.
    pub(crate) fn cases(&self) -> Result<Vec<Case>> {
        let table = include_str!("../../../guests/expected.txt");
        let rows = table.lines().filter_map(|line| {
            let mut fields = line.split_whitespace();
            (fields.next()? == self.name).then_some(fields)
        });
        rows.map(|mut fields| {
            let mut next = || fields.next().unwrap_or_default();
            Some(Case {
                input: next().parse().ok()?,
                iterations: next().parse().ok()?,
                result: u64::from_str_radix(next(), 16).ok()?,
            })
        })
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::Host(format!("guests/expected.txt is damaged at {}", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guest_has_known_results() {
        for guest in GUESTS.iter().chain([&RESET]) {
            assert!(guest.cases().unwrap().len() >= 4, "{}", guest.name);
        }
        let case = Case { input: 7, iterations: 1000, result: 0x3ef };
        assert!(GUESTS[0].cases().unwrap().contains(&case));
    }
}
