//! Pipes, and what pairs of sockets are made of.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::files::next_free;
use crate::messages::{MESSAGE, Message};
use crate::vfs::NodeId;

/// Bytes that a pipe holds, as on Linux.
pub(crate) const CAPACITY: usize = 1 << 16;
/// What the messages of a socket may take, as on Linux.
pub(crate) const MESSAGES: usize = 212_992;
/// Bytes that are written together or not at all.
pub(crate) const ATOMIC: usize = 4096;

/// Bytes that all pipes may hold before new ones hold less, as on Linux.
pub(crate) const MOST_BYTES: usize = 1 << 26;

/// A pipe.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pipe {
    /// What was written and not read.
    pub bytes: VecDeque<u8>,
    /// Messages that were sent and not received, if it belongs to sockets.
    pub messages: VecDeque<Message>,
    /// Who receives them wants to know who has sent them (`SO_PASSCRED`).
    pub tells_sender: bool,
    /// Open files that read it.
    pub readers: u32,
    /// Open files that write it.
    pub writers: u32,
    /// The FIFO that it belongs to.
    pub node: Option<NodeId>,
    /// How often it was opened for reading and for writing, which the other side waits for.
    pub opened: [u64; 2],
    /// How many bytes it may hold.
    pub capacity: usize,
    /// How often it was read or written.
    pub moves: u64,
}

impl Pipe {
    /// Room that is left.
    pub(crate) fn room(&self) -> usize {
        let messages = self.messages.iter().map(|message| message.bytes.len() + MESSAGE);
        let taken = self.bytes.len() + messages.sum::<usize>();
        self.capacity - taken.min(self.capacity)
    }

    /// True if there is nothing to be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.messages.is_empty()
    }

    /// Reads; how many bytes.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> usize {
        let len = bytes.len().min(self.bytes.len());
        self.moves += 1;
        for (to, from) in bytes.iter_mut().zip(self.bytes.drain(..len)) {
            *to = from;
        }
        len
    }

    /// Writes what there is room for, small pieces only as a whole; how many bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let room = self.room();
        if bytes.len() <= ATOMIC && room < bytes.len() {
            return 0;
        }
        let len = bytes.len().min(room);
        self.moves += 1;
        self.bytes.extend(&bytes[..len]);
        len
    }
}

/// All pipes of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pipes {
    pipes: BTreeMap<u32, Pipe>,
    last: u32,
}

impl Pipes {
    /// A new pipe; its number.
    pub(crate) fn add(&mut self, node: Option<NodeId>) -> u32 {
        self.add_with(node, CAPACITY)
    }

    /// A new pipe for so much, or little if there is no room; its number.
    pub(crate) fn add_with(&mut self, node: Option<NodeId>, capacity: usize) -> u32 {
        let capacity = if self.has_room(capacity) { capacity } else { ATOMIC };
        let number = next_free(&mut self.last, |number| self.pipes.contains_key(&number));
        self.pipes.insert(number, Pipe { node, capacity, ..Pipe::default() });
        number
    }

    /// True if they may hold so many more bytes.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let total: usize = self.pipes.values().map(|pipe| pipe.capacity).sum();
        total + bytes <= MOST_BYTES
    }

    /// The pipe of a FIFO, which is made if nobody has it open; its number.
    pub(crate) fn of_fifo(&mut self, node: NodeId) -> u32 {
        let found = self.pipes.iter().find(|(_, pipe)| pipe.node == Some(node));
        found.map(|(number, _)| *number).unwrap_or_else(|| self.add(Some(node)))
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Pipe)> {
        self.pipes.iter().map(|(number, pipe)| (*number, pipe))
    }

    /// One of them.
    pub(crate) fn get(&mut self, number: u32) -> &mut Pipe {
        self.pipes.get_mut(&number).expect("it is open")
    }

    /// Forgets it if nobody has it open.
    pub(crate) fn close(&mut self, number: u32) {
        let pipe = self.get(number);
        if pipe.readers == 0 && pipe.writers == 0 {
            self.pipes.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_writes_are_whole() {
        let mut pipes = Pipes::default();
        let number = pipes.add(None);
        let pipe = pipes.get(number);
        assert_eq!(pipe.write(&[7; CAPACITY - 10]), CAPACITY - 10);
        assert_eq!(pipe.write(&[8; 11]), 0);
        assert_eq!(pipe.write(&[8; ATOMIC + 1]), 10);
        let mut bytes = vec![0; CAPACITY + 1];
        assert_eq!(pipe.read(&mut bytes), CAPACITY);
        assert_eq!((bytes[0], bytes[CAPACITY - 1]), (7, 8));
    }
}
