//! Open files: what descriptors lead to. Processes share those that were open when one was forked.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::console::Stream;
use crate::pipes::Pipes;
use crate::process::{Alarm, Pid};
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
    /// Descriptors that lead here, and messages that have it.
    pub users: u32,
    /// Messages alone.
    pub in_messages: u32,
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
    Socket(Socket),
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

/// One of a pair of sockets.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Socket {
    /// What it moves.
    pub moves: Moves,
    /// What comes from the other, unless that was shut down.
    pub incoming: Option<u32>,
    /// What goes to the other, unless that was shut down.
    pub outgoing: Option<u32>,
    /// The process that made the pair.
    pub maker: Pid,
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
        OpenFile { kind, mode, offset: 0, listing: None, users: 1, in_messages: 0 }
    }

    /// The pipe that messages for it are in, if it is a socket.
    fn receives_from(&self) -> Option<u32> {
        match self.kind {
            Kind::Socket(Socket { incoming, .. }) => incoming,
            _ => None,
        }
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
        if let Kind::Socket(Socket { incoming, outgoing, .. }) = file.kind {
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

    /// A message has it.
    pub(crate) fn post(&mut self, id: FileId) {
        let file = self.get_mut(id);
        file.users += 1;
        file.in_messages += 1;
    }

    /// A message that had it was received or dropped: it is still used, and then by a descriptor, or closed.
    pub(crate) fn unpost(&mut self, id: FileId) {
        self.get_mut(id).in_messages -= 1;
    }

    /// How many files are in messages; those that are in several count as often.
    pub(crate) fn posted(&self) -> u64 {
        self.files.values().map(|file| u64::from(file.in_messages)).sum()
    }

    /// A descriptor is closed, or a message dropped; the file, if nobody else uses it. `closing` gets those that have to
    /// be closed as well, because they were in messages that nobody can receive any more.
    pub(crate) fn close(&mut self, id: FileId, closing: &mut Vec<FileId>) -> Option<OpenFile> {
        let file = self.get_mut(id);
        file.users -= 1;
        if file.users > 0 {
            if file.users == file.in_messages {
                closing.extend(self.drop_lost_messages());
            }
            return None;
        }
        let file = self.files.remove(&id).expect("it was just there");
        if let Kind::Pipe { pipe: number } = file.kind {
            let pipe = self.pipes.get(number);
            pipe.readers -= u32::from(file.mode.reads);
            pipe.writers -= u32::from(file.mode.writes);
            self.pipes.close(number);
        }
        if let Kind::Socket(Socket { incoming, outgoing, .. }) = file.kind {
            incoming.into_iter().for_each(|pipe| closing.extend(self.stop_reading(pipe)));
            outgoing.into_iter().for_each(|pipe| self.stop_writing(pipe));
        }
        Some(file)
    }

    /// A socket does not receive from a pipe any more; the files that were in its messages.
    pub(crate) fn stop_reading(&mut self, number: u32) -> Vec<FileId> {
        let pipe = self.pipes.get(number);
        pipe.readers -= 1;
        let files = pipe.drop_messages();
        self.pipes.close(number);
        files.iter().for_each(|file| self.unpost(*file));
        files
    }

    /// A socket does not send into a pipe any more.
    pub(crate) fn stop_writing(&mut self, number: u32) {
        self.pipes.get(number).writers -= 1;
        self.pipes.close(number);
    }

    /// Drops messages that nobody can receive, because the sockets for them are in such messages themselves; the files
    /// that were in them.
    fn drop_lost_messages(&mut self) -> Vec<FileId> {
        let is_open =
            |(id, file): (&FileId, &OpenFile)| (file.users > file.in_messages).then_some(*id);
        let mut reached: BTreeSet<FileId> = self.files.iter().filter_map(is_open).collect();
        let mut next: Vec<FileId> = reached.iter().copied().collect();
        while let Some(id) = next.pop() {
            let Some(pipe) = self.get(id).receives_from() else { continue };
            let posted = self.pipes.get(pipe).messages.iter().flat_map(|message| &message.files);
            next.extend(posted.filter(|file| reached.insert(**file)));
        }
        let lost = self.files.iter().filter(|(id, _)| !reached.contains(id));
        let pipes: Vec<u32> = lost.filter_map(|(_, file)| file.receives_from()).collect();
        let files = pipes.into_iter().flat_map(|pipe| self.pipes.get(pipe).drop_messages());
        let files: Vec<FileId> = files.collect();
        files.iter().for_each(|file| self.unpost(*file));
        files
    }
}
