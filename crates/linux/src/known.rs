//! What `/proc` tells of processes.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::clock::{Clock, SECOND};
use crate::files::{Files, Kind};
use crate::kernel::Held;
use crate::memory::{Area, Backing, Label, PAGE, Permissions};
use crate::process::{Pid, Process, State};
use crate::resources::Limits;
use crate::thread::{Thread, Tid};
use crate::uses::Uses;
use crate::vfs::{
    Descriptor, HOSTNAME, NodeId, ProcFile, ProcLink, Processes, RELEASE, SystemFile,
};
use crate::{Errno, Result};

/// Ticks in a second, as in `/proc/self/stat`.
const TICK: u64 = SECOND / 100;

/// All that is known.
pub(crate) struct Known<'k> {
    pub(crate) processes: &'k BTreeMap<Pid, Process>,
    pub(crate) threads: &'k BTreeMap<Tid, Thread>,
    pub(crate) memories: &'k BTreeMap<u32, Held>,
    pub(crate) files: &'k Files,
    pub(crate) clock: &'k Clock,
    pub(crate) limits: &'k Limits,
    pub(crate) uses: Option<&'k Uses>,
    pub(crate) tid: Tid,
}

impl Known<'_> {
    fn process(&self, id: u32) -> Result<(Pid, &Process)> {
        let pid = self.threads.get(&id).map_or(id, |thread| thread.pid);
        self.processes.get(&pid).map(|process| (pid, process)).ok_or(Errno::NOENT)
    }

    fn memory(&self, process: &Process) -> Option<&Held> {
        self.memories.get(&process.memory).filter(|_| !process.threads.is_empty())
    }

    fn name(&self, id: u32) -> String {
        let thread = self.threads.get(&id);
        let name = thread.map_or([0; 16], |thread| thread.name);
        String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
    }

    fn state(&self, process: &Process, id: u32) -> char {
        match process.state {
            State::Ended(_) => 'Z',
            State::Stopped { .. } => 'T',
            State::Running { .. } => {
                match self.threads.get(&id).is_some_and(|t| t.waiting.is_some()) {
                    true => 'S',
                    false => 'R',
                }
            }
        }
    }

    fn stat(&self, id: u32, process: &Process) -> String {
        let used = self.memory(process).map_or(0, |held| held.memory.used());
        let ticks = process.executed.own / TICK;
        let children = process.executed.children / TICK;
        let (name, state) = (self.name(id), self.state(process, id));
        let (parent, group, session) = (process.parent, process.group, process.session);
        let threads = process.threads.len();
        format!(
            "{id} ({name}) {state} {parent} {group} {session} 0 -1 4194304 0 0 0 0 {ticks} 0 {children} 0 20 0 {threads} 0 0 \
             {used} {} 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
            used / PAGE
        )
    }

    fn status(&self, id: u32, pid: Pid, process: &Process) -> String {
        let kib = self.memory(process).map_or(0, |held| held.memory.used()) >> 10;
        let state = match self.state(process, id) {
            'R' => "R (running)",
            'S' => "S (sleeping)",
            'T' => "T (stopped)",
            _ => "Z (zombie)",
        };
        let groups: String = process.groups.iter().map(|group| format!("{group} ")).collect();
        let mask = self.threads.get(&id).map_or(0, |thread| thread.mask.bits());
        format!(
            "Name:\t{}\nUmask:\t{:04o}\nState:\t{state}\nTgid:\t{pid}\nNgid:\t0\nPid:\t{id}\nPPid:\t{}\nTracerPid:\t0\n\
             Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t{groups}\nVmPeak:\t{kib:8} kB\nVmSize:\t{kib:8} kB\n\
             VmHWM:\t{kib:8} kB\nVmRSS:\t{kib:8} kB\nThreads:\t{}\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n\
             SigBlk:\t{mask:016x}\nSeccomp:\t0\nCpus_allowed:\t1\nCpus_allowed_list:\t0\n",
            self.name(id),
            process.umask,
            process.parent,
            process.threads.len()
        )
    }

    fn maps(&self, process: &Process) -> String {
        let mut text = String::new();
        let areas = self.memory(process).map(|held| held.memory.areas());
        for (start, area) in areas.into_iter().flat_map(|areas| areas.iter()) {
            writeln!(text, "{}", map_line(start, area)).expect("strings take everything");
        }
        text
    }
}

/// A line of `/proc/self/maps`.
fn map_line(start: u64, area: &Area) -> String {
    let Area { end, access, backing, label, .. } = area;
    let letter = |bit: Permissions, letter: char| if access.contains(bit) { letter } else { '-' };
    let (shared, offset) = match backing {
        Backing::Anonymous => (false, 0),
        Backing::Shared { offset, .. } => (true, *offset),
        Backing::File { offset, shared, .. } => (*shared, *offset),
    };
    let line = format!(
        "{start:08x}-{end:08x} {}{}{}{} {offset:08x} 00:00 0",
        letter(Permissions::READ, 'r'),
        letter(Permissions::WRITE, 'w'),
        letter(Permissions::EXECUTE, 'x'),
        if shared { 's' } else { 'p' },
    );
    match label {
        Label::None => line,
        label => format!("{line:<72} {}", label.text()),
    }
}

/// Strings, each with a zero behind it.
fn joined(strings: &[Vec<u8>]) -> Vec<u8> {
    strings.iter().flat_map(|string| string.iter().chain(&[0])).copied().collect()
}

impl Processes for Known<'_> {
    fn current(&self) -> (u32, u32) {
        (self.threads.get(&self.tid).map_or(self.tid, |thread| thread.pid), self.tid)
    }

    fn list(&self) -> Vec<u32> {
        self.processes.keys().copied().collect()
    }

    fn threads(&self, pid: u32) -> Vec<u32> {
        let mut threads =
            self.processes.get(&pid).map_or(Vec::new(), |process| process.threads.clone());
        threads.sort_unstable();
        threads
    }

    fn file(&self, id: u32, file: ProcFile) -> Result<Vec<u8>> {
        let (pid, process) = self.process(id)?;
        if matches!(file, ProcFile::Cmdline | ProcFile::Environ) {
            self.uses.into_iter().for_each(Uses::ask_for_strings);
        }
        Ok(match file {
            ProcFile::Auxv => process.program.auxv.clone(),
            ProcFile::Cmdline => joined(&process.program.args),
            ProcFile::Comm => format!("{}\n", self.name(id)).into(),
            ProcFile::Environ => joined(&process.program.env),
            ProcFile::Limits => process.resources.table().into(),
            ProcFile::Maps => self.maps(process).into(),
            ProcFile::Stat => self.stat(id, process).into(),
            ProcFile::Statm => {
                let pages = self.memory(process).map_or(0, |held| held.memory.used()) / PAGE;
                format!("{pages} {pages} 0 0 0 {pages} 0\n").into()
            }
            ProcFile::Status => self.status(id, pid, process).into(),
            ProcFile::DescriptorInfo(fd) => {
                let file = self.files.get(process.descriptors.get(fd.into())?.file);
                format!("pos:\t{}\nflags:\t0{:o}\nmnt_id:\t1\n", file.offset, file.mode.bits())
                    .into()
            }
        })
    }

    fn link(&self, id: u32, link: ProcLink) -> Result<NodeId> {
        let (_, process) = self.process(id)?;
        match link {
            ProcLink::Cwd => Ok(process.directory),
            ProcLink::Exe => Ok(process.program.node),
            ProcLink::Root => Err(Errno::ACCES),
        }
    }

    fn descriptors(&self, id: u32) -> Vec<u32> {
        let process = self.process(id).map(|(_, process)| process);
        process.map_or(Vec::new(), |process| process.descriptors.iter().map(|(fd, _)| fd).collect())
    }

    fn descriptor(&self, id: u32, fd: u32) -> Result<Descriptor> {
        let (_, process) = self.process(id)?;
        let file = process.descriptors.get(fd.into()).map_err(|_| Errno::NOENT)?.file;
        let other = |text: String| Ok(Descriptor::Other(text.into()));
        match &self.files.get(file).kind {
            Kind::Node(node) | Kind::Device(_, node) => Ok(Descriptor::Node(*node)),
            Kind::Pipe { pipe } => other(format!("pipe:[{pipe}]")),
            Kind::Socket(_) => other(format!("socket:[{file}]")),
            Kind::Console(stream) => other(format!("pipe:[{}]", 1_000_000 + *stream as u32)),
            Kind::Event { .. } => other("anon_inode:[eventfd]".into()),
            Kind::Epoll(_) => other("anon_inode:[eventpoll]".into()),
            Kind::Timer { .. } => other("anon_inode:[timerfd]".into()),
        }
    }

    fn system(&self, file: SystemFile) -> Result<Vec<u8>> {
        let up = self.clock.since_boot(self.clock.now());
        let (seconds, hundredths) = (up / SECOND, up % SECOND / (SECOND / 100));
        let used: u64 = self.memories.values().map(|held| held.memory.used()).sum();
        Ok(match file {
            SystemFile::Cpuinfo => CPUINFO.into(),
            SystemFile::Loadavg => {
                format!("0.00 0.00 0.00 1/{} {}\n", self.threads.len(), self.tid).into()
            }
            SystemFile::Meminfo => {
                let (total, free) =
                    (self.limits.memory >> 10, self.limits.memory.saturating_sub(used) >> 10);
                format!("MemTotal: {total:15} kB\nMemFree: {free:16} kB\nMemAvailable: {free:11} kB\nBuffers: {:16} kB\nCached: {:17} kB\nSwapTotal: {:14} kB\nSwapFree: {:15} kB\n", 0, 0, 0, 0).into()
            }
            SystemFile::Stat => {
                let ticks = up / TICK;
                format!("cpu  {ticks} 0 0 0 0 0 0 0 0 0\ncpu0 {ticks} 0 0 0 0 0 0 0 0 0\nctxt 0\nbtime {}\nprocesses {}\nprocs_running 1\nprocs_blocked 0\n", (self.clock.since_1970(crate::clock::Time(0)) - self.clock.since_boot(crate::clock::Time(0))) / SECOND, self.processes.len()).into()
            }
            SystemFile::Uptime => format!("{seconds}.{hundredths:02} 0.00\n").into(),
            SystemFile::Version => {
                format!("Linux version {RELEASE} ({HOSTNAME}) #1 SMP kvrm\n").into()
            }
            SystemFile::BootId => b"6b76726d-0000-4000-8000-000000000001\n".to_vec(),
            SystemFile::Uuid => {
                format!("6b76726d-0000-4000-8000-{:012x}\n", up & 0xffff_ffff_ffff).into()
            }
        })
    }
}

/// One processor, with what `AT_HWCAP` says.
const CPUINFO: &str = "processor\t: 0\nBogoMIPS\t: 100.00\nFeatures\t: fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc sha3 sm3 sm4 asimddp sha512 asimdfhm dit ilrcpc flagm ssbs sb flagm2 frint i8mm bf16\nCPU implementer\t: 0x00\nCPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0x000\nCPU revision\t: 0\n\n";
