//! Changing pages of mapped memory, while nobody runs.
//!
//! The state bytes of granules are a cache of what pages allow. All start closed; an access that finds its granule closed
//! asks the page, and opens all granules of the page for what that allows (`slow`). Pages that change are closed again.

use std::io;
use std::sync::PoisonError;

use kvrm_mem::{Permissions, Space};

use crate::CpuEngine;

impl CpuEngine {
    pub(crate) fn protect_mapped(
        &mut self,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> io::Result<()> {
        match permissions.contains(Permissions::EXECUTE) {
            // There may be other code than before.
            true => self.stubs.kept().memory_changed(),
            false => self.forget_mapped(addr, len),
        }
        self.mapped_space().protect(addr, len, permissions)
    }

    pub(crate) fn discard_mapped(&mut self, addr: u64, len: u64) -> io::Result<()> {
        self.forget_mapped(addr, len);
        self.mapped_space().discard(addr, len)
    }

    pub(crate) fn copy_mapped(&mut self, from: &Space) -> io::Result<()> {
        self.clear_code();
        self.mapped_space().copy_from(from)
    }

    fn mapped_space(&mut self) -> &mut Space {
        self.shared.as_mut().expect("mapped memory is shared")
    }

    fn forget_mapped(&mut self, addr: u64, len: u64) {
        let code = self.code.get_mut().unwrap_or_else(PoisonError::into_inner);
        if len > 0 && code.overlaps(addr, len) {
            self.forget_shared((addr, len), false);
            self.stubs.kept().memory_changed();
        }
    }
}
