//! Waiting for files.

use std::collections::BTreeSet;

use linux_raw_sys::general as raw;

use super::{Call, flags};
use crate::Errno;
use crate::answer::Answer;
use crate::clock::Time;
use crate::files::{Epoll, FileId, Interest, Kind, Mode, Moves, OpenFile, Socket};
use crate::layout::{EpollEvent, PollFd, TimeSpec};
use crate::signals::Signals;
use crate::vfs::Device;

const IN: u32 = raw::POLLIN;
const OUT: u32 = raw::POLLOUT;
const ERR: u32 = raw::POLLERR;
const HUP: u32 = raw::POLLHUP;
const NVAL: u32 = raw::POLLNVAL;
const RDNORM: u32 = raw::POLLRDNORM;
const WRNORM: u32 = raw::POLLWRNORM;
const READABLE: u32 = IN | RDNORM;
const WRITABLE: u32 = OUT | WRNORM;
/// Those that are told whether asked for or not.
const ALWAYS: u32 = ERR | HUP;
/// Files that a set of epoll may wait for.
const MOST_INTERESTS: usize = 4096;

/// What can be done with a file, and when that changes by itself.
#[derive(Clone, Copy, Default)]
struct Ready {
    events: u32,
    at: Option<Time>,
}

impl Call<'_> {
    fn ready(&mut self, id: FileId) -> Ready {
        let mode = self.kernel.files.get(id).mode;
        let now = self.kernel.clock.now();
        let mut at = None;
        let events = match &self.kernel.files.get(id).kind {
            Kind::Node(_) => READABLE | WRITABLE,
            Kind::Device(Device::Tty, _) => self.console_ready(),
            Kind::Device(..) => READABLE | WRITABLE,
            Kind::Console(_) => self.console_ready(),
            Kind::Pipe { pipe } => {
                let pipe = self.kernel.files.pipes.get(*pipe);
                let when = |is: bool, events: u32| if is { events } else { 0 };
                let reading = when(!pipe.bytes.is_empty(), READABLE) | when(pipe.writers == 0, HUP);
                let writing = when(pipe.room() >= crate::pipes::ATOMIC, WRITABLE)
                    | when(pipe.readers == 0, ERR);
                when(mode.reads, reading) | when(mode.writes, writing)
            }
            Kind::Socket(socket) => {
                let socket = *socket;
                self.socket_ready(socket)
            }
            Kind::Event { count, .. } => {
                let readable = if *count > 0 { READABLE } else { 0 };
                readable | if *count < u64::MAX - 1 { WRITABLE } else { 0 }
            }
            Kind::Timer { alarm, .. } => {
                at = alarm.map(|alarm| alarm.at).filter(|at| *at > now);
                if alarm.is_some_and(|alarm| alarm.at <= now) { READABLE } else { 0 }
            }
            Kind::Epoll(_) => return self.set_ready(id),
        };
        Ready { events, at }
    }

    fn socket_ready(&mut self, Socket { moves, incoming, outgoing, .. }: Socket) -> u32 {
        let pipes = &mut self.kernel.files.pipes;
        // One that moves datagrams does not see that the other is gone before it sends.
        let ends = moves != Moves::Datagrams;
        let reading = incoming
            .map(|pipe| pipes.get(pipe))
            .map(|pipe| (!pipe.is_empty(), ends && pipe.writers == 0));
        let (has_bytes, has_ended) = reading.unwrap_or((false, true));
        let writing = outgoing
            .map(|pipe| pipes.get(pipe))
            .map(|pipe| (pipe.room() > 0, ends && pipe.readers == 0));
        let (has_room, is_closed) = writing.unwrap_or((true, true));
        let when = |is: bool, events: u32| if is { events } else { 0 };
        when(has_bytes || has_ended, READABLE)
            | when(has_ended, raw::POLLRDHUP)
            | when(has_room || is_closed, WRITABLE)
            | when(has_ended && is_closed, HUP)
    }

    /// Whether something of a set is ready, or of the sets in it.
    fn set_ready(&mut self, id: FileId) -> Ready {
        let mut ready = Ready::default();
        for (file, wanted) in self.reached(id, true) {
            let one = self.ready(file);
            ready.at = earlier(ready.at, one.at);
            ready.events |= if one.events & (wanted | ALWAYS) != 0 { READABLE } else { 0 };
        }
        ready
    }

    /// What a set waits for, and the sets in it: open files and the events. Sets themselves are left out with `leaves`.
    fn reached(&mut self, id: FileId, leaves: bool) -> BTreeSet<(FileId, u32)> {
        let mut found = BTreeSet::new();
        let mut sets = vec![id];
        let mut seen = BTreeSet::from([id]);
        while let Some(set) = sets.pop() {
            let Kind::Epoll(epoll) = &self.kernel.files.get(set).kind else { continue };
            for ((_, file), interest) in &epoll.interests {
                if !self.kernel.files.has(*file) {
                    continue;
                }
                let is_set = matches!(self.kernel.files.get(*file).kind, Kind::Epoll(_));
                if !is_set || !leaves {
                    found.insert((*file, interest.events));
                }
                if is_set && (!leaves || interest.events & READABLE != 0) && seen.insert(*file) {
                    sets.push(*file);
                }
            }
        }
        found
    }

    fn console_ready(&mut self) -> u32 {
        WRITABLE | if self.kernel.console.is_readable() { READABLE } else { 0 }
    }

    /// Sets a mask for as long as the call waits.
    fn mask(&mut self, addr: u64, len: u64) -> Answer<()> {
        if addr == 0 {
            return Ok(());
        }
        if len != 8 {
            return Err(Errno::INVAL.into());
        }
        let bits: u64 = self.read(addr)?;
        self.kernel.mask_while_waiting(self.tid, Signals::blockable(bits));
        Ok(())
    }

    /// The call's answer: what was found, or waiting, or nothing if the time is over. The mask is restored.
    fn found(&mut self, found: u64, until: Option<Time>, next: Option<Time>) -> Answer {
        if found == 0 && !self.is_over(until) {
            return Err(self.wait_until(earlier(until, next)));
        }
        self.kernel.unmask(self.tid);
        Ok(found)
    }
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

pub(super) fn ppoll(call: &mut Call<'_>) -> Answer {
    let [addr, count, timeout, mask, mask_len, _] = call.args;
    if count > call.process().resources.open_files() {
        return Err(Errno::INVAL.into());
    }
    let duration = call.duration(timeout)?;
    let until = call.deadline(duration);
    let (mut found, mut next) = (0, None);
    for index in 0..count {
        let at = addr + 8 * index;
        let mut entry: PollFd = call.read(at)?;
        entry.happened = 0;
        if entry.fd >= 0 {
            let wanted = u32::from(entry.events) | ALWAYS;
            entry.happened = match call.process().descriptors.get(entry.fd as u64) {
                Err(_) => NVAL as u16,
                Ok(descriptor) => {
                    let ready = call.ready(descriptor.file);
                    next = earlier(next, ready.at);
                    (ready.events & wanted) as u16
                }
            };
        }
        found += u64::from(entry.happened != 0);
        call.write(at, &entry)?;
    }
    call.mask(mask, mask_len)?;
    call.found(found, until, next)
}

pub(super) fn pselect6(call: &mut Call<'_>) -> Answer {
    const MOST: u64 = 1024;
    let [_, reads, writes, errors, timeout, mask] = call.args;
    let count = u64::from(call.bits(0));
    if count > MOST {
        return Err(Errno::INVAL.into());
    }
    let bytes = (count.div_ceil(64) * 8) as usize;
    let duration = call.duration(timeout)?;
    let until = call.deadline(duration);
    let sets = [(reads, READABLE | HUP | ERR), (writes, WRITABLE | ERR), (errors, raw::POLLPRI)];
    let mut wanted = Vec::new();
    for (addr, _) in sets {
        let mut set = vec![0; bytes];
        if addr != 0 {
            call.memory().read(addr, &mut set)?;
        }
        wanted.push(set);
    }
    let mut given = vec![vec![0u8; bytes]; 3];
    let (mut found, mut next) = (0, None);
    for fd in 0..count as usize {
        let is_in = |set: &Vec<u8>| set[fd / 8] >> (fd % 8) & 1 != 0;
        if !wanted.iter().any(is_in) {
            continue;
        }
        let file = call.process().descriptors.get(fd as u64)?.file;
        let ready = call.ready(file);
        next = earlier(next, ready.at);
        for (which, (_, events)) in sets.iter().enumerate() {
            if is_in(&wanted[which]) && ready.events & events != 0 {
                given[which][fd / 8] |= 1 << (fd % 8);
                found += 1;
            }
        }
    }
    if found > 0 || call.is_over(until) {
        for ((addr, _), set) in sets.iter().zip(&given) {
            if *addr != 0 {
                call.memory().write(*addr, set)?;
            }
        }
    }
    if mask != 0 {
        let [set, len]: [u64; 2] = call.read(mask)?;
        call.mask(set, len)?;
    }
    let answer = call.found(found, until, next);
    if answer.is_ok() && timeout != 0 {
        let left = until.map_or(0, |until| until.0.saturating_sub(call.kernel.clock.now().0));
        call.write(timeout, &TimeSpec::from_nanoseconds(left))?;
    }
    answer
}

// epoll

pub(super) fn epoll_create1(call: &mut Call<'_>) -> Answer {
    let bits = call.bits(0);
    if bits & !flags::CLOEXEC != 0 {
        return Err(Errno::INVAL.into());
    }
    let mode = Mode { reads: true, writes: true, ..Mode::default() };
    let file = OpenFile::new(Kind::Epoll(Epoll::default()), mode);
    call.kernel.add_file(call.tid, file, bits & flags::CLOEXEC != 0)
}

pub(super) fn epoll_ctl(call: &mut Call<'_>) -> Answer {
    let (set, fd) = (call.file(0)?, call.bits(2));
    let file = call.file(2)?;
    if set == file || !matches!(call.kernel.files.get(set).kind, Kind::Epoll(_)) {
        return Err(Errno::INVAL.into());
    }
    if matches!(call.kernel.files.get(file).kind, Kind::Node(_)) {
        return Err(Errno::PERM.into());
    }
    if matches!(call.kernel.files.get(file).kind, Kind::Epoll(_)) && call.reaches(file, set) {
        return Err(Errno::LOOP.into());
    }
    let operation = call.bits(1);
    let event = match operation {
        raw::EPOLL_CTL_DEL => EpollEvent::default(),
        _ => call.read(call.args[3])?,
    };
    let interest =
        Interest { events: event.events, data: event.data, told: 0, seen: 0, disabled: false };
    let key = (fd, file);
    if operation == raw::EPOLL_CTL_ADD {
        call.add_interest(set)?;
    }
    let interests = &mut call.epoll(set).interests;
    match (operation, interests.contains_key(&key)) {
        (raw::EPOLL_CTL_ADD, true) => return Err(Errno::EXIST.into()),
        (raw::EPOLL_CTL_ADD, false) | (raw::EPOLL_CTL_MOD, true) => {
            interests.insert(key, interest);
        }
        (raw::EPOLL_CTL_DEL, true) => {
            interests.remove(&key);
        }
        (raw::EPOLL_CTL_MOD | raw::EPOLL_CTL_DEL, false) => return Err(Errno::NOENT.into()),
        _ => return Err(Errno::INVAL.into()),
    }
    call.kernel.note();
    Ok(0)
}

impl Call<'_> {
    fn epoll(&mut self, id: FileId) -> &mut Epoll {
        match &mut self.kernel.files.get_mut(id).kind {
            Kind::Epoll(epoll) => epoll,
            _ => unreachable!("the caller has looked"),
        }
    }

    /// True if a set waits for another, or for one that does.
    fn reaches(&mut self, from: FileId, to: FileId) -> bool {
        self.reached(from, false).into_iter().any(|(file, _)| file == to)
    }

    /// Makes room for one more file in a set.
    fn add_interest(&mut self, set: FileId) -> Result<(), Errno> {
        if self.epoll(set).interests.len() < MOST_INTERESTS {
            return Ok(());
        }
        let files = self.epoll(set).interests.keys().copied().collect::<Vec<_>>();
        let closed = files.into_iter().filter(|(_, file)| !self.kernel.files.has(*file));
        let closed: Vec<_> = closed.collect();
        closed.iter().for_each(|key| {
            self.epoll(set).interests.remove(key);
        });
        if closed.is_empty() { Err(Errno::NOSPC) } else { Ok(()) }
    }

    /// A number that changes whenever something may have happened to a file.
    fn activity(&mut self, id: FileId) -> u64 {
        match self.kernel.files.get(id).kind {
            Kind::Pipe { pipe } => self.kernel.files.pipes.get(pipe).moves,
            _ => self.kernel.happened,
        }
    }

    /// Forgets files that were closed, and tells what is ready, up to `most`.
    fn collect(&mut self, set: FileId, most: usize) -> (Vec<EpollEvent>, Option<Time>) {
        let (mut events, mut next) = (Vec::new(), None);
        let (interests, begin) = {
            let epoll = self.epoll(set);
            (epoll.interests.clone(), epoll.next)
        };
        let order = interests.range(begin..).chain(interests.range(..begin));
        for (key, interest) in order {
            if !self.kernel.files.has(key.1) {
                self.epoll(set).interests.remove(key);
                continue;
            }
            if interest.disabled {
                continue;
            }
            let ready = self.ready(key.1);
            next = earlier(next, ready.at);
            let wanted = interest.events & 0xffff | ALWAYS;
            let happened = ready.events & wanted;
            let is_edge = interest.events & raw::EPOLLET != 0;
            let moved = self.activity(key.1);
            let is_news = !is_edge || happened & !interest.told != 0 || moved != interest.seen;
            let entry = self.epoll(set).interests.get_mut(key).expect("it was not removed");
            if happened == 0 || !is_news || events.len() >= most {
                entry.told &= happened;
                continue;
            }
            (entry.told, entry.seen) = (happened, moved);
            entry.disabled = interest.events & raw::EPOLLONESHOT != 0;
            events.push(EpollEvent { events: happened, pad: 0, data: interest.data });
            if events.len() >= most {
                self.epoll(set).next = (key.0, key.1.saturating_add(1));
            }
        }
        (events, next)
    }
}

pub(super) fn epoll_pwait(call: &mut Call<'_>) -> Answer {
    let timeout = call.int(3);
    let duration = (timeout >= 0).then(|| timeout as u64 * 1_000_000);
    wait(call, duration)
}

pub(super) fn epoll_pwait2(call: &mut Call<'_>) -> Answer {
    let duration = call.duration(call.args[3])?;
    wait(call, duration)
}

fn wait(call: &mut Call<'_>, duration: Option<u64>) -> Answer {
    let set = call.file(0)?;
    let most = call.int(2);
    if most <= 0 || !matches!(call.kernel.files.get(set).kind, Kind::Epoll(_)) {
        return Err(Errno::INVAL.into());
    }
    call.will_write(call.args[1], most as u64 * 16)?;
    let until = call.deadline(duration);
    call.mask(call.args[4], call.args[5])?;
    let (events, next) = call.collect(set, most as usize);
    for (index, event) in (0..).zip(&events) {
        call.write(call.args[1] + 16 * index, event)?;
    }
    call.found(events.len() as u64, until, next)
}
