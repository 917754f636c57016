//! Futexes.

use crate::Errno;
use crate::answer::{Answer, Interrupted, Refusal, Wait};
use crate::clock::Time;
use crate::kernel::Kernel;
use crate::memory::Backing;
use crate::thread::{FutexKey, FutexWait, Tid};

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
            Backing::Anonymous | Backing::File { .. } => FutexKey::Private(number, addr),
        })
    }

    /// `FUTEX_WAIT`: waits while the word is as expected.
    pub(crate) fn wait_for_futex(
        &mut self,
        tid: Tid,
        addr: u64,
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
                if self.held_of(tid).memory.read_u32(addr)? != expected {
                    return Err(Errno::AGAIN.into());
                }
                if is_over {
                    return Err(Errno::TIMEDOUT.into());
                }
                self.numbers.ticket += 1;
                let ticket = self.numbers.ticket;
                self.thread(tid).futex = Some(FutexWait { key, bits, ticket, woken: false });
            }
        }
        let interrupted = if until.is_some() { Interrupted::Fails } else { Interrupted::Restarts };
        Err(Refusal::Wait(Wait { until, interrupted }))
    }

    /// Threads in the queue of a futex, in order.
    fn queue(&self, key: FutexKey, bits: u32) -> Vec<Tid> {
        let waits = self.threads.iter().filter_map(|(tid, thread)| Some((*tid, thread.futex?)));
        let is_in = |wait: &FutexWait| !wait.woken && wait.key == key && wait.bits & bits != 0;
        let mut queue: Vec<_> = waits.filter(|(_, wait)| is_in(wait)).collect();
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
}
