//! Clocks, sleeping and timers.

use linux_raw_sys::general as raw;

use super::Call;
use crate::Errno;
use crate::answer::Answer;
use crate::clock::{SECOND, Time};
use crate::layout::{IntervalSpec, IntervalVal, ProcessTimes, SigEvent, TimeSpec, TimeVal};
use crate::process::{Alarm, Timer};
use crate::signals::Signal;

/// Ticks of `times` in a second.
const TICKS: u64 = 100;
/// Timers of a process, at the most.
const MOST_TIMERS: usize = 1024;

/// What a clock counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Since1970,
    SinceBoot,
    Process,
    Thread,
}

fn which(clock: u32) -> Result<Which, Errno> {
    match clock {
        raw::CLOCK_REALTIME
        | raw::CLOCK_REALTIME_COARSE
        | raw::CLOCK_TAI
        | raw::CLOCK_REALTIME_ALARM => Ok(Which::Since1970),
        raw::CLOCK_MONOTONIC
        | raw::CLOCK_MONOTONIC_RAW
        | raw::CLOCK_MONOTONIC_COARSE
        | raw::CLOCK_BOOTTIME
        | raw::CLOCK_BOOTTIME_ALARM => Ok(Which::SinceBoot),
        raw::CLOCK_PROCESS_CPUTIME_ID => Ok(Which::Process),
        raw::CLOCK_THREAD_CPUTIME_ID => Ok(Which::Thread),
        _ => Err(Errno::INVAL),
    }
}

impl Call<'_> {
    /// The clock of the first argument. Those of processes and threads are computed from their numbers; only those of the
    /// caller's own process are supported.
    fn which(&mut self) -> Result<Which, Errno> {
        const PROCESS: i32 = 2;
        const THREAD: i32 = 6;
        let clock = self.int(0);
        if clock >= 0 {
            return which(clock as u32);
        }
        let (number, kind) = (!(clock >> 3) as u32, clock & 7);
        let is_own = number == 0 || number == self.pid();
        let is_of_own = number == 0 || self.process().threads.contains(&number);
        match kind {
            PROCESS if is_own => Ok(Which::Process),
            THREAD if is_of_own => Ok(Which::Thread),
            _ => Err(Errno::INVAL),
        }
    }

    fn now(&mut self, which: Which) -> u64 {
        let now = self.kernel.clock.now();
        match which {
            Which::Since1970 => self.kernel.clock.since_1970(now),
            Which::SinceBoot => self.kernel.clock.since_boot(now),
            // Instructions of a process are not counted by thread.
            Which::Process | Which::Thread => self.process().executed.own,
        }
    }

    /// The moment that an absolute time means.
    fn moment(&mut self, which: Which, nanoseconds: u64) -> Time {
        match which {
            Which::Since1970 => self.kernel.clock.from_1970(nanoseconds),
            Which::SinceBoot => self.kernel.clock.from_boot(nanoseconds),
            Which::Process | Which::Thread => {
                let left = nanoseconds.saturating_sub(self.process().executed.own);
                self.kernel.clock.now().after(left)
            }
        }
    }
}

pub(super) fn clock_gettime(call: &mut Call<'_>) -> Answer {
    let which = call.which()?;
    let now = TimeSpec::from_nanoseconds(call.now(which));
    call.write(call.args[1], &now)?;
    Ok(0)
}

pub(super) fn clock_getres(call: &mut Call<'_>) -> Answer {
    call.which()?;
    call.write_optional(call.args[1], &TimeSpec::from_nanoseconds(1))?;
    Ok(0)
}

/// The guest's clocks are nobody's to set.
pub(super) fn clock_settime(call: &mut Call<'_>) -> Answer {
    call.which()?;
    Err(Errno::PERM.into())
}

pub(super) fn gettimeofday(call: &mut Call<'_>) -> Answer {
    let now = call.now(Which::Since1970);
    call.write_optional(call.args[0], &TimeVal::from_nanoseconds(now))?;
    call.write_optional(call.args[1], &[0u32; 2])?;
    Ok(0)
}

pub(super) fn nanosleep(call: &mut Call<'_>) -> Answer {
    let duration = call.duration(call.args[0])?.ok_or(Errno::FAULT)?;
    sleep(call, duration)
}

pub(super) fn clock_nanosleep(call: &mut Call<'_>) -> Answer {
    let which = call.which()?;
    let duration = call.duration(call.args[2])?.ok_or(Errno::FAULT)?;
    if which == Which::Thread {
        return Err(Errno::INVAL.into());
    }
    if call.bits(1) & raw::TIMER_ABSTIME == 0 {
        return sleep(call, duration);
    }
    let until = call.moment(which, duration);
    // Who sleeps executes nothing: the moment must not move on with the time.
    let until = *call.thread().deadline.get_or_insert(until);
    if call.is_over(Some(until)) { Ok(0) } else { Err(call.wait_until(Some(until))) }
}

/// Sleeps. What is left if a signal comes is written by [`write_rest`].
fn sleep(call: &mut Call<'_>, duration: u64) -> Answer {
    let until = call.deadline(Some(duration));
    if call.is_over(until) { Ok(0) } else { Err(call.wait_until(until)) }
}

/// Writes how long a sleep that was interrupted would have gone on.
pub(super) fn write_rest(call: &mut Call<'_>, until: Time, addr: u64) -> Answer<()> {
    let left = until.0.saturating_sub(call.kernel.clock.now().0);
    call.write_optional(addr, &TimeSpec::from_nanoseconds(left))
}

pub(super) fn times(call: &mut Call<'_>) -> Answer {
    let executed = call.process().executed;
    let ticks = |nanoseconds: u64| (nanoseconds / (SECOND / TICKS)) as i64;
    let times = ProcessTimes {
        user: ticks(executed.own),
        child_user: ticks(executed.children),
        ..ProcessTimes::default()
    };
    call.write_optional(call.args[0], &times)?;
    Ok(ticks(call.now(Which::SinceBoot)) as u64)
}

// Timers.

fn read_interval(value: TimeVal) -> Result<u64, Errno> {
    let fits = (0..1_000_000).contains(&value.microseconds);
    value.nanoseconds().filter(|_| fits).ok_or(Errno::INVAL)
}

/// The alarm of `getitimer` and `setitimer`, and what it counts now.
fn interval_timer<'c>(call: &'c mut Call<'_>) -> Result<(&'c mut Option<Alarm>, Time), Errno> {
    let now = call.kernel.clock.now();
    let which = call.bits(0);
    let process = call.process();
    let busy = Time(process.executed.own);
    let [virtual_alarm, profiling_alarm] = &mut process.busy_alarms;
    match which {
        raw::ITIMER_REAL => Ok((&mut process.alarm, now)),
        raw::ITIMER_VIRTUAL => Ok((virtual_alarm, busy)),
        raw::ITIMER_PROF => Ok((profiling_alarm, busy)),
        _ => Err(Errno::INVAL),
    }
}

pub(super) fn getitimer(call: &mut Call<'_>) -> Answer {
    let (alarm, now) = interval_timer(call)?;
    let value = interval_val(*alarm, now);
    call.write(call.args[1], &value)?;
    Ok(0)
}

fn interval_val(alarm: Option<Alarm>, now: Time) -> IntervalVal {
    let left = alarm.map_or(0, |alarm| alarm.at.0.saturating_sub(now.0).max(1000));
    let interval = alarm.map_or(0, |alarm| alarm.interval);
    IntervalVal {
        interval: TimeVal::from_nanoseconds(interval),
        value: TimeVal::from_nanoseconds(left),
    }
}

pub(super) fn setitimer(call: &mut Call<'_>) -> Answer {
    let new: IntervalVal = call.read_optional(call.args[1])?.unwrap_or_default();
    let (interval, value) = (read_interval(new.interval)?, read_interval(new.value)?);
    let (alarm, now) = interval_timer(call)?;
    let old = interval_val(*alarm, now);
    *alarm = (value > 0).then(|| Alarm { at: now.after(value), interval });
    call.write_optional(call.args[2], &old)?;
    Ok(0)
}

pub(super) fn timer_create(call: &mut Call<'_>) -> Answer {
    const SIGEV_SIGNAL: i32 = 0;
    const SIGEV_NONE: i32 = 1;
    const SIGEV_THREAD_ID: i32 = 4;
    let which = call.which()?;
    if !matches!(which, Which::Since1970 | Which::SinceBoot) {
        return Err(Errno::OPNOTSUPP.into());
    }
    let timers = &call.process().timers;
    if timers.len() >= MOST_TIMERS {
        return Err(Errno::AGAIN.into());
    }
    let id = (0..).find(|id| !timers.contains_key(id)).expect("few are taken");
    let default =
        SigEvent { signal: Signal::ALRM.number().into(), value: id.into(), ..SigEvent::default() };
    let event: SigEvent = call.read_optional(call.args[1])?.unwrap_or(default);
    let signal = Signal::from_number(event.signal as u64);
    let (signal, thread) = match event.notify {
        SIGEV_NONE => (None, None),
        SIGEV_SIGNAL => (Some(signal.ok_or(Errno::INVAL)?), None),
        SIGEV_THREAD_ID => {
            let tid = event.thread as u32;
            let is_own = call.process().threads.contains(&tid);
            (Some(signal.filter(|_| is_own).ok_or(Errno::INVAL)?), Some(tid))
        }
        _ => return Err(Errno::INVAL.into()),
    };
    let since_1970 = which == Which::Since1970;
    call.write(call.args[2], &id)?;
    let timer = Timer { alarm: None, since_1970, signal, thread, value: event.value, overrun: 0 };
    call.process().timers.insert(id, timer);
    Ok(0)
}

impl Call<'_> {
    fn timer(&mut self) -> Result<Timer, Errno> {
        let id = self.args[0] as u32;
        self.process().timers.get(&id).copied().ok_or(Errno::INVAL)
    }
}

fn interval_spec(alarm: Option<Alarm>, now: Time) -> IntervalSpec {
    let left = alarm.map_or(0, |alarm| alarm.at.0.saturating_sub(now.0).max(1));
    let interval = alarm.map_or(0, |alarm| alarm.interval);
    IntervalSpec {
        interval: TimeSpec::from_nanoseconds(interval),
        value: TimeSpec::from_nanoseconds(left),
    }
}

/// What a timer is set to: the new one, and what it says of the old one.
pub(super) fn new_alarm(
    call: &mut Call<'_>,
    spec: &IntervalSpec,
    absolute: bool,
    since_1970: bool,
) -> Result<Option<Alarm>, Errno> {
    let value = spec.value.nanoseconds().ok_or(Errno::INVAL)?;
    let interval = spec.interval.nanoseconds().ok_or(Errno::INVAL)?;
    let which = if since_1970 { Which::Since1970 } else { Which::SinceBoot };
    let at = match absolute {
        true => call.moment(which, value),
        false => call.kernel.clock.now().after(value),
    };
    Ok((value > 0).then_some(Alarm { at, interval }))
}

/// What is left of an alarm, for a guest.
pub(super) fn alarm_left(call: &Call<'_>, alarm: Option<Alarm>) -> IntervalSpec {
    interval_spec(alarm, call.kernel.clock.now())
}

pub(super) fn timer_settime(call: &mut Call<'_>) -> Answer {
    let timer = call.timer()?;
    let new: IntervalSpec = call.read(call.args[2])?;
    let absolute = call.bits(1) & raw::TIMER_ABSTIME != 0;
    let alarm = new_alarm(call, &new, absolute, timer.since_1970)?;
    let old = alarm_left(call, timer.alarm);
    call.write_optional(call.args[3], &old)?;
    let id = call.args[0] as u32;
    call.process().timers.insert(id, Timer { alarm, overrun: 0, ..timer });
    Ok(0)
}

pub(super) fn timer_gettime(call: &mut Call<'_>) -> Answer {
    let timer = call.timer()?;
    let left = alarm_left(call, timer.alarm);
    call.write(call.args[1], &left)?;
    Ok(0)
}

pub(super) fn timer_getoverrun(call: &mut Call<'_>) -> Answer {
    Ok(call.timer()?.overrun.into())
}

pub(super) fn timer_delete(call: &mut Call<'_>) -> Answer {
    call.timer()?;
    let id = call.args[0] as u32;
    call.process().timers.remove(&id);
    Ok(0)
}
