//! Parses sizes and numbers.

use kvrm_mem::PAGE;

use crate::{Error, Result};

/// Parses a number of bytes: `4M`, `64K`, `2GiB`, `1MB`, `0x100000`, `65536`.
///
/// K, M, G and T, also written KiB, MiB, GiB and TiB, are powers of 1024; KB, MB, GB and TB are powers of 1000.
///
/// ```
/// assert_eq!((kvrm::parse_size("64K")?, kvrm::parse_size("64KiB")?), (65536, 65536));
/// assert_eq!(kvrm::parse_size("64KB")?, 64000);
/// assert!(kvrm::parse_size("4.5M").is_err());
/// # Ok::<(), kvrm::Error>(())
/// ```
pub fn parse_size(text: &str) -> Result<u64> {
    let upper = text.to_ascii_uppercase();
    let (digits, step) = match upper.strip_suffix("IB") {
        Some(digits) => (Some(digits).filter(|digits| has_suffix(digits)), 1024),
        None => match upper.strip_suffix('B') {
            // The digit of a hexadecimal number.
            Some(_) if is_hexadecimal(&upper) => (Some(upper.as_str()), 1024),
            Some(digits) => (Some(digits), 1000),
            None => (Some(upper.as_str()), 1024),
        },
    };
    let bytes = digits.and_then(|digits| parse_with_suffix(digits, step));
    bytes.ok_or_else(|| Error::NotASize(text.to_string()))
}

/// Parses the size of a memory, which consists of whole pages: like [`parse_size`], but powers of 1000 are rounded up.
///
/// ```
/// assert_eq!(kvrm::parse_memory_size("4MB")?, 4_001_792);
/// assert_eq!(kvrm::parse_memory_size("4MiB")?, 4 << 20);
/// # Ok::<(), kvrm::Error>(())
/// ```
pub fn parse_memory_size(text: &str) -> Result<u64> {
    let (size, upper) = (parse_size(text)?, text.to_ascii_uppercase());
    let is_decimal = upper.strip_suffix('B').is_some_and(has_suffix);
    Ok(if is_decimal { size.next_multiple_of(PAGE) } else { size })
}

/// Suffixes of numbers, in ascending order.
const SUFFIXES: [char; 4] = ['K', 'M', 'G', 'T'];

fn has_suffix(upper: &str) -> bool {
    upper.ends_with(SUFFIXES)
}

fn is_hexadecimal(upper: &str) -> bool {
    upper.starts_with("0X") && !upper[..upper.len() - 1].ends_with(SUFFIXES)
}

/// Parses a number with an optional suffix K, M, G or T, each `step` times the previous one; returns `None` if
/// it is not one.
///
/// ```
/// assert_eq!(kvrm::parse_with_suffix("2M", 1000), Some(2_000_000));
/// ```
pub fn parse_with_suffix(text: &str, step: u64) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    let (digits, power) = (1..)
        .zip(SUFFIXES)
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
    u64::try_from(parse_wide(text)?).ok()
}

/// Parses a whole number of up to 128 bits, as [`parse_unsigned`] does.
///
/// ```
/// assert_eq!(kvrm::parse_wide("0x1_0000_0000_0000_0000"), Some(1 << 64));
/// ```
pub fn parse_wide(text: &str) -> Option<u128> {
    let digits = text.replace('_', "");
    let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (digits.as_str(), 10),
    };
    // from_str_radix would also accept a sign.
    let plain = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    plain.then(|| u128::from_str_radix(digits, radix).ok())?
}
