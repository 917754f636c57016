//! How far lanes go together that have begun to use what they do not have in common.
//!
//! Where many lanes go on from a prefix, and take long from there, the scout is [followed](Kernel::follow) from the prefix on, beside
//! one of them. What comes of it is a *trail*: how to compute what any other lane would have at points behind the prefix,
//! and up to which it would have come there. So there can be prefixes at these points, too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use kvrm_engine::{EngineError, RunControl};
use kvrm_ir::derive::Placements;
use kvrm_linux::{Computed, Followed, Kernel};

use super::runner::{Given, lock};

/// Instructions that lanes have executed from a prefix on before the scout is followed from there.
pub(super) const PATIENCE: u64 = 1 << 30;
/// Points of a trail that prefixes may end at, about.
const POINTS: u64 = 64;
/// Bytes of a trail, for it to be kept.
const MOST_KEPT: usize = 16 << 20;

/// What is known of the way from a prefix on.
pub(super) enum Way {
    /// So many instructions were executed on it.
    Alone(u64),
    /// Somebody is about to find out.
    Exploring,
    Trail(Arc<Trail>),
    /// Lanes do not go together any further.
    Apart,
}

/// A way that lanes go together.
pub(super) struct Trail {
    start: u64,
    followed: Followed,
    placements: Mutex<HashMap<u64, Arc<Placements>>>,
}

/// Where a lane can begin, and with what.
pub(super) struct Start {
    pub(super) instructions: u64,
    computed: Computed,
}

impl Trail {
    /// Follows a run from where it is, beside that of a lane; `None` if it was cancelled.
    pub(super) fn new(
        mut kernel: Kernel,
        beside: &Given,
        control: &RunControl,
    ) -> Result<Option<Trail>, EngineError> {
        let start = kernel.report().instructions;
        let followed = kernel.follow(&beside.args, &beside.env, control)?;
        let placements = Mutex::default();
        Ok(followed.map(|followed| Trail { start, followed, placements }))
    }

    /// True if it is of use.
    pub(super) fn is_worth_keeping(&self) -> bool {
        self.followed.end() > self.start + self.followed.cost() && self.size() <= MOST_KEPT
    }

    /// Bytes that it takes, about.
    pub(super) fn size(&self) -> usize {
        self.followed.size()
    }

    /// True if lanes may have another string, by its place among arguments and variables.
    pub(super) fn may_differ(&self, string: usize) -> bool {
        self.followed.has(string)
    }

    /// Where a lane can begin; `None` if it goes no part of the way.
    pub(super) fn start(&self, given: &Given) -> Option<Start> {
        let (computed, parts) = self.followed.compute(&given.args, &given.env);
        let end = self.followed.end();
        let instructions = match parts {
            parts if parts >= end => end,
            parts => {
                // Not one for each place where some lane parts from others.
                let length = ((end - self.start) / POINTS).max(1);
                let from = parts - parts.saturating_sub(self.start) % length;
                self.followed.next_check(from).min(parts)
            }
        };
        (instructions > self.start).then_some(Start { instructions, computed })
    }

    /// Gives a copy of the scout that has come to where a lane begins what the lane has there.
    pub(super) fn give(
        &self,
        kernel: &mut Kernel,
        given: &Given,
        start: &Start,
    ) -> Result<(), EngineError> {
        let placements = Arc::clone(
            lock(&self.placements)
                .entry(start.instructions)
                .or_insert_with(|| Arc::new(self.followed.placements(start.instructions))),
        );
        let Given { args, env, .. } = given;
        kernel.give_followed(args, env, &self.followed, &placements, &start.computed)
    }
}
