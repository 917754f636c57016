//! Sending signals and running their handlers.

use kvrm_a64::state::SP;
use kvrm_engine::EngineError;
use linux_raw_sys::general as raw;

use super::frame::{self, Interrupted};
use super::{Action, ByDefault, Cause, Info, Pending, Signal, SignalStack, Signals};
use crate::answer::Answer;
use crate::kernel::Kernel;
use crate::memory::Permissions;
use crate::process::{Pid, Process, State};
use crate::report::Crash;
use crate::thread::Tid;
use crate::{Errno, Refusal};

/// Signals that stop a process, which `SIGCONT` takes back.
const STOPS: Signals = Signals::of(&[Signal::STOP, Signal::TSTP, Signal::TTIN, Signal::TTOU]);

impl Kernel {
    /// Sends a signal to a process; false if its queue is full.
    pub(crate) fn send(&mut self, pid: Pid, info: Info) -> bool {
        self.sent(pid, info, |kernel| {
            &mut kernel.processes.get_mut(&pid).expect("it is there").pending
        })
    }

    /// Sends a signal to a thread; false if its queue is full.
    pub(crate) fn send_to_thread(&mut self, tid: Tid, info: Info) -> bool {
        let pid = self.thread(tid).pid;
        self.sent(pid, info, |kernel| &mut kernel.thread(tid).pending)
    }

    fn sent(&mut self, pid: Pid, info: Info, queue: impl Fn(&mut Kernel) -> &mut Pending) -> bool {
        let process = self.processes.get_mut(&pid).expect("the caller has looked");
        if matches!(process.state, State::Ended(_)) {
            return true;
        }
        if info.signal == Signal::CONT || info.signal == Signal::KILL {
            self.go_on(pid, info.signal == Signal::CONT);
        }
        if STOPS.has(info.signal) {
            self.forget_pending(pid, Signals::of(&[Signal::CONT]));
        }
        let process = self.processes.get_mut(&pid).expect("as above");
        let ignored = process.actions.ignores(info.signal);
        let blocked = process.threads.clone().into_iter().any(|tid| {
            // A signal that is ignored stays if somebody blocks it, because that may change.
            self.threads[&tid].mask.has(info.signal)
        });
        self.note();
        if ignored && !blocked {
            return true;
        }
        queue(self).add(info)
    }

    /// A stopped process goes on.
    fn go_on(&mut self, pid: Pid, continued: bool) {
        self.forget_pending(pid, STOPS);
        let process = self.processes.get_mut(&pid).expect("the caller has looked");
        if matches!(process.state, State::Stopped { .. }) {
            process.state = State::Running { continued };
            if continued {
                self.tell_parent(pid, raw::CLD_CONTINUED as i32, Signal::CONT.number().into());
            }
        }
    }

    fn forget_pending(&mut self, pid: Pid, signals: Signals) {
        let process = self.processes.get_mut(&pid).expect("the caller has looked");
        process.pending.remove(signals);
        for tid in process.threads.clone() {
            self.thread(tid).pending.remove(signals);
        }
    }

    /// A signal that cannot wait, because the thread cannot go on.
    pub(crate) fn force(&mut self, tid: Tid, info: Info) {
        self.note();
        let thread = self.thread(tid);
        let blocked = thread.mask.has(info.signal);
        let process = self.process_of(tid);
        let action = process.actions.get(info.signal);
        if blocked || action.handler == Action::IGNORE {
            process.actions.set(info.signal, Action::none());
            let mask = Signals::of(&[info.signal]);
            self.thread(tid).mask = self.thread(tid).mask.without(mask);
        }
        self.thread(tid).pending.add(info);
    }

    /// Those that can be delivered to a thread.
    fn deliverable(&self, tid: Tid) -> Signals {
        let thread = &self.threads[&tid];
        let process = &self.processes[&thread.pid];
        thread.pending.signals().or(process.pending.signals()).without(thread.mask)
    }

    /// True if a thread has a signal that does something.
    pub(crate) fn has_signal(&self, tid: Tid) -> bool {
        let deliverable = self.deliverable(tid);
        if deliverable == Signals::NONE {
            return false;
        }
        let actions = &self.processes[&self.threads[&tid].pid].actions;
        let signals = (1..=64).filter_map(Signal::from_number);
        signals.into_iter().any(|signal| deliverable.has(signal) && !actions.ignores(signal))
    }

    /// True if a thread is to end.
    pub(crate) fn is_killed(&self, tid: Tid) -> bool {
        self.deliverable(tid).has(Signal::KILL)
    }

    /// True if a signal would change something: its process does not have it already, and does not ignore it.
    pub(crate) fn is_news(&self, process: &Process, signal: Signal) -> bool {
        let threads = || process.threads.iter().map(|tid| &self.threads[tid]);
        let is_there = process.pending.signals().has(signal)
            || threads().any(|thread| thread.pending.signals().has(signal));
        let counts =
            !process.actions.ignores(signal) || threads().any(|thread| thread.mask.has(signal));
        !process.threads.is_empty() && !is_there && counts
    }

    /// Whether calls are made again after the handler of the next signal; `None` if it has no handler and the process
    /// lives.
    pub(crate) fn next_restarts(&self, tid: Tid) -> Option<bool> {
        let deliverable = self.deliverable(tid);
        let actions = &self.processes[&self.threads[&tid].pid].actions;
        let signals = (1..=64).filter_map(Signal::from_number);
        let next = signals.into_iter().find(|s| deliverable.has(*s) && !actions.ignores(*s))?;
        let action = actions.get(next);
        match action.handler {
            Action::DEFAULT => {
                Some(matches!(next.by_default(), ByDefault::Stop | ByDefault::Continue))
            }
            _ => Some(action.has(raw::SA_RESTART)),
        }
    }

    /// Delivers what is pending; false if the thread has ended.
    pub(crate) fn deliver(&mut self, tid: Tid) -> Result<bool, EngineError> {
        loop {
            let deliverable = self.deliverable(tid);
            if deliverable == Signals::NONE {
                break;
            }
            let thread = self.thread(tid);
            let own = thread.pending.take(deliverable);
            let Some(info) = own.or_else(|| self.process_of(tid).pending.take(deliverable)) else {
                break;
            };
            let action = self.process_of(tid).actions.get(info.signal);
            match action.handler {
                Action::IGNORE => {}
                Action::DEFAULT => {
                    if !self.act_by_default(tid, &info) {
                        return Ok(false);
                    }
                    if matches!(self.process_of(tid).state, State::Stopped { .. }) {
                        break;
                    }
                }
                _ => match self.enter_handler(tid, info, action) {
                    Ok(()) => {}
                    Err(Refusal::Host(error)) => return Err(error),
                    Err(_) => {
                        let pid = self.thread(tid).pid;
                        self.note_crash(tid, &Info::kernel(Signal::SEGV));
                        self.end_by_signal(pid, Signal::SEGV);
                        return Ok(false);
                    }
                },
            }
        }
        if let Some(mask) = self.thread(tid).old_mask.take() {
            self.thread(tid).mask = mask;
        }
        Ok(true)
    }

    /// False if the process ends.
    fn act_by_default(&mut self, tid: Tid, info: &Info) -> bool {
        let pid = self.thread(tid).pid;
        match info.signal.by_default() {
            ByDefault::Ignore | ByDefault::Continue => true,
            ByDefault::Stop => {
                let process = self.process_of(tid);
                process.state = State::Stopped { signal: info.signal, reported: false };
                self.tell_parent(pid, raw::CLD_STOPPED as i32, info.signal.number().into());
                true
            }
            ByDefault::Terminate | ByDefault::Dump => {
                self.note_crash(tid, info);
                self.end_by_signal(pid, info.signal);
                false
            }
        }
    }

    /// Remembers what the first process died of.
    fn note_crash(&mut self, tid: Tid, info: &Info) {
        let pid = self.thread(tid).pid;
        if pid != crate::kernel::FIRST {
            return;
        }
        let address = match info.cause {
            Cause::Fault { address } => Some(address),
            _ => None,
        };
        let pc = self.thread(tid).registers.pc;
        let symbol = self.symbol_at(tid, pc);
        self.report.crash = Some(Crash { signal: info.signal, pc, address, symbol });
    }

    /// Makes a thread go on in a handler.
    fn enter_handler(&mut self, tid: Tid, info: Info, action: Action) -> Answer<()> {
        self.save_vectors(tid)?;
        let thread = self.thread(tid);
        let mask = thread.old_mask.take().unwrap_or(thread.mask);
        let interrupted = Interrupted {
            registers: thread.registers,
            vectors: thread.vectors,
            mask,
            stack: thread.stack,
        };
        let sp = interrupted.registers.x[SP as usize];
        let switches = action.has(raw::SA_ONSTACK) && thread.stack.len > 0 && !thread.stack.has(sp);
        let SignalStack { start, len, .. } = thread.stack;
        let top = if switches { start.wrapping_add(len) } else { sp };
        let at = frame::room_below(top);
        // At its end, the handler would begin again at its beginning, for ever.
        if thread.stack.has(sp) && at < start {
            return Err(Errno::FAULT.into());
        }
        let fault = match info.cause {
            Cause::Fault { address } => address,
            _ => 0,
        };
        let bytes = frame::build(&interrupted, &info, fault);
        let memory = &mut self.held_of(tid).memory;
        memory.allows(at, bytes.len() as u64, Permissions::WRITE)?;
        memory.guest.write(at, &bytes)?;
        let process = self.process_of(tid);
        let back = match action.has(raw::SA_RESTORER) {
            true => action.restorer,
            false => process.program.signal_return,
        };
        if action.has(raw::SA_RESETHAND) {
            process.actions.set(info.signal, Action::none());
        }
        let thread = self.thread(tid);
        if thread.stack.disarms {
            thread.stack = SignalStack::default();
        }
        thread.mask = thread.mask.or(action.mask);
        if !action.has(raw::SA_NODEFER) {
            thread.mask.insert(info.signal);
        }
        let registers = &mut thread.registers;
        registers.x[0] = info.signal.number().into();
        if action.has(raw::SA_SIGINFO) {
            registers.x[1] = at;
            registers.x[2] = at + frame::CONTEXT as u64;
        }
        registers.x[29] = at + bytes.len() as u64 - 16;
        registers.x[30] = back;
        registers.x[SP as usize] = at;
        registers.pc = action.handler;
        registers.take_exception();
        Ok(())
    }

    /// `rt_sigreturn`: goes on where the handler interrupted it.
    pub(crate) fn leave_handler(&mut self, tid: Tid) -> Answer {
        let registers = self.thread(tid).registers;
        let mut bytes = vec![0; frame::PARSED];
        let found = self.held_of(tid).memory.read(registers.x[SP as usize], &mut bytes);
        let parsed = match found {
            Ok(()) => frame::parse(&bytes, &registers),
            Err(Refusal::Host(error)) => return Err(Refusal::Host(error)),
            Err(_) => None,
        };
        let Some(interrupted) = parsed else {
            self.force(tid, Info::kernel(Signal::SEGV));
            return Err(Refusal::Gone);
        };
        self.save_vectors(tid)?;
        let thread = self.thread(tid);
        thread.registers = interrupted.registers;
        thread.vectors = interrupted.vectors;
        thread.mask = interrupted.mask;
        thread.stack = interrupted.stack;
        Err(Refusal::Gone)
    }

    /// Tells the parent of a process what became of it.
    pub(crate) fn tell_parent(&mut self, pid: Pid, code: i32, status: i32) {
        let process = &self.processes[&pid];
        let parent = process.parent;
        let signal = match &process.state {
            State::Ended(_) => process.exit_signal,
            State::Running { .. } | State::Stopped { .. } => Some(Signal::CHLD),
        };
        self.note();
        let Some(found) = self.processes.get(&parent) else { return };
        let is_stop = code == raw::CLD_STOPPED as i32 || code == raw::CLD_CONTINUED as i32;
        if is_stop && found.actions.get(Signal::CHLD).has(raw::SA_NOCLDSTOP) {
            return;
        }
        if let Some(signal) = signal {
            self.send(parent, Info { signal, code, cause: Cause::Child { pid, status } });
        }
    }

    /// Sets the mask for as long as a call waits.
    pub(crate) fn mask_while_waiting(&mut self, tid: Tid, mask: Signals) {
        let thread = self.thread(tid);
        if thread.old_mask.is_none() {
            thread.old_mask = Some(thread.mask);
        }
        thread.mask = mask;
    }

    /// Restores it once the call has an answer.
    pub(crate) fn unmask(&mut self, tid: Tid) {
        let thread = self.thread(tid);
        if let Some(mask) = thread.old_mask.take() {
            thread.mask = mask;
        }
    }

    /// Forgets a signal that the process ignores from now on.
    pub(crate) fn forget_ignored(&mut self, tid: Tid, signal: Signal) {
        let pid = self.thread(tid).pid;
        self.forget_pending(pid, Signals::of(&[signal]));
    }

    /// Takes a signal out of the queues of a thread and its process.
    pub(crate) fn take_pending(&mut self, tid: Tid, among: Signals) -> Option<Info> {
        let own = self.thread(tid).pending.take(among);
        own.or_else(|| self.process_of(tid).pending.take(among))
    }

    /// Checks a number of a signal from a guest; 0 is none.
    pub(crate) fn signal_argument(number: u64) -> Result<Option<Signal>, Errno> {
        match number {
            0 => Ok(None),
            number => Signal::from_number(number).ok_or(Errno::INVAL).map(Some),
        }
    }
}
