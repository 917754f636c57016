//! What sockets move: bytes, and what comes along with them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::files::{FileId, Moves};
use crate::pipes::{ATOMIC, Pipe};
use crate::process::Pid;

/// What a message takes beside its bytes, about as on Linux.
pub(crate) const MESSAGE: usize = 768;

/// What was sent through a socket. In a stream, what was sent one after the other is one message, unless something came
/// along with it or somebody else sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// Its bytes.
    pub bytes: VecDeque<u8>,
    /// Open files that come along (`SCM_RIGHTS`), which stay open meanwhile.
    pub files: Vec<FileId>,
    /// Who sent it, if anybody wanted that to be told.
    pub sender: Option<Sender>,
}

/// Who has sent something, as the receiver learns it (`SCM_CREDENTIALS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sender {
    /// The process.
    pub pid: Pid,
    /// Its user and group.
    pub ids: [u32; 2],
}

/// What a socket has received.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// As many bytes as there was room for.
    pub bytes: Vec<u8>,
    /// How many the message had.
    pub len: usize,
    /// Open files that came along.
    pub files: Vec<FileId>,
    /// Who sent it, if that is known.
    pub sender: Option<Sender>,
}

impl Message {
    /// Bytes with nothing else.
    pub(crate) fn new(bytes: &[u8]) -> Message {
        Message { bytes: bytes.iter().copied().collect(), ..Message::default() }
    }

    fn received(&self, room: usize) -> Received {
        let bytes = self.bytes.iter().copied().take(room).collect();
        let (files, sender) = (self.files.clone(), self.sender);
        Received { bytes, len: self.bytes.len(), files, sender }
    }
}

impl Pipe {
    /// Sends a message as a whole, if there is room for it, or nothing else; true if that was done.
    pub(crate) fn send(&mut self, message: Message) -> bool {
        let fits = self.messages.is_empty() || message.bytes.len() + MESSAGE <= self.room();
        if fits {
            self.moves += 1;
            self.messages.push_back(message);
        }
        fits
    }

    /// Sends what there is room for of the bytes of a message, small pieces only as a whole; how many bytes.
    pub(crate) fn send_bytes(&mut self, mut message: Message) -> usize {
        let last = self.messages.back_mut();
        let continues = |last: &&mut Message| {
            message.files.is_empty() && last.files.is_empty() && message.sender == last.sender
        };
        let extends = last.is_some_and(|last| continues(&last));
        let room = if extends { self.room() } else { self.room().saturating_sub(MESSAGE) };
        let len = message.bytes.len().min(room);
        if len == 0 || len < message.bytes.len() && message.bytes.len() <= ATOMIC {
            return 0;
        }
        self.moves += 1;
        message.bytes.truncate(len);
        match self.messages.back_mut().filter(|_| extends) {
            Some(last) => last.bytes.append(&mut message.bytes),
            None => self.messages.push_back(message),
        }
        len
    }

    /// Receives a message, or of a stream up to so many bytes: not more than one message with files, and nothing of
    /// different senders if they are told. `None` if there is nothing.
    pub(crate) fn receive(&mut self, moves: Moves, room: usize, peeks: bool) -> Option<Received> {
        self.moves += 1;
        match moves {
            Moves::Datagrams | Moves::Packets if peeks => {
                Some(self.messages.front()?.received(room))
            }
            Moves::Datagrams | Moves::Packets => Some(self.messages.pop_front()?.received(room)),
            Moves::Bytes => self.receive_bytes(room, peeks),
        }
    }

    fn receive_bytes(&mut self, room: usize, peeks: bool) -> Option<Received> {
        let sender = self.messages.front()?.sender;
        let mut all = Received { sender, ..Received::default() };
        for message in &mut self.messages {
            let is_other = self.tells_sender && message.sender != sender;
            let left = room - all.bytes.len();
            if is_other || left == 0 && all.len > 0 {
                break;
            }
            let Received { bytes, len, files, .. } = message.received(left);
            all.bytes.extend(bytes);
            all.len += len;
            all.files = files;
            if !peeks {
                message.files.clear();
            }
            if !all.files.is_empty() {
                break;
            }
        }
        if !peeks {
            self.drop_bytes(all.bytes.len());
        }
        Some(all)
    }

    /// Drops bytes at the beginning of a stream.
    fn drop_bytes(&mut self, mut len: usize) {
        while let Some(first) = self.messages.front_mut().filter(|_| len > 0) {
            let now = len.min(first.bytes.len());
            first.bytes.drain(..now);
            len -= now;
            if first.bytes.is_empty() {
                self.messages.pop_front();
            }
        }
    }

    /// Drops all messages; the open files that were in them.
    pub(crate) fn drop_messages(&mut self) -> Vec<FileId> {
        self.messages.drain(..).flat_map(|message| message.files).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipes::{CAPACITY, MESSAGES};

    fn pipe(capacity: usize) -> Pipe {
        Pipe { capacity, ..Pipe::default() }
    }

    fn with_file(bytes: &[u8], file: FileId) -> Message {
        Message { files: vec![file], ..Message::new(bytes) }
    }

    fn from(pid: Pid, bytes: &[u8]) -> Message {
        Message { sender: Some(Sender { pid, ids: [0; 2] }), ..Message::new(bytes) }
    }

    /// Receives up to eight bytes of a stream: what they are, and the files.
    fn received(pipe: &mut Pipe, peeks: bool) -> Option<(Vec<u8>, Vec<FileId>)> {
        let received = pipe.receive(Moves::Bytes, 8, peeks)?;
        Some((received.bytes, received.files))
    }

    #[test]
    fn messages_stay_apart_and_are_limited() {
        let mut pipe = pipe(MESSAGES);
        let empty = Message::default;
        assert!(pipe.is_empty() && pipe.send(Message::new(&[7; MESSAGES])) && !pipe.send(empty()));
        let first = pipe.receive(Moves::Packets, 3, true).unwrap();
        assert_eq!((&first.bytes[..], first.len), (&[7; 3][..], MESSAGES));
        assert_eq!(pipe.receive(Moves::Packets, MESSAGES, false).unwrap().bytes.len(), MESSAGES);
        let most = (0..MESSAGES).take_while(|_| pipe.send(empty())).count();
        assert_eq!(most, MESSAGES / MESSAGE);
        assert_eq!(pipe.receive(Moves::Packets, 3, false), Some(Received::default()));
    }

    #[test]
    fn a_stream_is_full_like_a_pipe() {
        let mut pipe = pipe(CAPACITY + MESSAGE);
        assert_eq!(pipe.send_bytes(Message::new(&[7; CAPACITY - 10])), CAPACITY - 10);
        assert_eq!(pipe.send_bytes(Message::new(&[8; 11])), 0);
        assert_eq!(pipe.send_bytes(with_file(&[8], 1)), 0);
        assert_eq!(pipe.send_bytes(Message::new(&[8; ATOMIC + 1])), 10);
        assert_eq!(pipe.messages.len(), 1);
        assert_eq!(pipe.receive(Moves::Bytes, CAPACITY + 1, false).unwrap().bytes.len(), CAPACITY);
        assert_eq!(received(&mut pipe, false), None);
    }

    #[test]
    fn files_come_with_the_first_of_their_bytes() {
        let mut pipe = pipe(CAPACITY);
        for message in
            [Message::new(b"ab"), with_file(b"cd", 5), Message::new(b"ef"), with_file(b"g", 6)]
        {
            assert!(pipe.send_bytes(message) > 0);
        }
        let first = Some((b"abcd".to_vec(), vec![5]));
        assert_eq!(received(&mut pipe, true), first);
        let part = pipe.receive(Moves::Bytes, 3, false).unwrap();
        assert_eq!((&part.bytes[..], &part.files[..]), (&b"abc"[..], &[5][..]));
        assert_eq!(received(&mut pipe, false), Some((b"defg".to_vec(), vec![6])));
        assert!(pipe.is_empty());
    }

    #[test]
    fn who_wants_to_know_senders_gets_them_one_by_one() {
        for (tells_sender, expected) in [(false, &b"abc"[..]), (true, &b"ab"[..])] {
            let mut pipe = Pipe { tells_sender, ..pipe(CAPACITY) };
            for message in [from(1, b"a"), from(1, b"b"), from(2, b"c")] {
                assert!(pipe.send_bytes(message) > 0);
            }
            assert_eq!(pipe.messages.len(), 2);
            let first = pipe.receive(Moves::Bytes, 8, false).unwrap();
            assert_eq!((&first.bytes[..], first.sender.unwrap().pid), (expected, 1));
        }
    }
}
