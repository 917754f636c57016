//! Open files: what descriptors lead to. Processes share those that were open when one was forked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::console::Stream;
use crate::pipes::Pipes;
use crate::process::Alarm;
use crate::vfs::{Device, DirectoryEntry, NodeId};

/// Entries of directories that are kept for those who read them.
const MOST_LISTED: usize = 1 << 18;

/// The number after the last one that was given away, if that is free, or the next that is.
pub(crate) fn next_free(last: &mut u32, is_taken: impl Fn(u32) -> bool) -> u32 {
    loop {
        *last = last.wrapping_add(1);
        if !is_taken(*last) {
            return *last;
        }
    }
}

/// The number of an open file.
pub(crate) type FileId = u32;

/// An open file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OpenFile {
    /// What it is.
    pub kind: Kind,
    /// How it was opened.
    pub mode: Mode,
    /// Where the next read or write is; for a directory, the next entry.
    pub offset: u64,
    /// What a directory had when it was last read from the beginning.
    pub listing: Option<Vec<DirectoryEntry>>,
    /// Descriptors that lead here.
    pub users: u32,
}

/// What an open file is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// A file or directory, which is retained.
    Node(NodeId),
    /// A device.
    Device(Device, NodeId),
    /// An end of a pipe, or both ends of a FIFO.
    Pipe {
        /// Its number.
        pipe: u32,
    },
    /// One of a pair of sockets.
    Socket {
        /// What it moves.
        moves: Moves,
        /// What comes from the other, unless that was shut down.
        incoming: Option<u32>,
        /// What goes to the other, unless that was shut down.
        outgoing: Option<u32>,
    },
    /// One of the streams that a program begins with.
    Console(Stream),
    /// A counter (`eventfd`).
    Event {
        /// What it is at.
        count: u64,
        /// Reading takes one of it.
        semaphore: bool,
    },
    /// A set of files that are waited for.
    Epoll(Epoll),
    /// A timer (`timerfd`).
    Timer {
        /// When it goes off next.
        alarm: Option<Alarm>,
        /// It counts from 1970.
        since_1970: bool,
    },
}

/// What a socket moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Moves {
    /// Bytes, one after another (`SOCK_STREAM`).
    Bytes,
    /// Messages, without an end (`SOCK_DGRAM`).
    Datagrams,
    /// Messages, until one side is closed (`SOCK_SEQPACKET`).
    Packets,
}

/// How a file was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mode {
    /// To be read.
    pub reads: bool,
    /// To be written.
    pub writes: bool,
    /// Writes go to the end.
    pub appends: bool,
    /// Nobody waits.
    pub nonblocking: bool,
    /// Only to name it.
    pub path_only: bool,
    /// Flags that only are remembered, as guests have them.
    pub others: u32,
}

/// A set of files that are waited for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Epoll {
    /// By descriptor and file.
    pub interests: BTreeMap<(u32, FileId), Interest>,
    /// Where the next look begins, so that all get their turn.
    pub next: (u32, FileId),
}

/// What is waited for of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Interest {
    /// `EPOLL…`.
    pub events: u32,
    /// What the guest gets back.
    pub data: u64,
    /// What was told of it (edge-triggered).
    pub told: u32,
    /// What had happened to the file then.
    pub seen: u64,
    /// It is told once (`EPOLLONESHOT`), and was.
    pub disabled: bool,
}

impl OpenFile {
    /// An open file that one descriptor will lead to.
    pub(crate) fn new(kind: Kind, mode: Mode) -> OpenFile {
        OpenFile { kind, mode, offset: 0, listing: None, users: 1 }
    }
}

/// All open files of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Files {
    files: BTreeMap<FileId, OpenFile>,
    last: FileId,
    /// What their pipes hold.
    pub pipes: Pipes,
}

impl Files {
    /// Adds one.
    pub(crate) fn add(&mut self, file: OpenFile) -> FileId {
        let number = next_free(&mut self.last, |number| self.files.contains_key(&number));
        if let Kind::Pipe { pipe } = file.kind {
            let pipe = self.pipes.get(pipe);
            pipe.readers += u32::from(file.mode.reads);
            pipe.writers += u32::from(file.mode.writes);
            pipe.opened[0] += u64::from(file.mode.reads);
            pipe.opened[1] += u64::from(file.mode.writes);
        }
        if let Kind::Socket { incoming, outgoing, .. } = file.kind {
            incoming.into_iter().for_each(|pipe| self.pipes.get(pipe).readers += 1);
            outgoing.into_iter().for_each(|pipe| self.pipes.get(pipe).writers += 1);
        }
        self.files.insert(number, file);
        number
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FileId, &OpenFile)> {
        self.files.iter().map(|(number, file)| (*number, file))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Forgets what directories had, except one, if that is too much in all. It is read again when it is asked for.
    pub(crate) fn forget_listings(&mut self, except: FileId) {
        let of = |file: &OpenFile| file.listing.as_ref().map_or(0, |listing| listing.len());
        if self.files.values().map(of).sum::<usize>() <= MOST_LISTED {
            return;
        }
        let others = self.files.iter_mut().filter(|(id, _)| **id != except);
        others.for_each(|(_, file)| file.listing = None);
    }

    /// One of them.
    pub(crate) fn get(&self, id: FileId) -> &OpenFile {
        &self.files[&id]
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, id: FileId) -> &mut OpenFile {
        self.files.get_mut(&id).expect("a descriptor leads to it")
    }

    /// True if it is open.
    pub(crate) fn has(&self, id: FileId) -> bool {
        self.files.contains_key(&id)
    }

    /// Another descriptor leads to it.
    pub(crate) fn share(&mut self, id: FileId) {
        self.get_mut(id).users += 1;
    }

    /// A descriptor is closed; the file, if it was the last.
    pub(crate) fn close(&mut self, id: FileId) -> Option<OpenFile> {
        let file = self.get_mut(id);
        file.users -= 1;
        if file.users > 0 {
            return None;
        }
        let file = self.files.remove(&id).expect("it was just there");
        if let Kind::Pipe { pipe: number } = file.kind {
            let pipe = self.pipes.get(number);
            pipe.readers -= u32::from(file.mode.reads);
            pipe.writers -= u32::from(file.mode.writes);
            self.pipes.close(number);
        }
        if let Kind::Socket { incoming, outgoing, .. } = file.kind {
            incoming.into_iter().for_each(|pipe| self.pipes.get(pipe).readers -= 1);
            outgoing.into_iter().for_each(|pipe| self.pipes.get(pipe).writers -= 1);
            incoming.into_iter().chain(outgoing).for_each(|pipe| self.pipes.close(pipe));
        }
        Some(file)
    }
}
