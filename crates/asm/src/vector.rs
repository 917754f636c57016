//! Vector registers and how they are divided into elements.

use std::fmt;

/// Size of an element, or of the part of a register that an instruction on one element uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    B,
    H,
    S,
    D,
    Q,
}

impl Lane {
    const ALL: [Lane; 5] = [Lane::B, Lane::H, Lane::S, Lane::D, Lane::Q];

    pub(crate) fn letter(self) -> char {
        match self {
            Lane::B => 'b',
            Lane::H => 'h',
            Lane::S => 's',
            Lane::D => 'd',
            Lane::Q => 'q',
        }
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Lane::B => 8,
            Lane::H => 16,
            Lane::S => 32,
            Lane::D => 64,
            Lane::Q => 128,
        }
    }

    /// Returns the size with this letter in lower case.
    pub(crate) fn named(letter: &str) -> Option<Lane> {
        Lane::ALL.into_iter().find(|lane| letter == lane.letter().to_string())
    }

    fn doubled(self) -> Lane {
        match self {
            Lane::B => Lane::H,
            Lane::H => Lane::S,
            Lane::S => Lane::D,
            Lane::D | Lane::Q => Lane::Q,
        }
    }
}

/// What follows the dot in the name of a vector register: `8b`, eight bytes. Without a number, it is one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrangement {
    pub(crate) count: Option<u32>,
    pub(crate) lane: Lane,
}

impl Arrangement {
    /// Returns the arrangement with this name in lower case.
    pub(crate) fn named(name: &str) -> Option<Arrangement> {
        let (count, letter) = name.split_at_checked(name.len().checked_sub(1)?)?;
        let lane = Lane::named(letter)?;
        let bits = |count: u32| count.checked_mul(lane.bits());
        let count = match count {
            "" => None,
            _ if count.starts_with(['0', '+']) => return None,
            _ => Some(count.parse().ok().filter(|n| bits(*n).is_some_and(|bits| bits <= 128))?),
        };
        Some(Arrangement { count, lane })
    }

    /// Returns one of its elements.
    pub(crate) fn element(self) -> Arrangement {
        Arrangement { count: None, ..self }
    }

    /// Returns the arrangement of elements twice as long in a whole register, or one such element.
    pub(crate) fn long(self) -> Arrangement {
        let lane = self.lane.doubled();
        Arrangement { count: self.count.map(|_| 128 / lane.bits()), lane }
    }

    /// Returns the arrangement of elements that are two of its elements each.
    pub(crate) fn pairs(self) -> Arrangement {
        Arrangement { count: self.count.map(|n| n / 2), lane: self.lane.doubled() }
    }

    pub(crate) fn bytes(self) -> u32 {
        self.count.unwrap_or(1) * self.lane.bits() / 8
    }

    /// True if it takes all of a register.
    pub(crate) fn is_whole(self) -> bool {
        self.bytes() == 16
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            Some(count) => write!(f, "{count}{}", self.lane.letter()),
            None => write!(f, "{}", self.lane.letter()),
        }
    }
}

/// Returns the number and the arrangement of a register such as `v1.8b`, in upper or lower case.
pub(crate) fn vector(name: &str) -> Option<(u32, Arrangement)> {
    let name = name.to_ascii_lowercase();
    let (number, arrangement) = name.strip_prefix('v')?.split_once('.')?;
    Some((register_number(number)?, Arrangement::named(arrangement)?))
}

/// Returns the number and the size of a register such as `d1`, in upper or lower case.
pub(crate) fn scalar(name: &str) -> Option<(u32, Lane)> {
    let name = name.to_ascii_lowercase();
    let (letter, number) = name.split_at_checked(1)?;
    Some((register_number(number)?, Lane::named(letter)?))
}

fn register_number(digits: &str) -> Option<u32> {
    let number: u32 = digits.parse().ok().filter(|n| *n < 32)?;
    (number.to_string() == digits).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers() {
        let arrangement = |name: &str| Arrangement::named(name).unwrap();
        assert_eq!(vector("V31.16B"), Some((31, arrangement("16b"))));
        assert_eq!(vector("v0.s"), Some((0, arrangement("s"))));
        assert_eq!(scalar("Q7"), Some((7, Lane::Q)));
        for bad in ["v0", "v32.8b", "v00.8b", "v0.", "v0.32b", "v0.x", "v0.08b", "x0.8b", "v", ""] {
            assert_eq!(vector(bad), None, "{bad}");
        }
        for bad in ["x0", "d32", "d", "d01", "d+1", "é0", ""] {
            assert_eq!(scalar(bad), None, "{bad}");
        }
    }

    #[test]
    fn arrangements_from_others() {
        let names = |name: &str| {
            let own = Arrangement::named(name).unwrap();
            [own, own.long(), own.pairs(), own.element()].map(|other| other.to_string())
        };
        assert_eq!(names("8b"), ["8b", "8h", "4h", "b"]);
        assert_eq!(names("16b"), ["16b", "8h", "8h", "b"]);
        assert_eq!(names("2s"), ["2s", "2d", "1d", "s"]);
        assert_eq!(names("1d")[1], "1q");
        assert_eq!(names("h"), ["h", "s", "s", "h"]);
    }
}
