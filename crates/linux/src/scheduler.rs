//! Threads take turns, always in the same order, so that the same run gives the same result.

use kvrm_engine::{EngineError, FaultKind, RunControl, Stop};
use linux_raw_sys::general as raw;
use serde::{Deserialize, Serialize};

use crate::Errno;
use crate::answer::{Interrupted, Refusal};
use crate::calls;
use crate::clock::{SECOND, Time};
use crate::kernel::Kernel;
use crate::memory::Permissions;
use crate::moving::Reason;
use crate::process::{State, Status};
use crate::report::Ending;
use crate::resources::Limit;
use crate::signals::{Cause, Info, Signal};
use crate::thread::{Tid, Waiting};

/// Instructions of a turn where other threads wait for theirs.
const TURN: u64 = 50_000;
/// Instructions of a turn where no other thread can run.
pub(crate) const ALONE: u64 = 1_000_000;
/// Instructions that processes have to end when the first one has, and in real time nanoseconds.
const AFTERWARDS: u64 = SECOND;
/// Nanoseconds of the host's time between two looks whether the run was cancelled.
const LOOK: u64 = SECOND / 50;

/// `si_code` of faults.
const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;
const BUS_ADRALN: i32 = 1;
const BUS_ADRERR: i32 = 2;
const ILL_ILLOPC: i32 = 1;
const TRAP_BRKPT: i32 = 1;

/// What a run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A thread's machine, which has its registers, executes up to so many instructions; how that went is for
    /// [`Kernel::stopped`].
    Run {
        /// How many, at least one.
        instructions: u64,
    },
    /// Nothing: it has executed as many instructions as it should.
    Pause,
    /// Nothing more.
    End(Ending),
}

/// Whose turn it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Turns {
    /// Who had the last turn, or has one.
    pub(crate) last: Tid,
    pub(crate) current: Option<Turn>,
    /// When processes end that go on after the first: in instructions, and in time.
    ends_at: Option<(u64, Time)>,
}

/// A thread's turn.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) tid: Tid,
    /// Instructions that are left of it.
    pub(crate) left: u64,
    /// It was interrupted for a pause: nothing has happened since its last instruction.
    pub(crate) paused: bool,
}

impl Turns {
    /// Whose turn it is.
    pub(crate) fn current(&self) -> Option<Tid> {
        self.current.map(|turn| turn.tid)
    }
}

impl Kernel {
    /// Runs all processes until they have ended, a limit is hit, or the run is cancelled.
    pub fn run(&mut self, control: &RunControl) -> Result<Ending, EngineError> {
        let ending = self.run_until(u64::MAX, control)?;
        Ok(ending.expect("there is nothing to pause for"))
    }

    /// Runs until so many instructions were executed in all; `None` if it has not ended with that. To go on later is the same
    /// as not to have paused.
    pub fn run_until(
        &mut self,
        total: u64,
        control: &RunControl,
    ) -> Result<Option<Ending>, EngineError> {
        loop {
            match self.next(total, control)? {
                Next::Run { instructions } => {
                    let tid = self.turns.last;
                    let guest = &mut self.held_of(tid).memory.guest;
                    let (stop, executed) = guest.run(instructions, control)?;
                    self.stopped(stop, executed)?;
                }
                Next::Pause => return Ok(None),
                Next::End(ending) => return Ok(Some(ending)),
            }
        }
    }

    /// Finds out what is next in a run that pauses when so many instructions were executed in all, and prepares for it.
    pub fn next(&mut self, total: u64, control: &RunControl) -> Result<Next, EngineError> {
        loop {
            let left = total.saturating_sub(self.report.instructions);
            if left == 0 {
                return Ok(Next::Pause);
            }
            let Some(turn) = self.turns.current else {
                match self.begin_turn(control)? {
                    None => continue,
                    Some(ending) => return Ok(Next::End(self.end(ending))),
                }
            };
            match self.instructions(turn)? {
                0 => self.turns.current = None,
                most => {
                    let instructions = most.min(left);
                    self.turns.current = Some(Turn { paused: instructions < most, ..turn });
                    self.load(turn.tid)?;
                    self.note_uses(self.report.instructions);
                    return Ok(Next::Run { instructions });
                }
            }
        }
    }

    fn end(&mut self, ending: Ending) -> Ending {
        match ending {
            Ending::Finished => self.console.keep_terminal(),
            // The terminal will be as it was.
            Ending::Limited(_) | Ending::Deadlock | Ending::Cancelled => {}
        }
        ending
    }

    /// Gives somebody the next turn, or waits until that is possible. The end, if there is none.
    fn begin_turn(&mut self, control: &RunControl) -> Result<Option<Ending>, EngineError> {
        if control.is_cancelled() {
            return Ok(Some(Ending::Cancelled));
        }
        if self.first_status.is_some() {
            let (instructions, time) = (self.report.instructions, self.clock.now());
            let end = (instructions.saturating_add(AFTERWARDS), time.after(AFTERWARDS));
            self.turns.ends_at.get_or_insert(end);
        }
        let (last_instruction, last_time) =
            self.turns.ends_at.unwrap_or((u64::MAX, Time(u64::MAX)));
        // Virtual time passes at once, so that it takes nobody's.
        let is_late = self.clock.is_real() && self.clock.now() >= last_time;
        if self.threads.is_empty() || is_late || self.report.instructions >= last_instruction {
            return Ok(Some(Ending::Finished));
        }
        if self.report.instructions >= self.limits.instructions {
            self.report.hit(Limit::Instructions);
            return Ok(Some(Ending::Limited(Limit::Instructions)));
        }
        if self.report.has_hit(Limit::Output) {
            return Ok(Some(Ending::Limited(Limit::Output)));
        }
        self.pass_signals_of_the_host();
        self.sound_alarms();
        match self.next_thread(self.turns.last) {
            Some(tid) => {
                self.turns.last = tid;
                let left = if self.is_alone(tid) { ALONE } else { TURN };
                if self.thread(tid).waiting.is_none() || self.call_again(tid)? {
                    self.turns.current = Some(Turn { tid, left, paused: false });
                }
            }
            None if self.first_status.is_some() && !self.sleeps() => {
                return Ok(Some(Ending::Finished));
            }
            None => {
                if !self.idle(control) && !control.is_cancelled() {
                    return Ok(Some(Ending::Deadlock));
                }
            }
        }
        Ok(None)
    }

    /// The thread whose turn it is: the next one after `last` that can do something.
    fn next_thread(&self, last: Tid) -> Option<Tid> {
        let after = self.threads.range(last + 1..);
        let mut order = after.chain(self.threads.range(..=last)).map(|(tid, _)| *tid);
        order.find(|tid| self.can_run(*tid))
    }

    fn can_run(&self, tid: Tid) -> bool {
        let thread = &self.threads[&tid];
        let process = &self.processes[&thread.pid];
        if matches!(process.state, State::Stopped { .. }) {
            return false;
        }
        let Some(Waiting { wait, seen }) = thread.waiting else { return true };
        let is_due = wait.until.is_some_and(|until| until <= self.clock.now());
        is_due || seen != self.happened || self.is_interrupted(tid, wait.interrupted)
    }

    /// True if a signal ends the waiting of a thread.
    fn is_interrupted(&self, tid: Tid, interrupted: Interrupted) -> bool {
        match interrupted {
            Interrupted::Never => self.is_killed(tid),
            Interrupted::Restarts | Interrupted::Fails | Interrupted::Repeats => {
                self.has_signal(tid)
            }
        }
    }

    /// True if a thread waits for a time.
    fn sleeps(&self) -> bool {
        self.next_wake().is_some()
    }

    /// Nobody can do anything: waits for the next time or for input; false if nothing can ever happen.
    fn idle(&mut self, control: &RunControl) -> bool {
        let next = self.next_wake();
        if self.console.is_awaited() {
            // Who waits for both gets the time to answer, whatever time is the guest's.
            let patience = next.map(|next| next.0.saturating_sub(self.clock.now().0));
            if self.console.wait(patience, control) || next.is_none() {
                self.note();
                return true;
            }
        }
        match next {
            // Not for long at a time, because the run may be cancelled.
            Some(next) if self.clock.is_real() => {
                self.clock.sleep_until(next.min(self.clock.now().after(LOOK)));
            }
            Some(next) => self.clock.sleep_until(next),
            None => return self.clock.is_real() && self.wait_for_signals(control),
        }
        true
    }

    /// Moments that somebody waits for.
    fn times(&self) -> impl Iterator<Item = Time> + '_ {
        let waits = self.threads.values().filter_map(|thread| thread.waiting?.wait.until);
        let alarms = self.processes.values().filter(|process| !process.threads.is_empty());
        let alarms = alarms.flat_map(|process| {
            let timers = process.timers.values().filter_map(|timer| timer.alarm);
            process.alarm.into_iter().chain(timers).map(|alarm| alarm.at)
        });
        waits.chain(alarms)
    }

    /// The next moment at which a thread may do something. Timers go on for ever, also those that nobody hears.
    fn next_wake(&self) -> Option<Time> {
        let waits = self.threads.values().filter_map(|thread| thread.waiting?.wait.until);
        let alarms = self.processes.values().flat_map(|process| {
            let timers = process.timers.values().filter_map(|timer| timer.alarm.zip(timer.signal));
            let alarm = process.alarm.map(|alarm| (alarm, Signal::ALRM));
            let heard = move |signal: Signal| self.is_news(process, signal);
            let all = alarm.into_iter().chain(timers);
            all.filter(move |(_, signal)| heard(*signal)).map(|(alarm, _)| alarm.at)
        });
        waits.chain(alarms).min()
    }

    /// Instructions that a thread executes next; none, if its turn is over.
    fn instructions(&mut self, turn: Turn) -> Result<u64, EngineError> {
        let tid = turn.tid;
        if turn.left == 0 {
            return Ok(0);
        }
        let may_go_on = turn.paused
            || self.deliver(tid)? && !matches!(self.process_of(tid).state, State::Stopped { .. });
        if !may_go_on {
            return Ok(0);
        }
        let next = self.time_left(tid);
        let rest = self.limits.instructions.saturating_sub(self.report.instructions);
        Ok(turn.left.min(next).min(rest))
    }

    /// Takes note of why the machine stopped on which [`Next::Run`] was, and of how many instructions it has executed: serves
    /// a system call, sends a signal for a fault. `None` if it did not stop because the run was cancelled.
    pub fn stopped(&mut self, stop: Option<Stop>, executed: u64) -> Result<(), EngineError> {
        let Turn { tid, left, paused } = self.turns.current.expect("it is somebody's turn");
        let mut left = left - executed.min(left);
        let before = self.report.instructions;
        self.count(tid, executed);
        self.note_uses(before);
        self.save_registers(tid)?;
        if paused && stop == Some(Stop::MaxCycles) {
            self.turns.current = Some(Turn { tid, left, paused });
            return Ok(());
        }
        let goes_on = match stop {
            None => false,
            Some(Stop::MaxCycles) => {
                self.sync_before_call(tid);
                left > 0 && self.is_alone(tid)
            }
            Some(Stop::Syscall { .. }) => {
                left = left.saturating_sub(1);
                self.call(tid)?
            }
            Some(stop @ Stop::OutOfMemory { .. }) if self.can_move() => {
                match self.move_machine(tid, Reason::Room) {
                    Ok(()) => true,
                    Err(Refusal::Host(error)) => return Err(error),
                    Err(_) => self.fault(tid, stop)?,
                }
            }
            // The instruction is executed again.
            Some(stop) if self.mend(tid, stop)? => true,
            Some(stop) => {
                left = left.saturating_sub(1);
                self.fault(tid, stop)?
            }
        };
        let is_over = self.report.has_hit(Limit::Output);
        self.turns.current = None;
        if goes_on && !is_over && self.threads.contains_key(&tid) {
            self.sound_alarms();
            self.turns.current = Some(Turn { tid, left, paused: false });
        }
        Ok(())
    }

    /// Instructions of a thread until the next moment that somebody waits for. Those whose time has come wait for their
    /// turn.
    fn time_left(&self, tid: Tid) -> u64 {
        let now = self.clock.now();
        let later = self.times().filter(|time| *time > now).map(|time| time.0 - now.0);
        let process = &self.processes[&self.threads[&tid].pid];
        let busy = process.busy_alarms.iter().flatten();
        let busy = busy.map(|alarm| alarm.at.0.saturating_sub(process.executed.own).max(1));
        later.chain(busy).min().unwrap_or(u64::MAX)
    }

    fn is_alone(&self, tid: Tid) -> bool {
        self.threads.keys().all(|other| *other == tid || !self.can_run(*other))
    }

    pub(crate) fn count(&mut self, tid: Tid, instructions: u64) {
        self.clock.count(instructions);
        self.report.instructions += instructions;
        self.process_of(tid).executed.own += instructions;
    }

    /// Makes a call again that waits, or interrupts it; true if the thread goes on.
    fn call_again(&mut self, tid: Tid) -> Result<bool, EngineError> {
        let waiting = self.thread(tid).waiting.expect("the caller has looked");
        if self.is_interrupted(tid, waiting.wait.interrupted)
            && let Some(restarts) = self.next_restarts(tid)
        {
            let thread = self.thread(tid);
            thread.waiting = None;
            thread.futex = None;
            let fifo = thread.fifo.take();
            let again = match waiting.wait.interrupted {
                Interrupted::Restarts => restarts && thread.progress == 0,
                Interrupted::Repeats => true,
                Interrupted::Fails | Interrupted::Never => false,
            };
            if again {
                thread.registers.pc -= 4;
            } else {
                let until = thread.deadline;
                let progress = std::mem::take(&mut thread.progress);
                thread.deadline = None;
                thread.registers.x[0] = match progress {
                    0 => Errno::INTR.as_result(),
                    written => written,
                };
                calls::interrupted(self, tid, until)?;
            }
            fifo.into_iter().for_each(|(file, _)| self.close_file(file));
            return Ok(true);
        }
        self.call(tid)
    }

    /// Makes the system call in a thread's registers; true if the thread goes on.
    fn call(&mut self, tid: Tid) -> Result<bool, EngineError> {
        let answer = calls::serve(self, tid);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return match answer {
                Err(Refusal::Host(error)) => Err(error),
                _ => Ok(false),
            };
        };
        thread.waiting = None;
        let value = match answer {
            Ok(value) => value,
            Err(Refusal::Errno(errno)) => errno.as_result(),
            Err(Refusal::Host(error)) => return Err(error),
            Err(Refusal::Gone) => {
                (thread.deadline, thread.progress) = (None, 0);
                return Ok(true);
            }
            Err(Refusal::Wait(wait)) => {
                thread.waiting = Some(Waiting { wait, seen: self.happened });
                return Ok(false);
            }
        };
        (thread.deadline, thread.progress) = (None, 0);
        thread.registers.x[0] = value;
        Ok(true)
    }

    /// True if an instruction could not be executed because of something that the guest knows nothing of, and now can.
    fn mend(&mut self, tid: Tid, stop: Stop) -> Result<bool, EngineError> {
        match stop {
            Stop::Fault {
                kind: FaultKind::Read | FaultKind::Write | FaultKind::Fetch,
                address,
            } => match self.mend_access(tid, address) {
                Err(Refusal::Host(error)) => Err(error),
                mended => Ok(mended.unwrap_or(false)),
            },
            _ => Ok(false),
        }
    }

    /// An instruction could not be executed: its thread gets a signal. True if the thread goes on.
    fn fault(&mut self, tid: Tid, stop: Stop) -> Result<bool, EngineError> {
        let pc = self.thread(tid).registers.pc;
        let (signal, code, address) = match stop {
            Stop::Fault { kind: FaultKind::Unaligned, address } => {
                (Signal::BUS, BUS_ADRALN, address)
            }
            Stop::Fault { kind: FaultKind::Fetch, address } if !address.is_multiple_of(4) => {
                (Signal::BUS, BUS_ADRALN, address)
            }
            Stop::Fault { address, .. } => self.fault_at(tid, address),
            Stop::Breakpoint { .. } => (Signal::TRAP, TRAP_BRKPT, pc),
            Stop::Halt { .. } | Stop::ZeroWord | Stop::Undefined { .. } => {
                (Signal::ILL, ILL_ILLOPC, pc)
            }
            Stop::OutOfMemory { lacking } => {
                return Err(EngineError::DeviceFull(lacking.advice().into()));
            }
            Stop::Syscall { .. } | Stop::MaxCycles => unreachable!("not faults"),
        };
        self.force(tid, Info { signal, code, cause: Cause::Fault { address } });
        Ok(true)
    }

    fn fault_at(&mut self, tid: Tid, address: u64) -> (Signal, i32, u64) {
        let address = address & !(0xff << 56);
        match self.held_of(tid).memory.areas().find(address) {
            None => (Signal::SEGV, SEGV_MAPERR, address),
            Some((_, area)) if area.beyond && area.access != Permissions::NONE => {
                (Signal::BUS, BUS_ADRERR, address)
            }
            Some(_) => (Signal::SEGV, SEGV_ACCERR, address),
        }
    }

    /// Sends the signals of timers whose time has come.
    fn sound_alarms(&mut self) {
        let now = self.clock.now();
        let due: Vec<_> = self.processes.iter().filter(|(_, p)| !p.threads.is_empty()).collect();
        let due = due.into_iter().filter(|(_, process)| {
            let timers = process.timers.values().filter_map(|timer| timer.alarm);
            process.alarm.into_iter().chain(timers).any(|alarm| alarm.at <= now)
                || process.is_busy_alarm_due()
        });
        let due: Vec<u32> = due.map(|(pid, _)| *pid).collect();
        for pid in due {
            let process = self.processes.get_mut(&pid).expect("it was just found");
            let mut sent = process.busy_signals();
            if process.alarm.is_some_and(|alarm| alarm.at <= now) {
                process.alarm = process.alarm.and_then(|alarm| alarm.next(now).0);
                sent.push((None, Info::kernel(Signal::ALRM)));
            }
            for (id, timer) in &mut process.timers {
                let Some(alarm) = timer.alarm.filter(|alarm| alarm.at <= now) else { continue };
                let (next, missed) = alarm.next(now);
                (timer.alarm, timer.overrun) = (next, missed);
                let cause = Cause::Timer { id: *id, overrun: missed, value: timer.value };
                if let Some(signal) = timer.signal {
                    sent.push((timer.thread, Info { signal, code: raw::SI_TIMER, cause }));
                }
            }
            for (thread, info) in sent {
                match thread {
                    Some(tid) if self.threads.contains_key(&tid) => self.send_to_thread(tid, info),
                    _ => self.send(pid, info),
                };
            }
        }
    }

    /// Signals that the host was sent for the guest go to the process group in the foreground.
    fn pass_signals_of_the_host(&mut self) {
        while let Some(signal) = self.console.take_signal() {
            let group = self.foreground;
            let members = self.processes.iter().filter(|(_, process)| process.group == group);
            let members: Vec<u32> = members.map(|(pid, _)| *pid).collect();
            members.into_iter().for_each(|pid| {
                self.send(pid, Info::kernel(signal));
            });
        }
    }

    /// Waits for signals of the host; false if the run was cancelled.
    fn wait_for_signals(&mut self, control: &RunControl) -> bool {
        std::thread::sleep(std::time::Duration::from_millis(5));
        !control.is_cancelled()
    }

    /// Ends a process.
    pub(crate) fn end_by_signal(&mut self, pid: u32, signal: Signal) {
        self.end_process(pid, Status::Killed(signal));
    }
}

impl crate::process::Alarm {
    /// What is set once it has gone off, and how many times it was missed.
    pub(crate) fn next(self, now: Time) -> (Option<Self>, u32) {
        if self.interval == 0 {
            return (None, 0);
        }
        let missed = (now.0 - self.at.0) / self.interval;
        let at =
            Time(self.at.0.saturating_add(missed.saturating_add(1).saturating_mul(self.interval)));
        // At the end of time there is no next one.
        let next = (at > now).then_some(Self { at, ..self });
        (next, u32::try_from(missed).unwrap_or(u32::MAX))
    }
}
