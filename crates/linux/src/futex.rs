//! Futexes.

use crate::Errno;
use crate::answer::{Answer, Interrupted, Refusal, Wait};
use crate::clock::Time;
use crate::kernel::Kernel;
use crate::memory::Backing;
use crate::thread::{FutexKey, FutexWait, Tid};

/// Bits of the word of a futex that has an owner.
pub(crate) const OWNER: u32 = 0x3fff_ffff;
pub(crate) const OWNER_DIED: u32 = 0x4000_0000;
pub(crate) const WAITERS: u32 = 0x8000_0000;

/// Threads that wait for each other, at the most; then nobody looks any further.
const LONGEST_CHAIN: usize = 1024;

impl Kernel {
    /// What the futex at an address is known by.
    fn futex_key(&mut self, tid: Tid, addr: u64) -> Result<FutexKey, Errno> {
        if !addr.is_multiple_of(4) {
            return Err(Errno::INVAL);
        }
        let number = self.process_of(tid).memory;
        let (start, area) = self.held_of(tid).memory.areas().find(addr).ok_or(Errno::FAULT)?;
        Ok(match area.backing {
            Backing::Shared { segment, offset } => {
                FutexKey::Shared(segment, offset + (addr - start))
            }
            Backing::File { node, offset, shared: true } => {
                FutexKey::File(node, offset + (addr - start))
            }
            Backing::Anonymous | Backing::File { shared: false, .. } => {
                FutexKey::Private(number, addr)
            }
        })
    }

    /// `FUTEX_WAIT`: waits while the word is as expected, and then until the futex at `then` is the thread's own
    /// (`FUTEX_WAIT_REQUEUE_PI`).
    pub(crate) fn wait_for_futex(
        &mut self,
        tid: Tid,
        (addr, then): (u64, Option<u64>),
        expected: u32,
        bits: u32,
        until: Option<Time>,
    ) -> Answer {
        if bits == 0 {
            return Err(Errno::INVAL.into());
        }
        let is_over = until.is_some_and(|until| until <= self.clock.now());
        match self.thread(tid).futex {
            Some(FutexWait { woken: true, .. }) => {
                self.thread(tid).futex = None;
                return Ok(0);
            }
            Some(_) if is_over => {
                self.thread(tid).futex = None;
                return Err(Errno::TIMEDOUT.into());
            }
            Some(_) => {}
            None => {
                let key = self.futex_key(tid, addr)?;
                let then = then.map(|addr| self.futex_key(tid, addr)).transpose()?;
                if then == Some(key) {
                    return Err(Errno::INVAL.into());
                }
                if self.held_of(tid).memory.read_u32(addr)? != expected {
                    return Err(Errno::AGAIN.into());
                }
                if is_over {
                    return Err(Errno::TIMEDOUT.into());
                }
                self.numbers.ticket += 1;
                let ticket = self.numbers.ticket;
                let wait = FutexWait { key, addr, bits, locks: false, then, ticket, woken: false };
                self.thread(tid).futex = Some(wait);
            }
        }
        let interrupted = match (then, until) {
            (Some(_), _) => Interrupted::Repeats,
            (None, Some(_)) => Interrupted::Fails,
            (None, None) => Interrupted::Restarts,
        };
        Err(Refusal::Wait(Wait { until, interrupted }))
    }

    /// Threads in the queue of a futex, in order.
    fn queue(&self, key: FutexKey, bits: u32) -> Vec<Tid> {
        self.waiting(|wait| !wait.locks && wait.key == key && wait.bits & bits != 0)
    }

    /// Threads that wait for a futex to be their own, in order.
    fn lockers(&self, key: FutexKey) -> Vec<Tid> {
        self.waiting(|wait| wait.locks && wait.key == key)
    }

    /// Threads that were not woken yet and wait as asked, in order.
    fn waiting(&self, is_in: impl Fn(&FutexWait) -> bool) -> Vec<Tid> {
        let waits = self.threads.iter().filter_map(|(tid, thread)| Some((*tid, thread.futex?)));
        let mut queue: Vec<_> = waits.filter(|(_, wait)| !wait.woken && is_in(wait)).collect();
        queue.sort_by_key(|(_, wait)| wait.ticket);
        queue.into_iter().map(|(tid, _)| tid).collect()
    }

    /// `FUTEX_WAKE`: wakes up to so many; how many it were.
    pub(crate) fn wake_futex(&mut self, tid: Tid, addr: u64, most: u64, bits: u32) -> u64 {
        let Ok(key) = self.futex_key(tid, addr) else { return 0 };
        self.wake(key, most, bits)
    }

    fn wake(&mut self, key: FutexKey, most: u64, bits: u32) -> u64 {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let woken: Vec<Tid> = self.queue(key, bits).into_iter().take(most).collect();
        for tid in &woken {
            self.thread(*tid).futex.as_mut().expect("it waits").woken = true;
        }
        if !woken.is_empty() {
            self.note();
        }
        woken.len() as u64
    }

    /// `FUTEX_WAKE` as a system call: the address is checked.
    pub(crate) fn wake_futex_checked(
        &mut self,
        tid: Tid,
        addr: u64,
        most: u64,
        bits: u32,
    ) -> Answer {
        if bits == 0 {
            return Err(Errno::INVAL.into());
        }
        let key = self.futex_key(tid, addr)?;
        if !self.waiting(|wait| wait.key == key && wait.then.is_some() && !wait.locks).is_empty() {
            return Err(Errno::INVAL.into());
        }
        Ok(self.wake(key, most, bits))
    }

    /// `FUTEX_REQUEUE`: wakes some, and lets others wait at another futex; how many woken, and how many moved.
    pub(crate) fn requeue_futex(
        &mut self,
        tid: Tid,
        [from, to]: [u64; 2],
        wake: u64,
        most: u64,
    ) -> Answer<(u64, u64)> {
        let (from, to) = (self.futex_key(tid, from)?, self.futex_key(tid, to)?);
        let woken = self.wake(from, wake, u32::MAX);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let moved: Vec<Tid> = self.queue(from, u32::MAX).into_iter().take(most).collect();
        for tid in &moved {
            self.thread(*tid).futex.as_mut().expect("it waits").key = to;
        }
        Ok((woken, moved.len() as u64))
    }

    /// `FUTEX_CMP_REQUEUE_PI`: gives one thread the futex that it waits for next, if that is nobody's, and lets others wait
    /// for it; how many these are.
    pub(crate) fn requeue_to_lock(&mut self, tid: Tid, [from, to]: [u64; 2], most: u64) -> Answer {
        let (key, then) = (self.futex_key(tid, from)?, self.futex_key(tid, to)?);
        let most = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1);
        let queue: Vec<Tid> = self.queue(key, u32::MAX).into_iter().take(most).collect();
        let waits_for_it =
            |tid: &Tid| self.threads[tid].futex.is_some_and(|w| w.then == Some(then));
        if key == then || !queue.iter().all(waits_for_it) {
            return Err(Errno::INVAL.into());
        }
        let word = self.held_of(tid).memory.read_u32(to)?;
        let is_free = word & OWNER == 0;
        if !is_free && !self.threads.contains_key(&(word & OWNER)) {
            return Err(Errno::SRCH.into());
        }
        let (next, others) = queue.split_at(usize::from(is_free).min(queue.len()));
        let owner = next.first().copied().unwrap_or(word & OWNER);
        let waiters = if others.is_empty() { word & WAITERS } else { WAITERS };
        let new = owner | word & OWNER_DIED | waiters;
        self.held_of(tid).memory.write(to, &new.to_le_bytes())?;
        for other in others {
            self.numbers.ticket += 1;
            let ticket = self.numbers.ticket;
            let wait = self.thread(*other).futex.as_mut().expect("it waits");
            *wait = FutexWait { key: then, addr: to, locks: true, ticket, ..*wait };
        }
        for next in next {
            self.thread(*next).futex.as_mut().expect("it waits").woken = true;
            self.note();
        }
        Ok(queue.len() as u64)
    }

    /// `FUTEX_LOCK_PI`: waits until the futex is the thread's own. All threads have the same priority, so nobody inherits one.
    pub(crate) fn lock_futex(&mut self, tid: Tid, addr: u64, until: Option<Time>) -> Answer {
        let is_over = until.is_some_and(|until| until <= self.clock.now());
        match self.thread(tid).futex {
            Some(FutexWait { woken: true, .. }) => {
                self.thread(tid).futex = None;
                return Ok(0);
            }
            Some(_) if is_over => {
                self.thread(tid).futex = None;
                return Err(Errno::TIMEDOUT.into());
            }
            Some(_) => {}
            None => {
                if self.try_lock_futex(tid, addr)? {
                    return Ok(0);
                }
                let key = self.futex_key(tid, addr)?;
                let memory = &mut self.held_of(tid).memory;
                let word = memory.read_u32(addr)?;
                if !self.threads.contains_key(&(word & OWNER)) {
                    return Err(Errno::SRCH.into());
                }
                if self.waits_for(word & OWNER, tid) {
                    return Err(Errno::DEADLK.into());
                }
                if is_over {
                    return Err(Errno::TIMEDOUT.into());
                }
                self.held_of(tid).memory.write(addr, &(word | WAITERS).to_le_bytes())?;
                self.numbers.ticket += 1;
                let ticket = self.numbers.ticket;
                let wait =
                    FutexWait { key, addr, bits: 0, locks: true, then: None, ticket, woken: false };
                self.thread(tid).futex = Some(wait);
            }
        }
        Err(Refusal::Wait(Wait { until, interrupted: Interrupted::Repeats }))
    }

    /// `FUTEX_TRYLOCK_PI`: true if the futex is the thread's own now.
    pub(crate) fn try_lock_futex(&mut self, tid: Tid, addr: u64) -> Answer<bool> {
        self.futex_key(tid, addr)?;
        let memory = &mut self.held_of(tid).memory;
        let word = memory.read_u32(addr)?;
        match word & OWNER {
            0 => {
                let kept = word & (OWNER_DIED | WAITERS);
                memory.write(addr, &(tid | kept).to_le_bytes())?;
                Ok(true)
            }
            owner if owner == tid => Err(Errno::DEADLK.into()),
            _ => Ok(false),
        }
    }

    /// `FUTEX_UNLOCK_PI`: the futex is the next one's, or nobody's.
    pub(crate) fn unlock_futex(&mut self, tid: Tid, addr: u64) -> Answer {
        let key = self.futex_key(tid, addr)?;
        let memory = &mut self.held_of(tid).memory;
        if memory.read_u32(addr)? & OWNER != tid {
            return Err(Errno::PERM.into());
        }
        self.hand_over(tid, addr, key, 0)?;
        Ok(0)
    }

    /// Makes a futex that is a thread's own the next one's, or nobody's. `bits` are set for the next.
    fn hand_over(&mut self, tid: Tid, addr: u64, key: FutexKey, bits: u32) -> Answer<()> {
        let next = self.lockers(key).first().copied();
        let word = next.map_or(0, |next| next | WAITERS | bits);
        self.held_of(tid).memory.write(addr, &word.to_le_bytes())?;
        if let Some(next) = next {
            self.thread(next).futex.as_mut().expect("it waits").woken = true;
            self.note();
        }
        Ok(())
    }

    /// True if a thread waits for a futex of another, or of one that waits for one of the other.
    fn waits_for(&mut self, tid: Tid, other: Tid) -> bool {
        let mut tid = tid;
        for _ in 0..LONGEST_CHAIN {
            let wait = self.threads.get(&tid).and_then(|thread| thread.futex);
            let Some(wait) = wait.filter(|wait| wait.locks && !wait.woken) else { return false };
            let Ok(word) = self.held_of(tid).memory.read_u32(wait.addr) else { return false };
            tid = word & OWNER;
            if tid == other {
                return true;
            }
        }
        false
    }

    /// A thread ends: futexes that are its own and that others wait for are theirs, and they learn that it died.
    pub(crate) fn hand_over_locks(&mut self, tid: Tid) {
        for waiting in self.waiting(|wait| wait.locks) {
            let wait = self.thread(waiting).futex.filter(|wait| !wait.woken);
            let Some(FutexWait { key, addr, .. }) = wait else { continue };
            let word = self.held_of(waiting).memory.read_u32(addr);
            if word.is_ok_and(|word| word & OWNER == tid) {
                // Who cannot be told goes on waiting.
                let _ = self.hand_over(waiting, addr, key, OWNER_DIED);
            }
        }
    }
}
