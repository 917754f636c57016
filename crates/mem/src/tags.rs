//! The top byte of an address, which mapped memory ignores, as Linux on ARM64 has it.

/// Bits of an address below the tag. The uppermost of them tells user addresses from those of the kernel.
const UNTAGGED: u32 = 56;

/// Returns the address that memory has for a data access: without its tag, if it is a user's.
///
/// ```
/// assert_eq!(kvrm_mem::untagged(0x7f00_0000_0000_1234), 0x1234);
/// assert_eq!(kvrm_mem::untagged(0x7f80_0000_0000_1234), 0x7f80_0000_0000_1234);
/// ```
pub fn untagged(addr: u64) -> u64 {
    addr & branch_target(addr)
}

/// Returns where a branch to an address goes: the tag becomes the sign of what is below it.
///
/// ```
/// assert_eq!(kvrm_mem::branch_target(0x7f00_0000_0000_1234), 0x1234);
/// assert_eq!(kvrm_mem::branch_target(0x7f80_0000_0000_1234), 0xff80_0000_0000_1234);
/// ```
pub fn branch_target(addr: u64) -> u64 {
    let tag = u64::BITS - UNTAGGED;
    ((addr << tag) as i64 >> tag) as u64
}
