//! Processes and threads.

use kvrm_a64::state::SP;
use linux_raw_sys::general as raw;

use super::Call;
use crate::Errno;
use crate::answer::{Answer, Interrupted, Refusal, Wait};
use crate::exec;
use crate::layout::{CloneArgs, ResourceUsage, TimeVal};
use crate::moving::Reason;
use crate::process::{Executed, Pid, Process, State, Status};
use crate::signals::{Pending, Signal, SignalStack};
use crate::thread::Thread;

/// Strings of arguments and environment, at the most.
const MOST_STRINGS: usize = 1 << 16;
/// Bytes of all of them, at the most: more do not fit on the stack.
const MOST_BYTES: usize = crate::memory::STACK as usize / 4;
/// The longest of them.
const LONGEST_STRING: usize = 1 << 17;

// Starting.

pub(super) fn clone(call: &mut Call<'_>) -> Answer {
    let [flags, stack, parent_tid, tls, child_tid, _] = call.args;
    let exit_signal = flags & 0xff;
    let args = CloneArgs {
        flags: flags & !0xff,
        stack,
        parent_tid,
        tls,
        child_tid,
        exit_signal,
        ..CloneArgs::default()
    };
    start(call, &args)
}

pub(super) fn clone3(call: &mut Call<'_>) -> Answer {
    const LEAST: u64 = 64;
    let size = call.args[1];
    if size < LEAST {
        return Err(Errno::INVAL.into());
    }
    let mut args = CloneArgs::default();
    let bytes = bytemuck::bytes_of_mut(&mut args);
    let len = bytes.len().min(size as usize);
    let from = call.args[0];
    call.memory().read(from, &mut bytes[..len])?;
    if args.set_tid_size != 0 || args.flags & u64::from(raw::CSIGNAL) != 0 {
        return Err(Errno::INVAL.into());
    }
    if args.stack != 0 {
        args.stack = args.stack.wrapping_add(args.stack_size);
    }
    start(call, &args)
}

fn start(call: &mut Call<'_>, args: &CloneArgs) -> Answer {
    if let Some(child) = call.thread().vfork_child {
        return finish_vfork(call, child);
    }
    let flags = args.flags;
    let has = |flag: u32| flags & u64::from(flag) != 0;
    let makes_thread = has(raw::CLONE_THREAD);
    if makes_thread && !(has(raw::CLONE_VM) && has(raw::CLONE_SIGHAND))
        || has(raw::CLONE_SIGHAND) && !has(raw::CLONE_VM)
    {
        return Err(Errno::INVAL.into());
    }
    const NAMESPACES: u32 = raw::CLONE_NEWNS
        | raw::CLONE_NEWUSER
        | raw::CLONE_NEWPID
        | raw::CLONE_NEWNET
        | raw::CLONE_NEWUTS
        | raw::CLONE_NEWIPC
        | raw::CLONE_NEWCGROUP;
    if has(NAMESPACES) || has(raw::CLONE_PIDFD) {
        return Err(Errno::INVAL.into());
    }
    let tid = call.kernel.new_tid()?;
    call.kernel.move_machine(call.tid, Reason::Second)?;
    call.kernel.save_vectors(call.tid)?;
    let parent = call.thread();
    let (mut registers, vectors, name) = (parent.registers, parent.vectors, parent.name);
    let (mask, stack, nice) = (parent.mask, parent.stack, parent.nice);
    registers.x[0] = 0;
    if args.stack != 0 {
        registers.x[SP as usize] = args.stack;
    }
    if has(raw::CLONE_SETTLS) {
        registers.tpidr_el0 = args.tls;
    }
    registers.take_exception();
    let pid = if makes_thread { call.pid() } else { start_process(call, tid, args)? };
    let mut thread = Thread::new(pid, registers, vectors, name);
    (thread.mask, thread.nice) = (mask, nice);
    if !has(raw::CLONE_VM) || has(raw::CLONE_VFORK) {
        thread.stack = stack;
    } else {
        thread.stack = SignalStack::default();
    }
    if has(raw::CLONE_CHILD_CLEARTID) {
        thread.clear_tid = args.child_tid;
    }
    call.kernel.threads.insert(tid, thread);
    if makes_thread {
        call.process().threads.push(tid);
    }
    if has(raw::CLONE_PARENT_SETTID) {
        call.write(args.parent_tid, &tid)?;
    }
    if has(raw::CLONE_CHILD_SETTID) {
        // In the child's memory, which may be another one.
        let memory = &mut call.kernel.held_of(tid).memory;
        memory.write(args.child_tid, &tid.to_le_bytes())?;
    }
    call.kernel.note();
    if has(raw::CLONE_VFORK) {
        call.thread().vfork_child = Some(pid);
        let own = call.tid;
        call.kernel.processes.get_mut(&pid).expect("it was just made").vfork = Some(own);
        return finish_vfork(call, pid);
    }
    Ok(tid.into())
}

/// Waits until the child has ended or runs another program.
fn finish_vfork(call: &mut Call<'_>, child: Pid) -> Answer {
    let own = call.tid;
    let is_busy =
        call.kernel.processes.get(&child).is_some_and(|process| process.vfork == Some(own));
    if is_busy {
        return Err(Refusal::Wait(Wait { until: None, interrupted: Interrupted::Never }));
    }
    call.thread().vfork_child = None;
    Ok(child.into())
}

/// A process with the number of its first thread.
fn start_process(call: &mut Call<'_>, tid: u32, args: &CloneArgs) -> Answer<Pid> {
    let shares_memory = args.flags & u64::from(raw::CLONE_VM) != 0;
    let own = call.pid();
    let number = call.process().memory;
    let memory = match shares_memory {
        true => {
            call.kernel.memories.get_mut(&number).expect("processes have memory").users += 1;
            number
        }
        false => {
            call.kernel.use_strings();
            let copy = call.memory().fork()?;
            call.kernel.hold(copy)
        }
    };
    let parent = match args.flags & u64::from(raw::CLONE_PARENT) {
        0 => own,
        _ => call.process().parent,
    };
    let process = call.process();
    let mut child = Process {
        parent,
        group: process.group,
        session: process.session,
        memory,
        descriptors: process.descriptors.clone(),
        directory: process.directory,
        umask: process.umask,
        actions: process.actions.clone(),
        pending: Pending::default(),
        threads: vec![tid],
        state: State::Running { continued: false },
        exit_signal: Signal::from_number(args.exit_signal),
        vfork: None,
        program: process.program.clone(),
        alarm: None,
        busy_alarms: [None; 2],
        parent_death_signal: 0,
        is_subreaper: false,
        no_new_privileges: process.no_new_privileges,
        timers: Default::default(),
        groups: process.groups.clone(),
        resources: process.resources.clone(),
        executed: Executed::default(),
    };
    if args.flags & raw::CLONE_CLEAR_SIGHAND != 0 {
        child.actions.forget_handlers();
    }
    for (_, descriptor) in child.descriptors.iter() {
        call.kernel.files.share(descriptor.file);
    }
    let nodes = [Some(child.directory), Some(child.program.node), child.program.interpreter];
    for node in nodes.into_iter().flatten() {
        call.kernel.vfs.retain(node)?;
    }
    if !shares_memory {
        call.kernel.retain_all_shown(memory);
    }
    call.kernel.processes.insert(tid, child);
    Ok(tid)
}

pub(super) fn execve(call: &mut Call<'_>) -> Answer {
    let path = call.path(0)?;
    let base = call.process().directory;
    run(call, base, &path, call.args[1], call.args[2])
}

pub(super) fn execveat(call: &mut Call<'_>) -> Answer {
    let path = call.path(1)?;
    if path.is_empty() && call.bits(4) & raw::AT_EMPTY_PATH != 0 {
        let path = format!("/proc/self/fd/{}", call.bits(0)).into_bytes();
        let root = call.kernel.vfs.root();
        return run(call, root, &path, call.args[2], call.args[3]);
    }
    let base = call.base_of(0, &path)?;
    run(call, base, &path, call.args[2], call.args[3])
}

fn run(call: &mut Call<'_>, base: crate::vfs::NodeId, path: &[u8], args: u64, env: u64) -> Answer {
    let mut room = MOST_BYTES;
    let (mut args, env) = (strings(call, args, &mut room)?, strings(call, env, &mut room)?);
    if args.is_empty() {
        args.push(Vec::new());
    }
    let loaded = exec::load_for(call.kernel, call.tid, base, path, &args, &env)?;
    let (tid, pid) = (call.tid, call.pid());
    // Its other threads end, and it has the number of the process from now on.
    let others: Vec<u32> =
        call.process().threads.iter().copied().filter(|other| *other != tid).collect();
    for other in others {
        let ended = call.kernel.threads.remove(&other);
        if let Some((file, _)) = ended.and_then(|thread| thread.fifo) {
            call.kernel.close_file(file);
        }
    }
    let mut thread = call.kernel.threads.remove(&tid).expect("it makes this call");
    thread.registers = loaded.registers;
    thread.vectors = kvrm_a64::state::VectorState::new();
    thread.stack = SignalStack::default();
    (thread.clear_tid, thread.robust_list, thread.name) = (0, 0, loaded.name);
    (thread.waiting, thread.deadline, thread.futex, thread.progress) = (None, None, None, 0);
    call.kernel.threads.insert(pid, thread);
    call.tid = pid;
    let old_memory = call.process().memory;
    call.kernel.sync_shared(old_memory);
    let memory = call.kernel.hold(loaded.memory);
    let process = call.process();
    process.threads = vec![pid];
    process.memory = memory;
    process.actions.forget_handlers();
    process.timers.clear();
    let waiting = process.vfork.take();
    let old = std::mem::replace(&mut process.program, loaded.program);
    let closing = process.descriptors.take_closing();
    call.kernel.release_memory(old_memory);
    call.kernel.vfs.release(old.node);
    old.interpreter.into_iter().for_each(|node| call.kernel.vfs.release(node));
    closing.into_iter().for_each(|descriptor| call.kernel.close_file(descriptor.file));
    call.kernel.end_vfork(waiting);
    Err(Refusal::Gone)
}

/// A list of strings that ends with a zero; those of several lists share the room.
fn strings(call: &mut Call<'_>, addr: u64, room: &mut usize) -> Answer<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    if addr == 0 {
        return Ok(strings);
    }
    loop {
        let at = call.memory().read_u64(addr + 8 * strings.len() as u64)?;
        if at == 0 {
            return Ok(strings);
        }
        let string = call.memory().read_string(at, LONGEST_STRING);
        let string = string.map_err(|refusal| match refusal {
            Refusal::Errno(Errno::NAMETOOLONG) => Refusal::Errno(Errno::TOOBIG),
            refusal => refusal,
        })?;
        *room = room.checked_sub(string.len()).ok_or(Errno::TOOBIG)?;
        strings.push(string);
        if strings.len() > MOST_STRINGS {
            return Err(Errno::TOOBIG.into());
        }
    }
}

// Ending.

pub(super) fn exit(call: &mut Call<'_>) -> Answer {
    call.kernel.end_thread(call.tid, call.args[0] as u8);
    Err(Refusal::Gone)
}

pub(super) fn exit_group(call: &mut Call<'_>) -> Answer {
    let pid = call.pid();
    call.kernel.end_process(pid, Status::Exited(call.args[0] as u8));
    Err(Refusal::Gone)
}

/// What has become of a child.
struct Change {
    pid: Pid,
    /// `CLD_…` and the status that goes with it.
    code: u32,
    status: i32,
    wait_status: u32,
    executed: Executed,
}

/// Which changes are waited for.
#[derive(Clone, Copy)]
struct Wanted {
    ended: bool,
    stopped: bool,
    continued: bool,
    /// It is only looked at.
    stays: bool,
}

/// Looks for a child with news; `ECHILD` if there is no such child.
fn look(
    call: &mut Call<'_>,
    is_meant: impl Fn(Pid, Pid) -> bool,
    wanted: Wanted,
) -> Result<Option<Change>, Errno> {
    let own = call.pid();
    let children = call
        .kernel
        .processes
        .iter()
        .filter(|(pid, process)| process.parent == own && is_meant(**pid, process.group));
    let children: Vec<Pid> = children.map(|(pid, _)| *pid).collect();
    if children.is_empty() {
        return Err(Errno::CHILD);
    }
    for pid in children {
        let process = call.kernel.processes.get_mut(&pid).expect("it was just found");
        let executed = process.executed;
        let change = |code: u32, status: i32, wait_status: u32| Change {
            pid,
            code,
            status,
            wait_status,
            executed,
        };
        match process.state {
            State::Ended(status) if wanted.ended => {
                let (code, number) = match status {
                    Status::Exited(code) => (raw::CLD_EXITED, i32::from(code)),
                    Status::Killed(signal) => {
                        let dumped = status.wait_status() & 0x80 != 0;
                        let code = if dumped { raw::CLD_DUMPED } else { raw::CLD_KILLED };
                        (code, i32::from(signal.number()))
                    }
                };
                let change = change(code, number, status.wait_status());
                if !wanted.stays {
                    call.kernel.reap(pid);
                }
                return Ok(Some(change));
            }
            State::Stopped { signal, reported: false } if wanted.stopped => {
                if !wanted.stays {
                    process.state = State::Stopped { signal, reported: true };
                }
                let number = u32::from(signal.number());
                return Ok(Some(change(raw::CLD_STOPPED, number as i32, number << 8 | 0x7f)));
            }
            State::Running { continued: true } if wanted.continued => {
                if !wanted.stays {
                    process.state = State::Running { continued: false };
                }
                let number = Signal::CONT.number().into();
                return Ok(Some(change(raw::CLD_CONTINUED, number, 0xffff)));
            }
            State::Ended(_) | State::Stopped { .. } | State::Running { .. } => {}
        }
    }
    Ok(None)
}

fn usage(executed: Executed) -> ResourceUsage {
    let user = TimeVal::from_nanoseconds(executed.own + executed.children);
    ResourceUsage { user, ..ResourceUsage::default() }
}

pub(super) fn wait4(call: &mut Call<'_>) -> Answer {
    const KNOWN: u32 = raw::WNOHANG
        | raw::WUNTRACED
        | raw::WCONTINUED
        | raw::__WALL
        | raw::__WCLONE
        | raw::__WNOTHREAD;
    let (which, options) = (call.int(0), call.bits(2));
    if options & !KNOWN != 0 {
        return Err(Errno::INVAL.into());
    }
    let own_group = call.process().group;
    let is_meant = |pid: Pid, group: Pid| match which {
        -1 => true,
        0 => group == own_group,
        which if which > 0 => pid == which as u32,
        which => group == which.unsigned_abs(),
    };
    let wanted = Wanted {
        ended: true,
        stopped: options & raw::WUNTRACED != 0,
        continued: options & raw::WCONTINUED != 0,
        stays: false,
    };
    match look(call, is_meant, wanted)? {
        Some(change) => {
            call.write_optional(call.args[1], &change.wait_status)?;
            call.write_optional(call.args[3], &usage(change.executed))?;
            Ok(change.pid.into())
        }
        None if options & raw::WNOHANG != 0 => Ok(0),
        None => Err(Wait::for_ever()),
    }
}

pub(super) fn waitid(call: &mut Call<'_>) -> Answer {
    const P_ALL: u32 = 0;
    const P_PID: u32 = 1;
    const P_PGID: u32 = 2;
    let (kind, id, options) = (call.bits(0), call.bits(1), call.bits(3));
    let wanted = Wanted {
        ended: options & raw::WEXITED != 0,
        stopped: options & raw::WSTOPPED != 0,
        continued: options & raw::WCONTINUED != 0,
        stays: options & raw::WNOWAIT != 0,
    };
    if kind > P_PGID || !(wanted.ended || wanted.stopped || wanted.continued) {
        return Err(Errno::INVAL.into());
    }
    let own_group = call.process().group;
    let is_meant = |pid: Pid, group: Pid| match (kind, id) {
        (P_ALL, _) => true,
        (P_PID, id) => pid == id,
        (_, 0) => group == own_group,
        (_, id) => group == id,
    };
    let change = match look(call, is_meant, wanted)? {
        None if options & raw::WNOHANG == 0 => return Err(Wait::for_ever()),
        change => change,
    };
    let mut info = [0u32; 32];
    if let Some(change) = &change {
        info[0] = Signal::CHLD.number().into();
        info[2] = change.code;
        info[4] = change.pid;
        info[6] = change.status as u32;
    }
    call.write_optional(call.args[2], &info)?;
    let executed = change.map_or(Executed::default(), |change| change.executed);
    call.write_optional(call.args[4], &usage(executed))?;
    Ok(0)
}

// Who is who.

pub(super) fn getpid(call: &mut Call<'_>) -> Answer {
    Ok(call.pid().into())
}

pub(super) fn getppid(call: &mut Call<'_>) -> Answer {
    Ok(call.process().parent.into())
}

impl Call<'_> {
    /// A process by its number, 0 for one's own.
    fn process_number(&mut self, index: usize) -> Result<Pid, Errno> {
        let pid = match self.bits(index) {
            0 => self.pid(),
            pid => pid,
        };
        self.kernel.processes.contains_key(&pid).then_some(pid).ok_or(Errno::SRCH)
    }
}

pub(super) fn getpgid(call: &mut Call<'_>) -> Answer {
    let pid = call.process_number(0)?;
    Ok(call.kernel.processes[&pid].group.into())
}

pub(super) fn setpgid(call: &mut Call<'_>) -> Answer {
    let pid = call.process_number(0)?;
    let own = call.pid();
    let group = if call.bits(1) == 0 { pid } else { call.bits(1) };
    let session = call.process().session;
    let process = &call.kernel.processes[&pid];
    if pid != own && process.parent != own {
        return Err(Errno::SRCH.into());
    }
    if call.int(1) < 0 {
        return Err(Errno::INVAL.into());
    }
    let leads_session = process.session == pid;
    let exists = call
        .kernel
        .processes
        .values()
        .any(|other| other.group == group && other.session == session);
    if leads_session || process.session != session || group != pid && !exists {
        return Err(Errno::PERM.into());
    }
    call.kernel.processes.get_mut(&pid).expect("it was just found").group = group;
    Ok(0)
}

pub(super) fn getsid(call: &mut Call<'_>) -> Answer {
    let pid = call.process_number(0)?;
    Ok(call.kernel.processes[&pid].session.into())
}

pub(super) fn setsid(call: &mut Call<'_>) -> Answer {
    let pid = call.pid();
    if call.kernel.processes.values().any(|process| process.group == pid) {
        return Err(Errno::PERM.into());
    }
    let process = call.process();
    (process.group, process.session) = (pid, pid);
    Ok(pid.into())
}
