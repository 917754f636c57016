//! Lanes that run and stop on their own, while others go on: see [`Engine::advance`](crate::Engine::advance).

use std::time::Duration;

use super::{LaunchEngine, Launched, Launcher};
use crate::code::AHEAD;
use crate::kernel::stop;
use crate::slice::Share;
use crate::{EngineError, RunControl};

/// What a launch should take: those that have stopped wait for its end.
const LAUNCH_TIME: Duration = Duration::from_millis(10);
/// The most instructions per lane of a launch: some devices count them in 32 bits.
const LARGEST_SHARE: u64 = 1 << 31;

/// The lanes that have instructions left.
pub(super) struct Advancing {
    given: Vec<bool>,
    count: usize,
    share: Share,
}

impl Advancing {
    fn new(lanes: usize, first_share: u64) -> Advancing {
        let share = Share::new(first_share, LARGEST_SHARE, LAUNCH_TIME);
        Advancing { given: vec![false; lanes], count: 0, share }
    }

    fn set(&mut self, lane: usize, given: bool) {
        let before = std::mem::replace(&mut self.given[lane], given);
        self.count = self.count + usize::from(given) - usize::from(before);
    }

    /// Notes that a lane begins again.
    pub(super) fn reset(&mut self, lane: usize) {
        self.set(lane, false);
    }
}

impl<L: Launcher> LaunchEngine<L> {
    /// Gives lanes instructions. Those of a run before that have not stopped do not go on.
    pub(super) fn give_lanes(&mut self, lanes: &[(usize, u64)]) -> Result<(), EngineError> {
        if self.advancing.is_none() {
            let all: Vec<usize> = (0..self.config.lanes).collect();
            self.statuses.modify(&all, |status| status.stop = stop::ENDED)?;
            self.launcher.resume()?;
        }
        let first_share = self.share.first();
        let advancing =
            self.advancing.get_or_insert_with(|| Advancing::new(self.config.lanes, first_share));
        for (lane, instructions) in lanes {
            assert!(*instructions > 0, "lanes get some instructions");
            let mut status = self.statuses.get_of(lanes.len(), *lane)?;
            (status.budget, status.stop) = (*instructions, stop::RUNNING);
            self.statuses.set_of(lanes.len(), *lane, status)?;
            self.stops[*lane] = None;
            advancing.set(*lane, true);
        }
        match self.config.mapped {
            true => self.drop_tags_of(lanes.iter().map(|(lane, _)| *lane)),
            false => Ok(()),
        }
    }

    /// Launches until a lane has stopped; those that have.
    pub(super) fn advance_lanes(
        &mut self,
        control: &RunControl,
    ) -> Result<Vec<usize>, EngineError> {
        let mut ended = Vec::new();
        self.launcher.resume()?;
        while ended.is_empty() && !control.is_cancelled() {
            let Some(Advancing { given, count, share }) = &mut self.advancing else { break };
            let Some(first) = given.iter().position(|given| *given) else { break };
            let (running, mut share) = (*count, *share);
            if self.code.is_empty() {
                let pc = self.states.get(first)?.pc;
                // If there is no code, the lane will say so.
                self.code.find(self.launcher.memory_mut(), first, pc, &mut { AHEAD })?;
            }
            let each = self.tiers.share(&self.config, share.of(running));
            let launched = self.launch(each, running, control)?;
            let Some(Launched { time, executed, stopped }) = launched else { break };
            self.tiers.launched(each, executed, time, running);
            share.adapt(time, stopped.len() < running);
            self.service(&stopped, control)?;
            let stopped = stopped.into_iter().map(|lane| lane as usize);
            ended = stopped.filter(|lane| self.stops[*lane].is_some()).collect();
            let advancing = self.advancing.as_mut().expect("found above");
            advancing.share = share;
            ended.iter().for_each(|lane| advancing.set(*lane, false));
        }
        ended.sort_unstable();
        Ok(ended)
    }
}
