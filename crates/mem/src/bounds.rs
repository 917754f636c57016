//! Which accesses a flat memory allows.

use kvrm_ir::Access;

/// A memory from address 0 to its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of memory.
    pub size: u64,
    /// Guests may not write.
    pub read_only: bool,
}

impl Bounds {
    /// Checks an access of `len` bytes; the error is the address of the first byte that may not be accessed.
    ///
    /// ```
    /// use kvrm_ir::Access;
    /// let bounds = kvrm_mem::Bounds { size: 4096, read_only: false };
    /// assert_eq!(bounds.probe(Access::Read, 4088, 8), Ok(()));
    /// assert_eq!(bounds.probe(Access::Read, 4092, 8), Err(4096));
    /// assert_eq!(bounds.probe(Access::Write, u64::MAX - 2, 8), Err(u64::MAX - 2));
    /// ```
    pub fn probe(self, access: Access, addr: u64, len: u32) -> Result<(), u64> {
        let inside = addr.checked_add(len.into()).is_some_and(|end| end <= self.size);
        match inside && !self.forbids(access) {
            true => Ok(()),
            false => Err(self.first_refused(access, addr)),
        }
    }

    /// Returns the address of the first byte that may not be accessed, for an access at `addr` that was refused. So
    /// engines need only find out whether an access is refused.
    pub fn first_refused(self, access: Access, addr: u64) -> u64 {
        if self.forbids(access) { addr } else { addr.max(self.size) }
    }

    fn forbids(self, access: Access) -> bool {
        self.read_only && access != Access::Read
    }
}
