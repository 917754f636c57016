//! Who runs when: work is spread over threads, and lanes that run for long take turns on them.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use kvrm_engine::EngineError;

use crate::lane::Lane;

/// How long a lane runs while others wait. A switch costs what the caches have to load anew, far less than this.
const TURN: Duration = Duration::from_millis(10);

/// A lane's turn. Its clock starts when somebody first looks at it, so that a lane which stops before that costs
/// nothing.
#[derive(Default)]
pub(crate) struct Turn {
    first_look: Option<Instant>,
}

impl Turn {
    /// True once the next lane should run.
    pub(crate) fn is_over(&mut self) -> bool {
        match self.first_look {
            Some(start) => start.elapsed() >= TURN,
            None => {
                self.first_look = Some(Instant::now());
                false
            }
        }
    }
}

/// Does `work` with each of `workers` (at least one), on a thread each, of which the caller's is one. Where the system
/// has no more threads to give, the last workers are left out: the others have to do all the work.
pub(crate) fn on_threads<W: Send>(
    workers: &mut [W],
    work: impl Fn(&mut W) -> Result<(), EngineError> + Sync,
) -> Result<(), EngineError> {
    let (own, others) = workers.split_first_mut().expect("somebody works");
    let work = &work;
    thread::scope(|scope| {
        let spawn = |worker| {
            is_room_left()
                .then(|| thread::Builder::new().spawn_scoped(scope, move || work(worker)).ok())?
        };
        let threads: Vec<_> = others.iter_mut().map_while(spawn).collect();
        let own = work(own);
        let results = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        results.fold(own, Result::and)
    })
}

/// Address space that is left for what threads do, once there are enough of them.
const ROOM: usize = 64 << 20;

/// False where another thread would leave no memory to those there are: the system's libraries end a process that
/// cannot allocate while a thread starts. What is reserved here is neither touched nor kept.
fn is_room_left() -> bool {
    let mut room = Vec::<u8>::new();
    let reserved = room.try_reserve_exact(ROOM).is_ok();
    // A compiler may leave out an allocation that nobody looks at.
    std::hint::black_box(room.as_ptr());
    reserved
}

/// A lane and its number.
type Numbered<'l> = (usize, &'l mut Lane);

/// Lanes that wait for their turn, the one that waits longest in front.
pub(crate) struct Waiting<'l>(Mutex<VecDeque<Numbered<'l>>>);

impl<'l> Waiting<'l> {
    /// Those with these numbers, each of which is there once.
    pub(crate) fn in_order(lanes: &'l mut [Lane], order: &[usize]) -> Waiting<'l> {
        let mut lanes: Vec<_> = lanes.iter_mut().map(Some).collect();
        let lane = |number: &usize| (*number, lanes[*number].take().expect("a lane waits once"));
        Waiting(Mutex::new(order.iter().map(lane).collect()))
    }

    /// The numbers of those that still wait.
    pub(crate) fn order(&self) -> Vec<usize> {
        self.lock().iter().map(|(number, _)| *number).collect()
    }

    /// Gives lanes turns until all have stopped, or `goes_on` says no. A thread that finds nobody waiting is done: every
    /// lane that has not stopped has a thread already.
    pub(crate) fn take_turns(
        &self,
        goes_on: impl Fn() -> bool,
        mut turn: impl FnMut(&mut Lane) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        while goes_on() {
            let Some((number, lane)) = self.next() else { break };
            turn(lane)?;
            if lane.status.stop.is_none() {
                self.lock().push_back((number, lane));
            }
        }
        Ok(())
    }

    fn next(&self) -> Option<Numbered<'l>> {
        self.lock().pop_front()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Numbered<'l>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kvrm_engine::Stop;

    use super::*;

    #[test]
    fn everybody_works() {
        let sum = AtomicUsize::new(0);
        on_threads(&mut [1, 2, 3, 4], |number| {
            sum.fetch_add(*number, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        assert_eq!(sum.into_inner(), 10);
    }

    #[test]
    fn an_error_of_anybody_is_told() {
        for failing in 0..3 {
            let error = || EngineError::Unsupported("this one".to_string());
            let result = on_threads(&mut [0, 1, 2], |number| match *number == failing {
                true => Err(error()),
                false => Ok(()),
            });
            assert!(result.is_err(), "{failing}");
        }
    }

    #[test]
    fn lanes_take_turns_until_they_stop() {
        let mut lanes: Vec<Lane> = (0..3).map(|_| Lane::new(None)).collect();
        lanes.iter_mut().zip([3, 1, 2]).for_each(|(lane, turns)| lane.budget = turns);
        let mut turns = Vec::new();
        let waiting = Waiting::in_order(&mut lanes, &[2, 0, 1]);
        assert_eq!(waiting.order(), [2, 0, 1]);
        let turn = |lane: &mut Lane| {
            turns.push(lane.budget);
            lane.budget -= 1;
            if lane.budget == 0 {
                lane.stop(Stop::MaxCycles);
            }
            Ok(())
        };
        waiting.take_turns(|| true, turn).unwrap();
        assert_eq!(turns, [2, 3, 1, 1, 2, 1]);
        assert_eq!(waiting.order(), []);
    }
}
