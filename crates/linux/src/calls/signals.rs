//! Signals.

use linux_raw_sys::general as raw;

use super::Call;
use crate::answer::Answer;
use crate::kernel::Kernel;
use crate::layout::{SigAction, SigStack};
use crate::process::State;
use crate::signals::{Action, Cause, Info, Signal, SignalStack, Signals, stack_flags};
use crate::{Errno, Refusal};

/// Bytes of a guest's set of signals.
const SET_BYTES: u64 = 8;
/// The smallest stack for handlers.
const LEAST_STACK: u64 = 5120;

pub(super) fn rt_sigaction(call: &mut Call<'_>) -> Answer {
    let signal = Signal::from_number(call.args[0]).ok_or(Errno::INVAL)?;
    if call.args[3] != SET_BYTES {
        return Err(Errno::INVAL.into());
    }
    let new: Option<SigAction> = call.read_optional(call.args[1])?;
    if new.is_some() && signal.is_absolute() {
        return Err(Errno::INVAL.into());
    }
    let Action { handler, flags, restorer, mask } = call.process().actions.get(signal);
    let old = SigAction { handler, flags, restorer, mask: mask.bits() };
    call.write_optional(call.args[2], &old)?;
    if let Some(SigAction { handler, flags, restorer, mask }) = new {
        let mask = Signals::blockable(mask);
        call.process().actions.set(signal, Action { handler, flags, restorer, mask });
        if call.process().actions.ignores(signal) {
            call.kernel.forget_ignored(call.tid, signal);
        }
    }
    Ok(0)
}

pub(super) fn rt_sigprocmask(call: &mut Call<'_>) -> Answer {
    if call.args[3] != SET_BYTES {
        return Err(Errno::INVAL.into());
    }
    let new: Option<u64> = call.read_optional(call.args[1])?;
    let old = call.thread().mask;
    if let Some(bits) = new {
        let set = Signals::blockable(bits);
        call.thread().mask = match call.bits(0) {
            raw::SIG_BLOCK => old.or(set),
            raw::SIG_UNBLOCK => old.without(set),
            raw::SIG_SETMASK => set,
            _ => return Err(Errno::INVAL.into()),
        };
    }
    call.write_optional(call.args[2], &old.bits())?;
    Ok(0)
}

pub(super) fn rt_sigpending(call: &mut Call<'_>) -> Answer {
    if call.args[1] > SET_BYTES {
        return Err(Errno::INVAL.into());
    }
    let own = call.thread().pending.signals();
    let mask = call.thread().mask;
    let all = own.or(call.process().pending.signals());
    let blocked = all.bits() & mask.bits();
    call.write(call.args[0], &blocked)?;
    Ok(0)
}

pub(super) fn rt_sigsuspend(call: &mut Call<'_>) -> Answer {
    if call.args[1] != SET_BYTES {
        return Err(Errno::INVAL.into());
    }
    let bits: u64 = call.read(call.args[0])?;
    call.kernel.mask_while_waiting(call.tid, Signals::blockable(bits));
    Err(call.wait_until(None))
}

pub(super) fn rt_sigtimedwait(call: &mut Call<'_>) -> Answer {
    if call.args[3] != SET_BYTES {
        return Err(Errno::INVAL.into());
    }
    let bits: u64 = call.read(call.args[0])?;
    let timeout = call.duration(call.args[2])?;
    let until = call.deadline(timeout);
    let among = Signals::blockable(bits);
    if let Some(info) = call.kernel.take_pending(call.tid, among) {
        if call.args[1] != 0 {
            call.write_bytes(call.args[1], &info.bytes())?;
        }
        return Ok(info.signal.number().into());
    }
    if call.is_over(until) { Err(Errno::AGAIN.into()) } else { Err(call.wait_until(until)) }
}

pub(super) fn rt_sigreturn(call: &mut Call<'_>) -> Answer {
    call.kernel.leave_handler(call.tid)
}

pub(super) fn sigaltstack(call: &mut Call<'_>) -> Answer {
    let sp = call.thread().registers.x[kvrm_a64::state::SP as usize];
    let old = call.thread().stack;
    let new: Option<SigStack> = call.read_optional(call.args[0])?;
    let told = SigStack { start: old.start, flags: stack_flags(&old, sp), pad: 0, len: old.len };
    call.write_optional(call.args[1], &told)?;
    let Some(SigStack { start, flags, len, .. }) = new else { return Ok(0) };
    if old.has(sp) {
        return Err(Errno::PERM.into());
    }
    let disarms = flags & raw::SS_AUTODISARM != 0;
    call.thread().stack = match flags & !raw::SS_AUTODISARM {
        raw::SS_DISABLE => SignalStack::default(),
        0 | raw::SS_ONSTACK if len < LEAST_STACK => return Err(Errno::NOMEM.into()),
        0 | raw::SS_ONSTACK => SignalStack { start, len, disarms },
        _ => return Err(Errno::INVAL.into()),
    };
    Ok(0)
}

pub(super) fn kill(call: &mut Call<'_>) -> Answer {
    let signal = Kernel::signal_argument(call.args[1] as u32 as u64)?;
    let own = call.pid();
    let own_group = call.process().group;
    let to = call.int(0);
    let is_meant = |pid: u32, group: u32| match to {
        0 => group == own_group,
        -1 => pid != own,
        to if to > 0 => pid == to as u32,
        to => group == to.unsigned_abs(),
    };
    let all = call.kernel.processes.iter();
    let meant: Vec<u32> =
        all.filter(|(pid, process)| is_meant(**pid, process.group)).map(|(pid, _)| *pid).collect();
    if meant.is_empty() {
        return Err(Errno::SRCH.into());
    }
    if let Some(signal) = signal {
        meant.into_iter().for_each(|pid| {
            call.kernel.send(pid, Info::sent(signal, own));
        });
    }
    Ok(0)
}

pub(super) fn tkill(call: &mut Call<'_>) -> Answer {
    send_to_thread(call, None, call.args[0], call.args[1])
}

pub(super) fn tgkill(call: &mut Call<'_>) -> Answer {
    send_to_thread(call, Some(call.bits(0)), call.args[1], call.args[2])
}

fn send_to_thread(call: &mut Call<'_>, pid: Option<u32>, tid: u64, signal: u64) -> Answer {
    let tid = tid as u32;
    if tid as i32 <= 0 || pid.is_some_and(|pid| pid as i32 <= 0) {
        return Err(Errno::INVAL.into());
    }
    let signal = Kernel::signal_argument(signal as u32 as u64)?;
    let thread = call.kernel.threads.get(&tid).ok_or(Errno::SRCH)?;
    if pid.is_some_and(|pid| pid != thread.pid) {
        return Err(Errno::SRCH.into());
    }
    let Some(signal) = signal else { return Ok(0) };
    let cause = Cause::Sent { pid: call.pid() };
    match call.kernel.send_to_thread(tid, Info { signal, code: raw::SI_TKILL, cause }) {
        true => Ok(0),
        false => Err(Errno::AGAIN.into()),
    }
}

pub(super) fn rt_sigqueueinfo(call: &mut Call<'_>) -> Answer {
    let pid = call.bits(0);
    let info = queued(call, call.args[1], call.args[2])?;
    let process = call.kernel.processes.get(&pid).ok_or(Errno::SRCH)?;
    if matches!(process.state, State::Ended(_)) {
        return Err(Errno::SRCH.into());
    }
    let Some(info) = info else { return Ok(0) };
    if call.kernel.send(pid, info) { Ok(0) } else { Err(Errno::AGAIN.into()) }
}

pub(super) fn rt_tgsigqueueinfo(call: &mut Call<'_>) -> Answer {
    let (pid, tid) = (call.bits(0), call.bits(1));
    let info = queued(call, call.args[2], call.args[3])?;
    let thread = call.kernel.threads.get(&tid).ok_or(Errno::SRCH)?;
    if thread.pid != pid {
        return Err(Errno::SRCH.into());
    }
    let Some(info) = info else { return Ok(0) };
    if call.kernel.send_to_thread(tid, info) { Ok(0) } else { Err(Errno::AGAIN.into()) }
}

/// A signal with what the guest says of it.
fn queued(call: &mut Call<'_>, signal: u64, addr: u64) -> Answer<Option<Info>> {
    let mut bytes = [0; 32];
    call.memory().read(addr, &mut bytes)?;
    let word = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let code = word(8);
    if code >= 0 {
        return Err(Refusal::Errno(Errno::PERM));
    }
    let value = u64::from_le_bytes(bytes[24..].try_into().expect("eight bytes"));
    let cause = Cause::Queued { pid: word(16) as u32, value };
    let signal = Kernel::signal_argument(signal as u32 as u64)?;
    Ok(signal.map(|signal| Info { signal, code, cause }))
}
