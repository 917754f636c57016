//! Parses sizes and numbers.

use crate::{Error, Result};

/// Parses a number of bytes: `4M`, `64K`, `2GiB`, `0x100000`, `65536`. The suffixes are powers of 1024.
///
/// ```
/// assert_eq!(kvrm::parse_size("64K")?, 65536);
/// assert!(kvrm::parse_size("4.5M").is_err());
/// # Ok::<(), kvrm::Error>(())
/// ```
pub fn parse_size(text: &str) -> Result<u64> {
    let bytes = text.strip_suffix("iB").unwrap_or(text);
    parse_with_suffix(bytes, 1024).ok_or_else(|| Error::NotASize(text.to_string()))
}

/// Parses a number with an optional suffix K, M, G or T, each `step` times the previous one; returns `None` if
/// it is not one.
///
/// ```
/// assert_eq!(kvrm::parse_with_suffix("2M", 1000), Some(2_000_000));
/// ```
pub fn parse_with_suffix(text: &str, step: u64) -> Option<u64> {
    let suffixes = ["K", "M", "G", "T"];
    let upper = text.to_ascii_uppercase();
    let (digits, power) = (1..)
        .zip(suffixes)
        .find_map(|(power, suffix)| Some((upper.strip_suffix(suffix)?, power)))
        .unwrap_or((&upper, 0));
    parse_unsigned(digits)?.checked_mul(step.pow(power))
}

/// Parses a whole number, decimal or hexadecimal; underscores may separate digits.
///
/// ```
/// assert_eq!(kvrm::parse_unsigned("0x10_0000"), Some(1 << 20));
/// assert_eq!(kvrm::parse_unsigned("-1"), None);
/// ```
pub fn parse_unsigned(text: &str) -> Option<u64> {
    let digits = text.replace('_', "");
    let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (digits.as_str(), 10),
    };
    // from_str_radix would also accept a sign.
    let plain = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(digits, radix).ok())?
}
