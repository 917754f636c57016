//! Formats numbers for people.

use std::time::Duration;

/// Formats with separators: 1,234,567.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats with three digits and a unit: 1.23 G.
pub(crate) fn short(n: f64) -> String {
    let (scaled, unit) = match n {
        n if n >= 1e12 => (n / 1e12, " T"),
        n if n >= 1e9 => (n / 1e9, " G"),
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e3 => (n / 1e3, " K"),
        n => (n, ""),
    };
    let decimals = match scaled {
        _ if unit.is_empty() => 0,
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{unit}")
}

/// Formats a number of bytes, with a digit of the fraction if there is one: 4 MiB, 139.8 GiB.
pub(crate) fn bytes(n: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| n >= *unit) {
        Some((unit, name)) if n.is_multiple_of(unit) => format!("{} {name}", n / unit),
        Some((unit, name)) => format!("{:.1} {name}", n as f64 / unit as f64),
        None => format!("{n} bytes"),
    }
}

/// Formats a time in a suitable unit: 1.23 s, 45.6 ms, 789 µs.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} µs", s * 1e6),
    }
}

/// Returns "1 lane", "2 lanes".
pub(crate) fn lanes(n: usize) -> String {
    plural(n as u64, "lane")
}

/// Returns "1 instruction", "2 instructions".
pub(crate) fn instructions(n: u64) -> String {
    plural(n, "instruction")
}

/// Returns "1 handler", "2 handlers".
pub(crate) fn handlers(n: usize) -> String {
    plural(n as u64, "handler")
}

fn plural(n: u64, noun: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", thousands(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(short(999.0), "999");
        assert_eq!(short(1_234_000_000.0), "1.23 G");
        assert_eq!(short(45_600.0), "45.6 K");
        assert_eq!(short(456_000.0), "456 K");
        assert_eq!((lanes(1), instructions(2_000)), ("1 lane".into(), "2,000 instructions".into()));
        assert_eq!(seconds(Duration::from_micros(1500)), "1.5 ms");
        assert_eq!((bytes(4 << 20), bytes(100)), ("4 MiB".into(), "100 bytes".into()));
        assert_eq!(bytes((3 << 30) + (200 << 20)), "3.2 GiB");
    }
}
