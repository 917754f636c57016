//! Translations that many machines have in common.
//!
//! Machines with mapped memory and one lane, those of processes, come from one [`CpuMachines`]. They share *pools*: a pool has
//! records, translations and their memory, for all machines that agree on the code at every address that any of them has
//! executed ([`segments`](crate::segments)). So thousands of machines that run one program decode and translate it once, on
//! whatever threads, and programs that come one after another on one machine find again what was made of them.
//!
//! A machine that does not agree goes to another pool ([`sharing`](crate::sharing)). When the memory for code of a pool is
//! full, all machines leave it for a new one, and it is freed with the last of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvrm_engine::cache::KernelCache;
use kvrm_engine::{Config, EngineError};

use crate::code::Translations;
use crate::stubs::Stubs;

/// Pools that are kept for machines to come.
const MOST_POOLS: usize = 16;

/// Records, translations, and what they need.
pub(crate) struct Pool {
    // Before what it is placed in.
    pub(crate) code: Mutex<Translations>,
    pub(crate) stubs: Arc<Stubs>,
}

impl Pool {
    /// For the machines of one engine.
    pub(crate) fn alone(stubs: Stubs) -> Arc<Pool> {
        let stubs = Arc::new(stubs);
        Arc::new(Pool { code: Mutex::new(Translations::common(&stubs)), stubs })
    }

    /// For machines that agree.
    fn shared(stubs: Stubs) -> Arc<Pool> {
        let stubs = Arc::new(stubs);
        Arc::new(Pool { code: Mutex::new(Translations::shared(&stubs)), stubs })
    }

    pub(crate) fn code(&self) -> MutexGuard<'_, Translations> {
        self.code.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All pools of some machines.
pub(crate) struct Pools {
    config: Config,
    cache: KernelCache,
    /// The one that was used last comes last.
    pools: Mutex<Vec<Arc<Pool>>>,
}

impl Pools {
    pub(crate) fn new(config: &Config, cache: KernelCache) -> Pools {
        Pools { config: config.clone(), cache, pools: Mutex::default() }
    }

    fn stubs(&self) -> Result<Stubs, EngineError> {
        Stubs::new(&self.config, self.cache.clone())
    }

    /// A pool for a machine whose code is not known yet.
    pub(crate) fn any(&self) -> Result<Arc<Pool>, EngineError> {
        self.fitting(None, |_| true)
    }

    /// A pool that fits, other than that one, or a new one.
    pub(crate) fn fitting(
        &self,
        left: Option<&Arc<Pool>>,
        fits: impl Fn(&Translations) -> bool,
    ) -> Result<Arc<Pool>, EngineError> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let is_left = |pool: &Arc<Pool>| left.is_some_and(|left| Arc::ptr_eq(left, pool));
        // Nobody begins where everybody is about to leave.
        pools.retain(|pool| !pool.stubs.memory.is_full());
        let found = pools.iter().rposition(|pool| !is_left(pool) && fits(&pool.code()));
        let pool = match found {
            Some(index) => pools.remove(index),
            None => Pool::shared(self.stubs()?),
        };
        pools.push(Arc::clone(&pool));
        if pools.len() > MOST_POOLS {
            pools.remove(0);
        }
        Ok(pool)
    }

    /// A pool for one machine alone.
    pub(crate) fn alone(&self) -> Result<Arc<Pool>, EngineError> {
        self.stubs().map(Pool::alone)
    }
}
