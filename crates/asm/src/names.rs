//! Names of operands.

use crate::vector;

/// Whether a register is used with 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    W,
    X,
}

impl Width {
    pub(crate) fn bits(self) -> u32 {
        match self {
            Width::W => 32,
            Width::X => 64,
        }
    }
}

/// A general register as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    pub(crate) width: Width,
    /// 31 is the zero register or the stack pointer.
    pub(crate) number: u32,
    pub(crate) is_sp: bool,
}

impl std::fmt::Display for Register {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letter = if self.width == Width::W { "w" } else { "x" };
        match (self.number, self.is_sp) {
            (31, true) if self.width == Width::X => write!(f, "sp"),
            (31, true) => write!(f, "wsp"),
            (31, false) => write!(f, "{letter}zr"),
            (number, _) => write!(f, "{letter}{number}"),
        }
    }
}

/// Returns the register with this name, in upper or lower case.
pub(crate) fn register(name: &str) -> Option<Register> {
    let name = name.to_ascii_lowercase();
    let plain = |width, number| Some(Register { width, number, is_sp: false });
    match name.as_str() {
        "sp" => return Some(Register { width: Width::X, number: 31, is_sp: true }),
        "wsp" => return Some(Register { width: Width::W, number: 31, is_sp: true }),
        "xzr" => return plain(Width::X, 31),
        "wzr" => return plain(Width::W, 31),
        "lr" => return plain(Width::X, 30),
        "fp" => return plain(Width::X, 29),
        "ip1" => return plain(Width::X, 17),
        "ip0" => return plain(Width::X, 16),
        _ => {}
    }
    let (letter, digits) = name.split_at_checked(1)?;
    let width = match letter {
        "w" => Width::W,
        "x" => Width::X,
        _ => return None,
    };
    let canonical =
        digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    let number = digits.parse().ok().filter(|n| canonical && *n <= 30)?;
    plain(width, number)
}

pub(crate) fn is_register(name: &str) -> bool {
    register(name).is_some()
}

/// True for `v0`, `v0.8b`, `d0` and so on.
pub(crate) fn is_vector_register(name: &str) -> bool {
    let vector = |name: &str| vector::vector(name).is_some() || vector::scalar(name).is_some();
    vector(name) || vector(&format!("{name}.b"))
}

/// Conditions by number, with their other names.
pub(crate) const CONDITIONS: [&[&str]; 16] = [
    &["eq", "none"],
    &["ne", "any"],
    &["cs", "hs", "nlast"],
    &["cc", "lo", "ul", "last"],
    &["mi", "first"],
    &["pl", "nfrst"],
    &["vs"],
    &["vc"],
    &["hi", "pmore"],
    &["ls", "plast"],
    &["ge", "tcont"],
    &["lt", "tstop"],
    &["gt"],
    &["le"],
    &["al"],
    &["nv"],
];

/// Returns a condition's number.
pub(crate) fn condition(name: &str) -> Option<u32> {
    number(&CONDITIONS, name)
}

fn number(table: &[&[&str]], name: &str) -> Option<u32> {
    let name = name.to_ascii_lowercase();
    table.iter().position(|names| names.contains(&name.as_str())).map(|n| n as u32)
}

/// Options of barriers, by number.
pub(crate) const BARRIERS: [&[&str]; 16] = [
    &[],
    &["oshld"],
    &["oshst"],
    &["osh"],
    &[],
    &["nshld", "unld"],
    &["nshst", "unst"],
    &["nsh", "un"],
    &[],
    &["ishld"],
    &["ishst"],
    &["ish"],
    &[],
    &["ld"],
    &["st"],
    &["sy"],
];

/// Returns the number of a barrier's option.
pub(crate) fn barrier(name: &str) -> Option<u32> {
    number(&BARRIERS, name)
}

/// The parts of a prefetch operation's name: for what, into which cache, for how long.
const PREFETCH: [&[&str]; 3] =
    [&["pld", "pli", "pst"], &["l1", "l2", "l3", "slc"], &["keep", "strm"]];

/// Returns the name of a prefetch operation.
pub(crate) fn prefetch_name(number: u32) -> Option<String> {
    let numbers = [number >> 3, number >> 1 & 3, number & 1];
    let parts = PREFETCH.iter().zip(numbers).map(|(part, n)| part.get(n as usize).copied());
    parts.collect()
}

/// Returns the number of a prefetch operation such as `pldl1keep`.
pub(crate) fn prefetch(name: &str) -> Option<u32> {
    let name = name.to_ascii_lowercase();
    let mut rest = name.as_str();
    let mut numbers = [0; 3];
    for (part, number) in PREFETCH.into_iter().zip(&mut numbers) {
        let (index, prefix) = part.iter().enumerate().find(|(_, p)| rest.starts_with(**p))?;
        *number = index as u32;
        rest = &rest[prefix.len()..];
    }
    rest.is_empty().then_some(numbers[0] << 3 | numbers[1] << 1 | numbers[2])
}

/// Returns the number of a prefetch operation for a range.
pub(crate) fn range_prefetch(name: &str) -> Option<u32> {
    number(&[&["pldkeep"], &["pstkeep"], &[], &[], &["pldstrm"], &["pststrm"]], name)
}

/// The registers that identify features, with `CRm` and `op2`; `op0`, `op1` and `CRn` are 3, 0 and 0.
const ID_REGISTERS: &[(&str, u32, u32)] = &[
    ("id_isar0_el1", 2, 0),
    ("id_isar1_el1", 2, 1),
    ("id_isar2_el1", 2, 2),
    ("id_isar3_el1", 2, 3),
    ("id_isar4_el1", 2, 4),
    ("id_isar5_el1", 2, 5),
    ("id_mmfr4_el1", 2, 6),
    ("id_isar6_el1", 2, 7),
    ("mvfr0_el1", 3, 0),
    ("mvfr1_el1", 3, 1),
    ("mvfr2_el1", 3, 2),
    ("id_pfr2_el1", 3, 4),
    ("id_dfr1_el1", 3, 5),
    ("id_mmfr5_el1", 3, 6),
    ("id_aa64pfr0_el1", 4, 0),
    ("id_aa64pfr1_el1", 4, 1),
    ("id_aa64pfr2_el1", 4, 2),
    ("id_aa64zfr0_el1", 4, 4),
    ("id_aa64smfr0_el1", 4, 5),
    ("id_aa64fpfr0_el1", 4, 7),
    ("id_aa64dfr0_el1", 5, 0),
    ("id_aa64dfr1_el1", 5, 1),
    ("id_aa64dfr2_el1", 5, 2),
    ("id_aa64afr0_el1", 5, 4),
    ("id_aa64afr1_el1", 5, 5),
    ("id_aa64isar0_el1", 6, 0),
    ("id_aa64isar1_el1", 6, 1),
    ("id_aa64isar2_el1", 6, 2),
    ("id_aa64isar3_el1", 6, 3),
    ("id_aa64mmfr0_el1", 7, 0),
    ("id_aa64mmfr1_el1", 7, 1),
    ("id_aa64mmfr2_el1", 7, 2),
    ("id_aa64mmfr3_el1", 7, 3),
    ("id_aa64mmfr4_el1", 7, 4),
];

/// Returns `CRm` and `op2` of a register that identifies features.
pub(crate) fn id_register(name: &str) -> Option<(u32, u32)> {
    let name = name.to_ascii_lowercase();
    ID_REGISTERS.iter().find(|(known, ..)| *known == name).map(|(_, crm, op2)| (*crm, *op2))
}

/// Returns the name of a register that identifies features.
pub(crate) fn id_register_name(crm: u32, op2: u32) -> Option<&'static str> {
    let known = ID_REGISTERS.iter().find(|(_, m, n)| (*m, *n) == (crm, op2));
    known.map(|(name, ..)| *name)
}

/// Returns the number of a system register without a name, `s3_3_c4_c2_0`: bits 20 to 5 of MRS and MSR.
pub(crate) fn numbered_system_register(name: &str) -> Option<u32> {
    let name = name.to_ascii_lowercase();
    let parts: Vec<&str> = name.strip_prefix('s')?.split('_').collect();
    let [op0, op1, crn, crm, op2] = parts[..] else { return None };
    let number = |text: &str, max| text.parse::<u32>().ok().filter(|n| *n <= max);
    let (op0, op1, op2) = (number(op0, 3)?, number(op1, 7)?, number(op2, 7)?);
    let (crn, crm) = (control_register(crn)?, control_register(crm)?);
    (op0 >= 2).then_some(op0 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2)
}

/// Returns the number in `c0` to `c15`.
pub(crate) fn control_register(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(['c', 'C'])?;
    digits.parse().ok().filter(|n| *n <= 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers() {
        assert_eq!(register("X30"), register("lr"));
        assert!(register("sp").unwrap().is_sp && !register("xzr").unwrap().is_sp);
        for bad in ["x31", "w31", "x", "x01", "x+1", "q0", "", "é0", "xx"] {
            assert_eq!(register(bad), None, "{bad}");
        }
    }

    #[test]
    fn others() {
        assert_eq!(condition("HS"), Some(2));
        assert_eq!(prefetch("pstl3strm"), Some(0b10101));
        assert_eq!(prefetch("pldl1keepx"), None);
        assert_eq!(barrier("ish"), Some(11));
        assert_eq!(numbered_system_register("s3_3_c13_c0_2"), Some(0xde82));
        assert_eq!(numbered_system_register("s1_3_c13_c0_2"), None);
    }
}
