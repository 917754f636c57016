//! How threads and processes end.

use linux_raw_sys::general as raw;

use crate::futex::{OWNER, OWNER_DIED, WAITERS};
use crate::kernel::{FIRST, Kernel};
use crate::process::{Pid, State, Status};
use crate::signals::{Action, ByDefault, Signal};
use crate::thread::Tid;

/// Entries of a list of robust futexes, at the most, as on Linux.
const MOST_ROBUST: usize = 2048;

/// The parent of those that have none.
const NOBODY: Pid = 1;

impl Kernel {
    /// Where the list of robust futexes begins of the thread whose turn it is, which is read when the thread ends; zero, if it
    /// has none.
    pub fn robust_list(&self) -> u64 {
        let thread = self.turns.current().and_then(|tid| self.threads.get(&tid));
        thread.map_or(0, |thread| thread.robust_list)
    }

    /// Ends a thread, and its process if it was the last; the code is then the process's.
    pub(crate) fn end_thread(&mut self, tid: Tid, code: u8) {
        let pid = self.thread(tid).pid;
        if self.processes[&pid].threads.len() == 1 {
            return self.end_process(pid, Status::Exited(code));
        }
        self.leave(tid);
        self.threads.remove(&tid);
        let process = self.processes.get_mut(&pid).expect("threads have a process");
        process.threads.retain(|other| *other != tid);
        self.note();
    }

    /// What others learn when a thread ends.
    fn leave(&mut self, tid: Tid) {
        self.hand_over_locks(tid);
        self.release_robust(tid);
        let fifo = self.thread(tid).fifo.take();
        fifo.into_iter().for_each(|(file, _)| self.close_file(file));
        let clear = std::mem::take(&mut self.thread(tid).clear_tid);
        let held = self.held_of(tid);
        if held.loaded == Some(tid) {
            held.loaded = None;
        }
        // Nobody can be told if that is not memory.
        if clear != 0 && held.memory.write(clear, &0u32.to_le_bytes()).is_ok() {
            self.wake_futex(tid, clear, 1, u32::MAX);
        }
    }

    /// Marks the robust futexes of a thread as those of one that died.
    fn release_robust(&mut self, tid: Tid) {
        let head = std::mem::take(&mut self.thread(tid).robust_list);
        if head == 0 {
            return;
        }
        let memory = &self.held_of(tid).memory;
        let words = [0, 8, 16].map(|at| memory.read_u64(head.wrapping_add(at)).ok());
        let [Some(first), Some(offset), Some(pending)] = words else { return };
        let mut entry = first;
        for _ in 0..MOST_ROBUST {
            if entry & !1 == head {
                break;
            }
            let next = self.held_of(tid).memory.read_u64(entry & !1).ok();
            if entry != pending {
                self.release_futex(tid, (entry & !1).wrapping_add(offset));
            }
            let Some(next) = next else { break };
            entry = next;
        }
        if pending != 0 {
            self.release_futex(tid, (pending & !1).wrapping_add(offset));
        }
    }

    fn release_futex(&mut self, tid: Tid, addr: u64) {
        let memory = &mut self.held_of(tid).memory;
        let Ok(word) = memory.read_u32(addr) else { return };
        if word & OWNER != tid & OWNER {
            return;
        }
        let died = word & WAITERS | OWNER_DIED;
        if memory.write(addr, &died.to_le_bytes()).is_ok() && word & WAITERS != 0 {
            self.wake_futex(tid, addr, 1, u32::MAX);
        }
    }

    /// Ends a process.
    pub(crate) fn end_process(&mut self, pid: Pid, status: Status) {
        let process = self.processes.get_mut(&pid).expect("it is there");
        let threads = process.threads.clone();
        for tid in threads {
            self.leave(tid);
            self.threads.remove(&tid);
        }
        let process = self.processes.get_mut(&pid).expect("as above");
        process.threads.clear();
        (process.alarm, process.state) = (None, State::Ended(status));
        process.timers.clear();
        let waiting = process.vfork.take();
        let (directory, memory) = (process.directory, process.memory);
        let program = (process.program.node, process.program.interpreter);
        self.end_vfork(waiting);
        self.sync_shared(memory);
        self.close_all(pid);
        self.vfs.release(directory);
        self.vfs.release(program.0);
        program.1.into_iter().for_each(|node| self.vfs.release(node));
        self.release_memory(memory);
        if pid == FIRST {
            self.first_status = Some(status);
        }
        self.orphan_children(pid);
        self.report_end(pid, status);
        self.note();
    }

    /// The thread that waited for its child to leave its memory goes on.
    pub(crate) fn end_vfork(&mut self, waiting: Option<Tid>) {
        if waiting.is_some() {
            self.note();
        }
    }

    /// Children of a process that ended go to an ancestor that asked for them, or have no parent any more.
    fn orphan_children(&mut self, pid: Pid) {
        let parent = self.subreaper_of(pid);
        let children = self.processes.iter_mut().filter(|(_, child)| child.parent == pid);
        let mut ended = Vec::new();
        for (number, child) in children {
            child.parent = parent;
            if let State::Ended(status) = child.state {
                ended.push((*number, status));
            }
        }
        for (number, status) in ended {
            match parent {
                NOBODY => self.reap(number),
                _ => self.report_end(number, status),
            }
        }
    }

    /// The nearest ancestor of a process that asked for orphans.
    fn subreaper_of(&self, pid: Pid) -> Pid {
        let mut at = self.processes[&pid].parent;
        while let Some(process) = self.processes.get(&at) {
            if process.is_subreaper && !process.threads.is_empty() {
                return at;
            }
            at = process.parent;
        }
        NOBODY
    }

    /// Tells the parent, or nobody.
    fn report_end(&mut self, pid: Pid, status: Status) {
        let (code, number) = match status {
            Status::Exited(code) => (raw::CLD_EXITED, i32::from(code)),
            Status::Killed(signal) if signal.by_default() == ByDefault::Dump => {
                (raw::CLD_DUMPED, signal.number().into())
            }
            Status::Killed(signal) => (raw::CLD_KILLED, signal.number().into()),
        };
        let parent = self.processes[&pid].parent;
        let exits_to_nobody = match self.processes.get(&parent) {
            None => true,
            Some(parent) => {
                let action = parent.actions.get(Signal::CHLD);
                let asked = self.processes[&pid].exit_signal == Some(Signal::CHLD);
                asked && (action.handler == Action::IGNORE || action.has(raw::SA_NOCLDWAIT))
            }
        };
        self.tell_parent(pid, code as i32, number);
        if exits_to_nobody {
            self.reap(pid);
        }
    }

    /// Forgets a process that has ended.
    pub(crate) fn reap(&mut self, pid: Pid) {
        let Some(process) = self.processes.remove(&pid) else { return };
        if let Some(parent) = self.processes.get_mut(&process.parent) {
            parent.executed.children += process.executed.own + process.executed.children;
        }
    }
}
