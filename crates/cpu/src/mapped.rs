//! Mapped memory: changing its pages while nobody runs, and machines that have it and much else in common.
//!
//! The state bytes of granules are a cache of what pages allow. All start closed; an access that finds its granule closed
//! asks the page, and opens all granules of the page for what that allows (`slow`). Pages that change are closed again.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use kvrm_engine::{Config, EngineError};
use kvrm_mem::{Frozen, PAGE, Permissions, Space};

use crate::CpuEngine;
use crate::sharing::Sharing;

/// The addresses of pages.
fn bytes_of(pages: Range<u32>) -> Range<u64> {
    u64::from(pages.start) * PAGE..u64::from(pages.end) * PAGE
}

impl CpuEngine {
    pub(crate) fn protect_mapped(
        &mut self,
        addr: u64,
        len: u64,
        permissions: Permissions,
    ) -> io::Result<()> {
        let goes_on = permissions.contains(Permissions::EXECUTE) && self.shares().is_none();
        match goes_on {
            // There may be other code than before.
            true => self.pool.stubs.kept().memory_changed(),
            false => self.forget_mapped(addr, len),
        }
        self.mapped_space().protect(addr, len, permissions)
    }

    pub(crate) fn discard_mapped(&mut self, addr: u64, len: u64) -> io::Result<()> {
        self.forget_mapped(addr, len);
        self.mapped_space().discard(addr, len)
    }

    pub(crate) fn copy_mapped(&mut self, from: &Space) -> io::Result<()> {
        match self.shares().is_some() {
            true => self.drop_claims(self.changes_of(from)),
            false => self.clear_code(),
        }
        self.mapped_space().copy_from(from)?;
        self.attach_mapped();
        Ok(())
    }

    /// What may change if memory becomes equal to another: little if both began with the same.
    fn changes_of(&self, from: &Space) -> Vec<Range<u64>> {
        let own = self.shared.as_ref().expect("mapped memory is shared");
        let same = own.frozen().zip(from.frozen()).is_some_and(|(a, b)| Arc::ptr_eq(a, b));
        match same {
            true => own.differs().chain(from.differs()).map(bytes_of).collect(),
            false => std::iter::once(0..u64::MAX).collect(),
        }
    }

    pub(crate) fn mapped_space(&mut self) -> &mut Space {
        self.shared.as_mut().expect("mapped memory is shared")
    }

    /// Memory may be elsewhere than it was.
    fn attach_mapped(&mut self) {
        let stubs = &self.pool.stubs;
        self.lanes.iter_mut().for_each(|lane| lane.attach(self.shared.as_mut(), stubs));
    }

    fn forget_mapped(&mut self, addr: u64, len: u64) {
        if len == 0 {
            return;
        }
        if let Some(shares) = self.shares() {
            return shares.drop_claims(&(addr..addr + len));
        }
        if self.code().overlaps(addr, len) {
            self.forget_shared((addr, len), false);
            self.pool.stubs.kept().memory_changed();
        }
    }

    // Beginning with the same.

    pub(crate) fn freeze_mapped(&mut self) -> io::Result<Arc<Frozen>> {
        let frozen = self.mapped_space().freeze()?;
        self.attach_mapped();
        Ok(frozen)
    }

    /// A machine with one lane that begins with what is frozen.
    pub(crate) fn mapped_sibling(&self) -> Result<CpuEngine, EngineError> {
        let space = self.shared.as_ref().filter(|space| space.frozen().is_some());
        let (Some(space), Some(pools)) = (space, &self.pools) else {
            return Err(EngineError::NotMapped("cpu"));
        };
        let size = self.config.memory_size;
        let (pool, shares) = match &self.lanes[0].shares {
            Some(shares) => {
                let differs: Vec<_> = space.differs().map(bytes_of).collect();
                (Arc::clone(&self.pool), shares.sibling(size, &differs))
            }
            None => (pools.any()?, Sharing::new(size)),
        };
        let frozen = space.frozen().expect("the caller has looked");
        let failed = |source| EngineError::Memory { lane: 0, size, source };
        let space = Space::of(frozen).map_err(failed)?;
        let config = Config { lanes: 1, ..self.config.clone() };
        CpuEngine::sharing(&config, pools, pool, shares, space)
    }

    /// Restores what is frozen, if there is any.
    pub(crate) fn restore_mapped(&mut self) -> Result<(), EngineError> {
        let Some(space) = self.shared.as_ref().filter(|space| space.frozen().is_some()) else {
            return Ok(());
        };
        let differs: Vec<_> = space.differs().map(bytes_of).collect();
        match (&self.pools, self.lanes[0].shares.is_some()) {
            (Some(pools), false) => {
                self.pool = pools.any()?;
                let shares = Sharing::new(self.config.memory_size);
                self.lanes[0].shares = Some(Box::new(shares));
                self.breakpoints.clear();
            }
            (Some(_), true) => self.drop_claims(differs),
            (None, _) => self.clear_code(),
        }
        self.lanes.iter_mut().for_each(|lane| {
            lane.touched.clear();
            lane.shares.iter_mut().for_each(|shares| shares.begin_again());
        });
        self.mapped_space().restore().map_err(EngineError::MappedMemory)
    }

    // Sharing translations.

    pub(crate) fn shares(&mut self) -> Option<&mut Sharing> {
        self.lanes[0].shares.as_deref_mut()
    }

    fn drop_claims(&mut self, changed: Vec<Range<u64>>) {
        let Some(shares) = self.shares() else { return };
        changed.iter().for_each(|bytes| shares.drop_claims(bytes));
    }

    /// Takes translations of its own from now on.
    pub(crate) fn leave_pools(&mut self) -> Result<(), EngineError> {
        let pools = self.pools.as_ref().expect("it shares one of them");
        self.pool = pools.alone()?;
        self.lanes[0].shares = None;
        Ok(())
    }

    /// Goes on in another pool, where there is room for translations.
    pub(crate) fn leave_full_pool(&mut self) -> Result<(), EngineError> {
        let pools = self.pools.as_ref().expect("it shares one of them");
        self.pool = pools.any()?;
        self.shares().expect("the caller has looked").move_on();
        Ok(())
    }

    /// Does what a lane that shares translations has asked for when it last ran.
    pub(crate) fn settle_sharing(&mut self) -> Result<(), EngineError> {
        let Some(space) = self.shared.as_mut().filter(|_| self.config.mapped) else {
            return Ok(());
        };
        self.lanes.iter().flat_map(|lane| &lane.touched).for_each(|(range, _)| {
            space.unwatch(*range);
        });
        let lane = &mut self.lanes[0];
        if !std::mem::take(&mut lane.parts) {
            return Ok(());
        }
        let (pools, pc) = (self.pools.as_ref().expect("it shares one"), lane.context.state.pc);
        let shares = lane.shares.as_mut().expect("only who shares parts");
        let (pool, still_shares) = shares.part(pools, &self.pool, pc, &space.raw())?;
        self.pool = pool;
        if !still_shares {
            lane.shares = None;
        }
        Ok(())
    }
}
