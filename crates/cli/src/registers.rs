//! Values of registers: how `--set` and tables give them, and how reports show them.
//!
//! Registers that hold a floating-point number (d, s, h) take decimal numbers as such, rounded to the nearest, and
//! hexadecimal ones as bits. All others take whole numbers.

use kvrm::{FloatFormat, Lanes, Machine, Reg};

/// A value that may depend on the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// The same for all lanes.
    Same(u128),
    /// The lane's number.
    Lane,
}

/// Parses the argument of `--set`: `x0=5`, `w3=-1`, `x0=lane`, `d0=1.5`, `v1=0x10`, `v2.s=1,2,3,4`.
pub(crate) fn assignment(text: &str) -> Result<(Reg, Value), String> {
    let (name, value) =
        text.split_once('=').ok_or("not an assignment: write REGISTER=VALUE (x0=5)")?;
    let (name, value) = (name.trim(), value.trim());
    if let Some((vector, arrangement)) = name.split_once('.') {
        return elements(register(vector)?, arrangement, value);
    }
    let reg = register(name)?;
    match value {
        "lane" => lane_number(reg),
        value => Ok((reg, Value::Same(self::value(value, reg)?))),
    }
}

fn register(name: &str) -> Result<Reg, String> {
    name.parse().map_err(|e: kvrm::Error| e.to_string())
}

/// The lane's number, where there is room for that of every lane.
fn lane_number(reg: Reg) -> Result<(Reg, Value), String> {
    match reg {
        Reg::X(_) | Reg::W(_) | Reg::Sp | Reg::Nzcv | Reg::TpidrEl0 => Ok((reg, Value::Lane)),
        Reg::V(_) | Reg::D(_) | Reg::S(_) => Ok((reg, Value::Lane)),
        Reg::Pc | Reg::H(_) | Reg::B(_) | Reg::Fpcr | Reg::Fpsr => {
            Err(format!("{reg} cannot be the lane's number"))
        }
    }
}

/// Parses the elements of a vector register, the lowest first: `v0.s`, `v0.4s`, or `v0.2s` for its lower half.
fn elements(vector: Reg, arrangement: &str, list: &str) -> Result<(Reg, Value), String> {
    let Reg::V(n) = vector else {
        return Err(format!("{vector} has no elements: v registers have, as in v0.s=1,2,3,4"));
    };
    let letter = arrangement.trim_start_matches(|c: char| c.is_ascii_digit());
    let element = match letter.to_ascii_lowercase().as_str() {
        "b" => Reg::B(n),
        "h" => Reg::H(n),
        "s" => Reg::S(n),
        "d" => Reg::D(n),
        _ => return Err(format!("\"{arrangement}\" is not a kind of element: use b, h, s or d")),
    };
    let (bits, most) = (element.bits(), 128 / element.bits() as usize);
    let count = match arrangement.strip_suffix(letter) {
        None | Some("") => most,
        Some(count) => count.parse().unwrap_or(0),
    };
    if count != most && count != most / 2 {
        return Err(format!("{vector} has {most} elements of the kind {letter}, or {}", most / 2));
    }
    let values: Vec<_> = list.split(',').map(|text| value(text.trim(), element)).collect();
    if values.len() != count {
        return Err(format!("{vector}.{arrangement} has {count} elements, not {}", values.len()));
    }
    let join = |joined: u128, element: Result<u128, String>| Ok(joined << bits | element?);
    let joined = values.into_iter().rev().try_fold(0, join);
    joined.map(|value| (vector, Value::Same(value)))
}

/// Parses a register's value.
pub(crate) fn value(text: &str, reg: Reg) -> Result<u128, String> {
    let digits = text.trim_start_matches('-');
    match reg.float_format() {
        Some(format) if !digits.starts_with("0x") && !digits.starts_with("0X") => {
            floating(text, reg, format)
        }
        Some(_) | None => whole(text, reg),
    }
}

/// Parses a whole number: decimal, hexadecimal or negative.
fn whole(text: &str, reg: Reg) -> Result<u128, String> {
    let bits = reg.bits();
    let (digits, negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let magnitude =
        kvrm::parse_wide(digits).ok_or_else(|| format!("\"{text}\" is not a {bits}-bit number"))?;
    let all = u128::MAX >> (128 - bits);
    match magnitude <= if negative { all / 2 + 1 } else { all } {
        true if negative => Ok(magnitude.wrapping_neg() & all),
        true => Ok(magnitude),
        false => Err(format!("{text} does not fit in the {bits} bits of {reg}")),
    }
}

/// Parses a floating-point number.
fn floating(text: &str, reg: Reg, format: FloatFormat) -> Result<u128, String> {
    let bits = format.parse(text).ok_or_else(|| {
        format!("\"{text}\" is not a number: write 1.5, -2e-3, inf or nan, or bits as 0x3e00")
    })?;
    let is_number = text.contains(|c: char| c.is_ascii_digit());
    if is_number && format.value_of(bits).is_infinite() {
        let most = match format {
            FloatFormat::Half => "65504".to_string(),
            FloatFormat::Single => format!("{:e}", f32::MAX),
            FloatFormat::Double => format!("{:e}", f64::MAX),
        };
        return Err(format!("{text} is too large for {reg}: the most is {most}; or write inf"));
    }
    Ok(bits.into())
}

impl Value {
    /// Sets a register of all lanes.
    pub(crate) fn set(self, machine: &mut Machine, reg: Reg) -> kvrm::Result<()> {
        match self {
            Value::Same(value) => set(machine, Lanes::All, reg, value),
            Value::Lane => (0..machine.lanes()).try_for_each(|lane| {
                let value = match reg.float_format() {
                    Some(format) => format.bits_of(lane as f64).into(),
                    None => lane as u128,
                };
                set(machine, Lanes::One(lane), reg, value)
            }),
        }
    }
}

/// Sets a register of any size.
pub(crate) fn set(machine: &mut Machine, lanes: Lanes, reg: Reg, value: u128) -> kvrm::Result<()> {
    match reg {
        Reg::V(n) => machine.set_vector(lanes, n, value),
        _ => machine.set_register(lanes, reg, value as u64),
    }
}

/// Formats a value with all of its digits.
pub(crate) fn hex(reg: Reg, value: u128) -> String {
    format!("{value:#0digits$x}", digits = 2 + reg.bits() as usize / 4)
}

/// Formats a vector register as the floating-point numbers that it may hold: `h 0.5`, `s 1.5` or `d 2  s 0, 2` where
/// its upper bits are zero, else `d 1, 2  s 0, 1.875, 0, 2`.
pub(crate) fn numbers(vector: u128) -> String {
    use FloatFormat::{Double, Half, Single};
    match 128 - vector.leading_zeros() {
        0 => String::new(),
        1..=16 => list(vector, Half, 1),
        17..=32 => list(vector, Single, 1),
        33..=64 => format!("{}  {}", list(vector, Double, 1), list(vector, Single, 2)),
        _ => format!("{}  {}", list(vector, Double, 2), list(vector, Single, 4)),
    }
}

fn list(vector: u128, format: FloatFormat, count: usize) -> String {
    let (letter, bits) = match format {
        FloatFormat::Half => ('h', 16),
        FloatFormat::Single => ('s', 32),
        FloatFormat::Double => ('d', 64),
    };
    let elements = (0..count).map(|n| number(format, (vector >> (n * bits)) as u64));
    format!("{letter} {}", elements.collect::<Vec<_>>().join(", "))
}

/// Formats a floating-point number with as few digits as tell it from others of its format.
fn number(format: FloatFormat, bits: u64) -> String {
    let value = match format {
        // A double of the same value would have more digits.
        FloatFormat::Half => half_as_double(bits),
        FloatFormat::Single => f32::from_bits(bits as u32).to_string().parse().unwrap_or(f64::NAN),
        FloatFormat::Double => f64::from_bits(bits),
    };
    let plain = value == 0.0 || (1e-5..1e16).contains(&value.abs()) || !value.is_finite();
    if plain { format!("{value}") } else { format!("{value:e}") }
}

/// The double that is written with the fewest digits and is this half.
fn half_as_double(bits: u64) -> f64 {
    let (format, bits) = (FloatFormat::Half, bits & 0xffff);
    let value = format.value_of(bits);
    let texts = (0..5).map(|digits| format!("{value:.digits$e}"));
    let mut short = texts.filter(|text| format.parse(text) == Some(bits));
    short.next().and_then(|text| text.parse().ok()).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        let x = Reg::X(0);
        assert_eq!(value("0xffffffffffffffff", x), Ok(u64::MAX.into()));
        assert_eq!(value("-1", x), Ok(u64::MAX.into()));
        assert_eq!(value("-0x10", x), Ok(0u64.wrapping_sub(16).into()));
        assert_eq!(value("-9223372036854775808", x), Ok(1 << 63));
        for bad in ["-9223372036854775809", "0x10000000000000000", "--1", "", "1.5", "x1", "0x1g"] {
            assert!(value(bad, x).is_err(), "{bad}");
        }
        let v = Reg::V(0);
        assert_eq!(
            value("0xffeeddccbbaa99887766554433221100", v),
            Ok(0xffee_ddcc_bbaa_9988_7766_5544_3322_1100)
        );
        assert_eq!(value("340282366920938463463374607431768211455", v), Ok(u128::MAX));
        assert_eq!((value("-1", v), value("-0x2", v)), (Ok(u128::MAX), Ok(u128::MAX - 1)));
        for bad in [
            "340282366920938463463374607431768211456",
            "1.5",
            "0x100000000000000000000000000000000",
        ] {
            assert!(value(bad, v).is_err(), "{bad}");
        }
    }

    #[test]
    fn narrow_registers_take_narrow_values() {
        let w = Reg::W(0);
        assert_eq!(value("0xffffffff", w), Ok(0xffff_ffff));
        assert_eq!(value("-2147483648", w), Ok(1 << 31));
        assert!(value("0x100000000", w).is_err());
        assert!(value("-2147483649", w).is_err());
        assert_eq!((value("255", Reg::B(0)), value("-128", Reg::B(0))), (Ok(255), Ok(0x80)));
        assert!(value("256", Reg::B(0)).is_err() && value("1.5", Reg::B(0)).is_err());
    }

    #[test]
    fn floating_point_numbers() {
        assert_eq!(value("1.5", Reg::D(0)), Ok(1.5f64.to_bits().into()));
        assert_eq!(value("3", Reg::D(0)), Ok(3f64.to_bits().into()));
        assert_eq!(value("-0.25", Reg::S(1)), Ok((-0.25f32).to_bits().into()));
        assert_eq!(value("0.5", Reg::H(2)), Ok(0x3800));
        assert_eq!(value("0x3800", Reg::H(2)), Ok(0x3800));
        assert_eq!(value("-0x1", Reg::S(2)), Ok(0xffff_ffff));
        assert_eq!(
            (value("inf", Reg::H(2)), value("nan", Reg::S(2))),
            (Ok(0x7c00), Ok(0x7fc0_0000))
        );
        assert_eq!(
            value("65520", Reg::H(2)).unwrap_err(),
            "65520 is too large for h2: the most is 65504; or write inf"
        );
        assert!(value("1e39", Reg::S(0)).unwrap_err().contains("the most is 3.4028235e38"));
        for bad in ["", "one", "0x10000", "1,5", "1e400"] {
            assert!(value(bad, Reg::H(0)).is_err(), "{bad}");
        }
    }

    #[test]
    fn assignments() {
        let same = |reg, value| Ok((reg, Value::Same(value)));
        assert_eq!(assignment("x0=5"), same(Reg::X(0), 5));
        assert_eq!(assignment("LR = 0x10"), same(Reg::X(30), 16));
        assert_eq!(assignment("x1=lane"), Ok((Reg::X(1), Value::Lane)));
        assert_eq!(assignment("s1=lane"), Ok((Reg::S(1), Value::Lane)));
        assert_eq!(assignment("q3=7"), same(Reg::V(3), 7));
        assert_eq!(assignment("fpcr=0x400000"), same(Reg::Fpcr, 0x40_0000));
        for bad in ["x0", "x31=1", "=1", "x0=", "v32=1", "pc=lane", "h0=lane", "fpcr=1.5"] {
            assert!(assignment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_of_elements() {
        let same = |value| Ok((Reg::V(2), Value::Same(value)));
        let ones = 0x4080_0000_4040_0000_4000_0000_3f80_0000;
        assert_eq!(assignment("v2.s=1,2,3,4"), same(ones));
        assert_eq!(assignment("V2.4S = 1, 2, 3.0, 0x40800000"), same(ones));
        assert_eq!(assignment("v2.2s=1,2"), same(0x4000_0000_3f80_0000));
        assert_eq!(assignment("v2.d=-2,0x1"), same(1 << 64 | 0xc000_0000_0000_0000));
        assert_eq!(assignment("v2.1d=1"), same(0x3ff0_0000_0000_0000));
        assert_eq!(assignment("v2.8b=1,2,3,4,5,6,7,-1"), same(0xff07_0605_0403_0201));
        assert_eq!(assignment("v2.h=1,0,0,0,0,0,0,2"), same(0x4000 << 112 | 0x3c00));
        let message = |text| assignment(text).unwrap_err();
        assert_eq!(message("v2.s=1,2,3"), "v2.s has 4 elements, not 3");
        assert_eq!(message("v2.3s=1,2,3"), "v2 has 4 elements of the kind s, or 2");
        assert_eq!(message("x2.s=1"), "x2 has no elements: v registers have, as in v0.s=1,2,3,4");
        assert_eq!(message("v2.q=1"), "\"q\" is not a kind of element: use b, h, s or d");
        assert_eq!(message("v2.16b=1"), "v2.16b has 16 elements, not 1");
        assert_eq!(
            message("v2.d=1,lane"),
            "\"lane\" is not a number: write 1.5, -2e-3, inf or nan, or bits as 0x3e00"
        );
    }

    #[test]
    fn vectors_are_shown_as_what_they_may_be() {
        assert_eq!(numbers(0), "");
        assert_eq!(numbers(0x2e66), "h 0.1");
        assert_eq!(numbers(0.1f32.to_bits().into()), "s 0.1");
        assert_eq!(numbers(2f64.to_bits().into()), "d 2  s 0, 2");
        assert_eq!(
            numbers(0x4080_0000_4040_0000_4000_0000_3f80_0000),
            "d 2.000000473111868, 512.0001225471497  s 1, 2, 3, 4"
        );
        assert_eq!(numbers(u128::from(u64::MAX) << 64), "d 0, NaN  s 0, 0, NaN, NaN");
        assert_eq!(number(FloatFormat::Double, 1e300f64.to_bits()), "1e300");
        assert_eq!(number(FloatFormat::Single, 1), "1e-45");
        assert_eq!(number(FloatFormat::Half, 0xfbff), "-65500");
        assert_eq!(number(FloatFormat::Half, 0xfc00), "-inf");
        assert_eq!(
            (hex(Reg::X(0), 10), hex(Reg::V(0), 10)),
            ("0x000000000000000a".to_string(), "0x0000000000000000000000000000000a".to_string())
        );
    }
}
