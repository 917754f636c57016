//! What Linux tells programs of the processor: the auxiliary vector's `AT_HWCAP` and `AT_HWCAP2`.
//!
//! They say the same as the ID registers (`system.rs`), which a test checks where both have a say.

/// Bits of `AT_HWCAP`: FP, ASIMD, AES, PMULL, SHA1, SHA2, CRC32, ATOMICS, FPHP, ASIMDHP, CPUID, ASIMDRDM, JSCVT, FCMA,
/// LRCPC, SHA3, SM3, SM4, ASIMDDP, SHA512, ASIMDFHM, DIT, ILRCPC, FLAGM, SSBS and SB.
pub const HWCAP: u64 = bits(&[
    0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24, 26, 27, 28, 29,
]);

/// Bits of `AT_HWCAP2`: FLAGM2, FRINT, I8MM and BF16.
pub const HWCAP2: u64 = bits(&[7, 8, 13, 14]);

const fn bits(numbers: &[u32]) -> u64 {
    let (mut bits, mut i) = (0, 0);
    while i < numbers.len() {
        bits |= 1 << numbers[i];
        i += 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::ID_REGISTERS;

    /// A bit of `AT_HWCAP`, and the field of an ID register that must be at least so large: CRm, op2, bit, value.
    const FIELDS: &[[u64; 5]] = &[
        [3, 6, 0, 4, 1],
        [4, 6, 0, 4, 2],
        [5, 6, 0, 8, 1],
        [6, 6, 0, 12, 1],
        [7, 6, 0, 16, 1],
        [8, 6, 0, 20, 2],
        [12, 6, 0, 28, 1],
        [13, 6, 1, 12, 1],
        [14, 6, 1, 16, 1],
        [15, 6, 1, 20, 1],
        [16, 6, 1, 0, 1],
        [17, 6, 0, 32, 1],
        [18, 6, 0, 36, 1],
        [19, 6, 0, 40, 1],
        [20, 6, 0, 44, 1],
        [21, 6, 0, 12, 2],
        [22, 4, 0, 32, 1],
        [23, 6, 0, 48, 1],
        [24, 4, 0, 48, 1],
        [26, 6, 1, 20, 2],
        [27, 6, 0, 52, 1],
        [28, 4, 1, 4, 2],
        [29, 6, 1, 36, 1],
        [32 + 7, 6, 0, 52, 2],
        [32 + 8, 6, 1, 32, 1],
        [32 + 13, 6, 1, 52, 1],
        [32 + 14, 6, 1, 44, 1],
    ];

    #[test]
    fn hardware_capabilities_are_those_of_the_id_registers() {
        let told = HWCAP | HWCAP2 << 32;
        for [bit, crm, op2, at, least] in FIELDS {
            let found = ID_REGISTERS.iter().find(|(c, o, _)| (c, o) == (crm, op2));
            let field = found.map_or(0, |(_, _, value)| value >> at & 15);
            assert_eq!(told >> bit & 1 != 0, field >= *least, "bit {bit}");
        }
    }
}
