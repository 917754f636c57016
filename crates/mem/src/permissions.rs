//! What guests may do with the pages of mapped memory.

use std::fmt::{self, Debug, Formatter};
use std::ops::{BitAnd, BitOr};

use kvrm_ir::Access;

/// What guests may do with a page: any combination of reading, writing and executing.
///
/// ```
/// use kvrm_mem::Permissions;
/// let code = Permissions::READ | Permissions::EXECUTE;
/// assert!(code.contains(Permissions::EXECUTE) && !code.contains(Permissions::WRITE));
/// assert_eq!(format!("{code:?} {:?}", Permissions::NONE), "r-x ---");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Permissions(u8);

impl Permissions {
    /// Nothing.
    pub const NONE: Permissions = Permissions(0);
    /// Load.
    pub const READ: Permissions = Permissions(1);
    /// Store.
    pub const WRITE: Permissions = Permissions(2);
    /// Fetch instructions.
    pub const EXECUTE: Permissions = Permissions(4);

    /// True if these allow all that `other` allows.
    pub const fn contains(self, other: Permissions) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns what either allows, also in constants.
    pub const fn union(self, other: Permissions) -> Permissions {
        Permissions(self.0 | other.0)
    }

    /// Returns what these allow and the others do not.
    pub const fn without(self, other: Permissions) -> Permissions {
        Permissions(self.0 & !other.0)
    }

    /// What an access needs.
    pub fn needed(access: Access) -> Permissions {
        match access {
            Access::Read => Permissions::READ,
            Access::Write => Permissions::WRITE,
            Access::ReadWrite => Permissions::READ | Permissions::WRITE,
        }
    }

    /// Returns them as bits: 1 to read, 2 to write, 4 to execute.
    pub fn bits(self) -> u8 {
        self.0
    }

    pub(crate) fn from_bits(bits: u8) -> Permissions {
        Permissions(bits)
    }
}

impl BitOr for Permissions {
    type Output = Permissions;

    fn bitor(self, other: Permissions) -> Permissions {
        self.union(other)
    }
}

impl BitAnd for Permissions {
    type Output = Permissions;

    fn bitand(self, other: Permissions) -> Permissions {
        Permissions(self.0 & other.0)
    }
}

impl Debug for Permissions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let all = [(Self::READ, "r"), (Self::WRITE, "w"), (Self::EXECUTE, "x")];
        let letter = |(one, letter)| if self.contains(one) { letter } else { "-" };
        all.into_iter().try_for_each(|one| f.write_str(letter(one)))
    }
}
