//! Futexes, and what threads say of themselves.

use linux_raw_sys::general as raw;

use super::Call;
use crate::Errno;
use crate::answer::Answer;
use crate::clock::Time;
use crate::layout::TimeSpec;
use crate::thread::Tid;

/// Futex operations that wake or wait whoever the bits are.
const ANY: u32 = u32::MAX;

pub(super) fn futex(call: &mut Call<'_>) -> Answer {
    let [addr, operation, value, timeout, other, bits] = call.args;
    let command = operation as u32 & !(raw::FUTEX_PRIVATE_FLAG | raw::FUTEX_CLOCK_REALTIME);
    let realtime = operation as u32 & raw::FUTEX_CLOCK_REALTIME != 0;
    let tid = call.tid;
    match command {
        raw::FUTEX_WAIT => {
            let duration = call.duration(timeout)?;
            let until = call.deadline(duration);
            call.kernel.wait_for_futex(tid, (addr, None), value as u32, ANY, until)
        }
        raw::FUTEX_WAIT_BITSET => {
            let until = absolute(call, timeout, realtime)?;
            call.kernel.wait_for_futex(tid, (addr, None), value as u32, bits as u32, until)
        }
        raw::FUTEX_WAKE => call.kernel.wake_futex_checked(tid, addr, most(value), ANY),
        raw::FUTEX_WAKE_BITSET => {
            call.kernel.wake_futex_checked(tid, addr, most(value), bits as u32)
        }
        raw::FUTEX_REQUEUE => {
            let moved =
                call.kernel.requeue_futex(tid, [addr, other], most(value), most(timeout))?;
            Ok(moved.0)
        }
        raw::FUTEX_CMP_REQUEUE => {
            if call.memory().read_u32(addr)? != bits as u32 {
                return Err(Errno::AGAIN.into());
            }
            let moved =
                call.kernel.requeue_futex(tid, [addr, other], most(value), most(timeout))?;
            Ok(moved.0 + moved.1)
        }
        raw::FUTEX_WAIT_REQUEUE_PI => {
            let until = absolute(call, timeout, realtime)?;
            call.kernel.wait_for_futex(tid, (addr, Some(other)), value as u32, ANY, until)
        }
        raw::FUTEX_CMP_REQUEUE_PI => {
            if value as u32 != 1 {
                return Err(Errno::INVAL.into());
            }
            if call.memory().read_u32(addr)? != bits as u32 {
                return Err(Errno::AGAIN.into());
            }
            call.kernel.requeue_to_lock(tid, [addr, other], most(timeout))
        }
        raw::FUTEX_WAKE_OP => wake_op(call),
        // The first of them always has the time since 1970.
        raw::FUTEX_LOCK_PI | raw::FUTEX_LOCK_PI2 => {
            let until = absolute(call, timeout, realtime || command == raw::FUTEX_LOCK_PI)?;
            call.kernel.lock_futex(tid, addr, until)
        }
        raw::FUTEX_TRYLOCK_PI => match call.kernel.try_lock_futex(tid, addr)? {
            true => Ok(0),
            false => Err(Errno::AGAIN.into()),
        },
        raw::FUTEX_UNLOCK_PI => call.kernel.unlock_futex(tid, addr),
        _ => Err(Errno::NOSYS.into()),
    }
}

/// How many threads a C `int` means.
fn most(value: u64) -> u64 {
    (value as i32).max(0) as u64
}

fn absolute(call: &mut Call<'_>, addr: u64, realtime: bool) -> Answer<Option<Time>> {
    let clock = |call: &Call<'_>, time: u64| match realtime {
        true => call.kernel.clock.from_1970(time),
        false => call.kernel.clock.from_boot(time),
    };
    Ok(call.duration(addr)?.map(|time| clock(call, time)))
}

/// `FUTEX_WAKE_OP`: changes a word, wakes one futex, and another if the word was as asked.
fn wake_op(call: &mut Call<'_>) -> Answer {
    let [addr, _, value, value2, other, encoded] = call.args;
    let encoded = encoded as u32;
    let field = |at: u32| ((encoded >> at & 0xfff) << 20) as i32 >> 20;
    let shifts = encoded >> 31 != 0;
    let operand = if shifts { 1i32.wrapping_shl(field(12) as u32) } else { field(12) };
    let old = call.memory().read_u32(other)? as i32;
    let new = match encoded >> 28 & 7 {
        raw::FUTEX_OP_SET => operand,
        raw::FUTEX_OP_ADD => old.wrapping_add(operand),
        raw::FUTEX_OP_OR => old | operand,
        raw::FUTEX_OP_ANDN => old & !operand,
        raw::FUTEX_OP_XOR => old ^ operand,
        _ => return Err(Errno::NOSYS.into()),
    };
    let compared = field(0);
    let also = match encoded >> 24 & 15 {
        raw::FUTEX_OP_CMP_EQ => old == compared,
        raw::FUTEX_OP_CMP_NE => old != compared,
        raw::FUTEX_OP_CMP_LT => old < compared,
        raw::FUTEX_OP_CMP_LE => old <= compared,
        raw::FUTEX_OP_CMP_GT => old > compared,
        raw::FUTEX_OP_CMP_GE => old >= compared,
        _ => return Err(Errno::NOSYS.into()),
    };
    call.write(other, &new)?;
    let tid = call.tid;
    let woken = call.kernel.wake_futex_checked(tid, addr, most(value), ANY)?;
    let more = match also {
        true => call.kernel.wake_futex_checked(tid, other, most(value2), ANY)?,
        false => 0,
    };
    Ok(woken + more)
}

pub(super) fn set_robust_list(call: &mut Call<'_>) -> Answer {
    const HEAD_BYTES: u64 = 24;
    if call.args[1] != HEAD_BYTES {
        return Err(Errno::INVAL.into());
    }
    call.thread().robust_list = call.args[0];
    Ok(0)
}

pub(super) fn get_robust_list(call: &mut Call<'_>) -> Answer {
    let tid = if call.bits(0) == 0 { call.tid } else { call.bits(0) };
    let list = call.kernel.threads.get(&tid).ok_or(Errno::SRCH)?.robust_list;
    call.write(call.args[1], &list)?;
    call.write(call.args[2], &24u64)?;
    Ok(0)
}

pub(super) fn set_tid_address(call: &mut Call<'_>) -> Answer {
    call.thread().clear_tid = call.args[0];
    Ok(call.tid.into())
}

pub(super) fn gettid(call: &mut Call<'_>) -> Answer {
    Ok(call.tid.into())
}

/// The turn ends, so that others have theirs.
pub(super) fn sched_yield(call: &mut Call<'_>) -> Answer {
    if call.thread().waiting.is_some() {
        return Ok(0);
    }
    let now = call.kernel.clock.now();
    Err(call.wait_until(Some(now)))
}

/// There is one processor.
pub(super) fn sched_getaffinity(call: &mut Call<'_>) -> Answer {
    if call.args[1] < 8 || !call.args[1].is_multiple_of(8) {
        return Err(Errno::INVAL.into());
    }
    known_thread(call)?;
    call.write(call.args[2], &1u64)?;
    Ok(8)
}

pub(super) fn sched_setaffinity(call: &mut Call<'_>) -> Answer {
    known_thread(call)?;
    let first: u8 = call.read(call.args[2])?;
    if first & 1 == 0 { Err(Errno::INVAL.into()) } else { Ok(0) }
}

fn known_thread(call: &mut Call<'_>) -> Result<(), Errno> {
    let tid = call.bits(0);
    let known = tid == 0 || call.kernel.threads.contains_key(&tid);
    if known { Ok(()) } else { Err(Errno::SRCH) }
}

/// All threads have the policy `SCHED_OTHER`.
pub(super) fn sched_getscheduler(call: &mut Call<'_>) -> Answer {
    known_thread(call)?;
    Ok(raw::SCHED_NORMAL.into())
}

pub(super) fn sched_setscheduler(call: &mut Call<'_>) -> Answer {
    known_thread(call)?;
    let priority: u32 = call.read(call.args[2])?;
    match (call.bits(1), priority) {
        (raw::SCHED_NORMAL | raw::SCHED_BATCH | raw::SCHED_IDLE, 0) => Ok(0),
        (raw::SCHED_NORMAL | raw::SCHED_BATCH | raw::SCHED_IDLE, _) => Err(Errno::INVAL.into()),
        (raw::SCHED_FIFO | raw::SCHED_RR, 1..=99) => Err(Errno::PERM.into()),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(super) fn sched_getparam(call: &mut Call<'_>) -> Answer {
    known_thread(call)?;
    call.write(call.args[1], &0u32)?;
    Ok(0)
}

pub(super) fn sched_setparam(call: &mut Call<'_>) -> Answer {
    known_thread(call)?;
    let priority: u32 = call.read(call.args[1])?;
    if priority == 0 { Ok(0) } else { Err(Errno::INVAL.into()) }
}

fn priority_of(policy: u32, highest: bool) -> Answer {
    match policy {
        raw::SCHED_FIFO | raw::SCHED_RR => Ok(if highest { 99 } else { 1 }),
        raw::SCHED_NORMAL | raw::SCHED_BATCH | raw::SCHED_IDLE | raw::SCHED_DEADLINE => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(super) fn sched_get_priority_max(call: &mut Call<'_>) -> Answer {
    priority_of(call.bits(0), true)
}

pub(super) fn sched_get_priority_min(call: &mut Call<'_>) -> Answer {
    priority_of(call.bits(0), false)
}

/// How long a turn is where nobody waits for one, as Linux says it.
pub(super) fn sched_rr_get_interval(call: &mut Call<'_>) -> Answer {
    const TURN: u64 = 4_000_000;
    known_thread(call)?;
    call.write(call.args[1], &TimeSpec::from_nanoseconds(TURN))?;
    Ok(0)
}

pub(super) fn getcpu(call: &mut Call<'_>) -> Answer {
    call.write_optional(call.args[0], &0u32)?;
    call.write_optional(call.args[1], &0u32)?;
    Ok(0)
}

/// Threads that are meant by a process, a group or a user.
fn meant(call: &mut Call<'_>) -> Answer<Vec<Tid>> {
    let who = call.bits(1);
    let own = call.process().group;
    let is_in = |call: &Call<'_>, tid: Tid, group: u32| {
        let pid = call.kernel.threads[&tid].pid;
        call.kernel.processes.get(&pid).is_some_and(|process| process.group == group)
    };
    let all: Vec<Tid> = call.kernel.threads.keys().copied().collect();
    let found: Vec<Tid> = match (call.bits(0), who) {
        (raw::PRIO_PROCESS, 0) => vec![call.tid],
        (raw::PRIO_PROCESS, who) => all.into_iter().filter(|tid| *tid == who).collect(),
        (raw::PRIO_PGRP, who) => {
            let group = if who == 0 { own } else { who };
            all.into_iter().filter(|tid| is_in(call, *tid, group)).collect()
        }
        (raw::PRIO_USER, 0) => all,
        (raw::PRIO_USER, _) => Vec::new(),
        _ => return Err(Errno::INVAL.into()),
    };
    if found.is_empty() { Err(Errno::SRCH.into()) } else { Ok(found) }
}

/// The least nice of them, as the kernel counts: from 1 to 40.
pub(super) fn getpriority(call: &mut Call<'_>) -> Answer {
    let least = meant(call)?.into_iter().map(|tid| call.kernel.thread(tid).nice).min();
    Ok((20 - i64::from(least.unwrap_or(0))) as u64)
}

pub(super) fn setpriority(call: &mut Call<'_>) -> Answer {
    let nice = call.int(2).clamp(-20, 19) as i8;
    for tid in meant(call)? {
        call.kernel.thread(tid).nice = nice;
    }
    Ok(0)
}
