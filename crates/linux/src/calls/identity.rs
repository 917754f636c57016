//! Who the guest is, and what machine it sees.

use linux_raw_sys::{general as raw, prctl as pr};

use super::Call;
use crate::Errno;
use crate::answer::Answer;
use crate::layout::{ResourceLimit, ResourceUsage, SystemInfo, TimeVal};
use crate::vfs;

/// Bytes that `getrandom` gives at a time, at the most.
const MOST_RANDOM: u64 = 1 << 20;

/// The guest is root of its own small world.
pub(super) fn root(_: &mut Call<'_>) -> Answer {
    Ok(0)
}

pub(super) fn getresid(call: &mut Call<'_>) -> Answer {
    for index in 0..3 {
        call.write(call.args[index], &0u32)?;
    }
    Ok(0)
}

/// There is no other user to become.
pub(super) fn setid(call: &mut Call<'_>) -> Answer {
    match call.bits(0) {
        0 => Ok(0),
        u32::MAX => Err(Errno::INVAL.into()),
        _ => Err(Errno::PERM.into()),
    }
}

pub(super) fn setreid(call: &mut Call<'_>) -> Answer {
    let is_root = |id: u32| id == 0 || id == u32::MAX;
    if is_root(call.bits(0)) && is_root(call.bits(1)) { Ok(0) } else { Err(Errno::PERM.into()) }
}

pub(super) fn setresid(call: &mut Call<'_>) -> Answer {
    let is_root = |id: u32| id == 0 || id == u32::MAX;
    let all = (0..3).all(|index| is_root(call.bits(index)));
    if all { Ok(0) } else { Err(Errno::PERM.into()) }
}

/// `setfsuid` and `setfsgid` give what was before.
pub(super) fn setfsid(_: &mut Call<'_>) -> Answer {
    Ok(0)
}

/// Root is in its own group only.
pub(super) fn getgroups(call: &mut Call<'_>) -> Answer {
    let groups = call.process().groups.clone();
    match call.int(0) {
        0 => {}
        size if size < 0 || (size as usize) < groups.len() => return Err(Errno::INVAL.into()),
        _ if groups.is_empty() => {}
        _ => call.write_bytes(call.args[1], bytemuck::cast_slice(&groups))?,
    }
    Ok(groups.len() as u64)
}

/// Groups are remembered; root may do everything without them.
pub(super) fn setgroups(call: &mut Call<'_>) -> Answer {
    // Linux has a higher limit, but then they would have to be counted.
    const MOST: i32 = 1024;
    if !(0..=MOST).contains(&call.int(0)) {
        return Err(Errno::INVAL.into());
    }
    let mut groups = vec![0u32; call.int(0) as usize];
    if !groups.is_empty() {
        let at = call.args[1];
        call.memory().read(at, bytemuck::cast_slice_mut(&mut groups))?;
    }
    groups.sort_unstable();
    call.process().groups = groups;
    Ok(0)
}

pub(super) fn uname(call: &mut Call<'_>) -> Answer {
    let fields = ["Linux", vfs::HOSTNAME, vfs::RELEASE, "#1 SMP kvrm", "aarch64", "(none)"];
    let mut bytes = [0; 6 * 65];
    for (field, text) in bytes.chunks_mut(65).zip(fields) {
        field[..text.len()].copy_from_slice(text.as_bytes());
    }
    call.write_bytes(call.args[0], &bytes)?;
    Ok(0)
}

pub(super) fn sysinfo(call: &mut Call<'_>) -> Answer {
    let now = call.kernel.clock.now();
    let used = call.kernel.memory_used();
    let total = call.kernel.limits.memory;
    let info = SystemInfo {
        uptime: (call.kernel.clock.since_boot(now) / crate::clock::SECOND) as i64,
        total,
        free: total.saturating_sub(used),
        processes: call.kernel.processes.len() as u16,
        unit: 1,
        ..SystemInfo::default()
    };
    call.write(call.args[0], &info)?;
    Ok(0)
}

pub(super) fn getrandom(call: &mut Call<'_>) -> Answer {
    let known = raw::GRND_NONBLOCK | raw::GRND_RANDOM | raw::GRND_INSECURE;
    if call.bits(2) & !known != 0 {
        return Err(Errno::INVAL.into());
    }
    let mut bytes = vec![0; call.args[1].min(MOST_RANDOM) as usize];
    call.will_write(call.args[0], bytes.len() as u64)?;
    call.kernel.random.fill(&mut bytes);
    call.write_bytes(call.args[0], &bytes)?;
    Ok(bytes.len() as u64)
}

pub(super) fn getrlimit(call: &mut Call<'_>) -> Answer {
    let which = call.args[0];
    let [soft, hard] = call.process().resources.get(which).ok_or(Errno::INVAL)?;
    call.write(call.args[1], &ResourceLimit { soft, hard })?;
    Ok(0)
}

pub(super) fn setrlimit(call: &mut Call<'_>) -> Answer {
    let new: ResourceLimit = call.read(call.args[1])?;
    set_limit(call, call.args[0], new)
}

fn set_limit(call: &mut Call<'_>, which: u64, new: ResourceLimit) -> Answer {
    let [_, hard] = call.process().resources.get(which).ok_or(Errno::INVAL)?;
    if new.soft > new.hard {
        return Err(Errno::INVAL.into());
    }
    // Limits of the run are nobody's to raise.
    if new.hard > hard {
        return Err(Errno::PERM.into());
    }
    call.process().resources.set(which, [new.soft, new.hard]);
    Ok(0)
}

pub(super) fn prlimit64(call: &mut Call<'_>) -> Answer {
    let pid = call.bits(0);
    if pid != 0 && pid != call.pid() {
        return Err(Errno::SRCH.into());
    }
    let which = call.args[1];
    let new: Option<ResourceLimit> = call.read_optional(call.args[2])?;
    let [soft, hard] = call.process().resources.get(which).ok_or(Errno::INVAL)?;
    if let Some(new) = new {
        set_limit(call, which, new)?;
    }
    call.write_optional(call.args[3], &ResourceLimit { soft, hard })?;
    Ok(0)
}

pub(super) fn getrusage(call: &mut Call<'_>) -> Answer {
    let executed = call.process().executed;
    let user = match call.int(0) {
        0 | 1 => executed.own,
        raw::RUSAGE_CHILDREN => executed.children,
        _ => return Err(Errno::INVAL.into()),
    };
    let used = call.memory().used();
    let mut usage =
        ResourceUsage { user: TimeVal::from_nanoseconds(user), ..ResourceUsage::default() };
    usage.others[0] = (used >> 10) as i64;
    call.write(call.args[1], &usage)?;
    Ok(0)
}

pub(super) fn personality(call: &mut Call<'_>) -> Answer {
    match call.bits(0) {
        0 | u32::MAX => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(super) fn prctl(call: &mut Call<'_>) -> Answer {
    let [option, argument, ..] = call.args;
    match option as u32 {
        pr::PR_SET_NAME => {
            let mut name = [0; 16];
            let text = match call.memory().read_string(argument, 16) {
                Ok(text) => text,
                Err(crate::Refusal::Errno(Errno::NAMETOOLONG)) => call.bytes(argument, 15)?,
                Err(refusal) => return Err(refusal),
            };
            let len = text.len().min(15);
            name[..len].copy_from_slice(&text[..len]);
            call.thread().name = name;
            Ok(0)
        }
        pr::PR_GET_NAME => {
            let name = call.thread().name;
            call.write(argument, &name)?;
            Ok(0)
        }
        pr::PR_GET_DUMPABLE => Ok(1),
        pr::PR_SET_DUMPABLE | pr::PR_SET_KEEPCAPS if argument > 1 => Err(Errno::INVAL.into()),
        pr::PR_SET_DUMPABLE | pr::PR_SET_KEEPCAPS | pr::PR_SET_PTRACER => Ok(0),
        pr::PR_SET_CHILD_SUBREAPER => {
            call.process().is_subreaper = argument != 0;
            Ok(0)
        }
        pr::PR_GET_CHILD_SUBREAPER => {
            let is_subreaper = u32::from(call.process().is_subreaper);
            call.write(argument, &is_subreaper)?;
            Ok(0)
        }
        pr::PR_GET_KEEPCAPS | pr::PR_GET_SECCOMP => Ok(0),
        pr::PR_GET_NO_NEW_PRIVS => Ok(call.process().no_new_privileges.into()),
        pr::PR_SET_NO_NEW_PRIVS if argument == 1 => {
            call.process().no_new_privileges = true;
            Ok(0)
        }
        pr::PR_SET_PDEATHSIG if argument <= 64 => {
            call.process().parent_death_signal = argument as u32;
            Ok(0)
        }
        pr::PR_GET_PDEATHSIG => {
            let signal = call.process().parent_death_signal;
            call.write(argument, &signal)?;
            Ok(0)
        }
        pr::PR_SET_TIMERSLACK => Ok(0),
        pr::PR_GET_TIMERSLACK => Ok(50_000),
        pr::PR_GET_TAGGED_ADDR_CTRL => Ok(0),
        _ => Err(Errno::INVAL.into()),
    }
}

/// Root has all capabilities there are.
pub(super) fn capget(call: &mut Call<'_>) -> Answer {
    const VERSION_3: u32 = 0x2008_0522;
    const ALL: [u32; 2] = [u32::MAX, 0x1ff];
    let version: u32 = call.read(call.args[0])?;
    if version != VERSION_3 {
        call.write(call.args[0], &VERSION_3)?;
        return if call.args[1] == 0 { Ok(0) } else { Err(Errno::INVAL.into()) };
    }
    if call.args[1] != 0 {
        let [low, high] = ALL;
        call.write(call.args[1], &[low, low, 0, high, high, 0])?;
    }
    Ok(0)
}

/// They cannot be given away either.
pub(super) fn capset(_: &mut Call<'_>) -> Answer {
    Ok(0)
}

pub(super) fn sethostname(_: &mut Call<'_>) -> Answer {
    Err(Errno::PERM.into())
}

/// Not in this kernel, as if it was built without.
pub(super) fn absent(_: &mut Call<'_>) -> Answer {
    Err(Errno::NOSYS.into())
}
