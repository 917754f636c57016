//! How much memory files may take.

use serde::{Deserialize, Serialize};

use crate::{Errno, Result};

/// Bytes that a name in a directory counts as, however long it is: so renaming never needs more.
pub(super) const NAME: u64 = 320;

/// How much the files of a run may take beyond what the guest is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of contents in memory, as they are allocated, and of the targets of links; a name in a directory counts
    /// as 320 bytes.
    pub bytes: u64,
    /// Files, directories, links and so on that the guest creates.
    pub nodes: u64,
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// [`Limits::bytes`].
    Bytes,
    /// [`Limits::nodes`].
    Nodes,
}

/// What is used of the limits.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Usage {
    limits: Limits,
    bytes: u64,
    nodes: u64,
    /// What counted before there were limits: what the guest is given.
    given: Limits,
    hit: Option<Limit>,
}

impl Usage {
    /// Without limits, until [`Usage::limit`] sets them.
    pub(super) fn unlimited() -> Usage {
        let limits = Limits { bytes: u64::MAX, nodes: u64::MAX };
        let given = Limits { bytes: 0, nodes: 0 };
        Usage { limits, bytes: 0, nodes: 0, given, hit: None }
    }

    /// Sets limits for what comes on top of what is there now.
    pub(super) fn limit(&mut self, limits: Limits) {
        self.given = Limits { bytes: self.bytes, nodes: self.nodes };
        self.change_limits(limits);
    }

    /// Sets other limits than those before.
    pub(super) fn change_limits(&mut self, limits: Limits) {
        self.limits.bytes = limits.bytes.saturating_add(self.given.bytes);
        self.limits.nodes = limits.nodes.saturating_add(self.given.nodes);
    }

    /// True if no more is used than the limits allow.
    pub(super) fn fits(&self) -> bool {
        self.bytes <= self.limits.bytes && self.nodes <= self.limits.nodes
    }

    /// What counted before there were limits.
    pub(super) fn given(&self) -> Limits {
        self.given
    }

    pub(super) fn take_bytes(&mut self, bytes: u64) -> Result<()> {
        match self.bytes.checked_add(bytes).filter(|sum| *sum <= self.limits.bytes) {
            Some(sum) => self.bytes = sum,
            None => {
                self.hit.get_or_insert(Limit::Bytes);
                return Err(Errno::NOSPC);
            }
        }
        Ok(())
    }

    pub(super) fn give_bytes(&mut self, bytes: u64) {
        self.bytes -= bytes;
    }

    pub(super) fn take_node(&mut self) -> Result<()> {
        if self.nodes >= self.limits.nodes {
            self.hit.get_or_insert(Limit::Nodes);
            return Err(Errno::NOSPC);
        }
        self.nodes += 1;
        Ok(())
    }

    pub(super) fn give_node(&mut self) {
        self.nodes -= 1;
    }

    /// Takes what something new needs: a node, a name and some bytes.
    pub(super) fn take_new(&mut self, bytes: u64) -> Result<()> {
        self.take_node()?;
        self.take_bytes(NAME + bytes).inspect_err(|_| self.give_node())
    }

    pub(super) fn give_new(&mut self, bytes: u64) {
        self.give_node();
        self.give_bytes(NAME + bytes);
    }

    pub(super) fn take_name(&mut self) -> Result<()> {
        self.take_bytes(NAME)
    }

    pub(super) fn give_name(&mut self) {
        self.give_bytes(NAME);
    }

    pub(super) fn hit(&self) -> Option<Limit> {
        self.hit
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn nodes(&self) -> u64 {
        self.nodes
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }
}
