//! Limits: those of a whole run, and those that a process can ask for.

use serde::{Deserialize, Serialize};

use std::fmt::{self, Display, Formatter};

use linux_raw_sys::general as raw;

/// The limits of a run. What hits one is told in the report.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Instructions of all threads.
    pub instructions: u64,
    /// Bytes of memory over all processes that can be accessed, or could since they were mapped.
    pub memory: u64,
    /// Bytes of files that were written.
    pub file_bytes: u64,
    /// Files and directories.
    pub files: u64,
    /// Open files of a process.
    pub open_files: u32,
    /// Processes and threads at a time.
    pub threads: usize,
    /// Bytes of standard output and standard error.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            instructions: u64::MAX,
            memory: 4 << 30,
            file_bytes: 1 << 30,
            files: 1 << 20,
            open_files: 1024,
            threads: 1024,
            output: u64::MAX,
        }
    }
}

/// A limit of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Limit {
    /// Of instructions.
    Instructions,
    /// Of memory.
    Memory,
    /// Of bytes in files.
    FileBytes,
    /// Of files.
    Files,
    /// Of open files.
    OpenFiles,
    /// Of processes and threads.
    Threads,
    /// Of output.
    Output,
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Instructions => "instructions",
            Limit::Memory => "memory",
            Limit::FileBytes => "bytes in files",
            Limit::Files => "files",
            Limit::OpenFiles => "open files",
            Limit::Threads => "processes and threads",
            Limit::Output => "output",
        })
    }
}

/// `RLIMIT_…` of a process, soft and hard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Resources([[u64; 2]; raw::RLIM_NLIMITS as usize]);

impl Resources {
    /// What a run's first process has.
    pub(crate) fn new(limits: &Limits) -> Resources {
        const NONE: u64 = u64::MAX;
        let mut all = [[NONE; 2]; raw::RLIM_NLIMITS as usize];
        let mut set = |which: u32, soft: u64, hard: u64| all[which as usize] = [soft, hard];
        set(raw::RLIMIT_STACK, crate::memory::STACK, NONE);
        set(raw::RLIMIT_CORE, 0, NONE);
        set(raw::RLIMIT_NPROC, limits.threads as u64, limits.threads as u64);
        set(raw::RLIMIT_NOFILE, limits.open_files.into(), limits.open_files.into());
        set(raw::RLIMIT_MEMLOCK, 8 << 20, 8 << 20);
        set(raw::RLIMIT_SIGPENDING, 4096, 4096);
        set(raw::RLIMIT_MSGQUEUE, 819_200, 819_200);
        set(raw::RLIMIT_NICE, 0, 0);
        set(raw::RLIMIT_RTPRIO, 0, 0);
        Resources(all)
    }

    /// As in `/proc/self/limits`.
    pub(crate) fn table(&self) -> String {
        const NAMES: [(&str, &str); raw::RLIM_NLIMITS as usize] = [
            ("Max cpu time", "seconds"),
            ("Max file size", "bytes"),
            ("Max data size", "bytes"),
            ("Max stack size", "bytes"),
            ("Max core file size", "bytes"),
            ("Max resident set", "bytes"),
            ("Max processes", "processes"),
            ("Max open files", "files"),
            ("Max locked memory", "bytes"),
            ("Max address space", "bytes"),
            ("Max file locks", "locks"),
            ("Max pending signals", "signals"),
            ("Max msgqueue size", "bytes"),
            ("Max nice priority", ""),
            ("Max realtime priority", ""),
            ("Max realtime timeout", "us"),
        ];
        let text =
            |limit: u64| if limit == u64::MAX { "unlimited".into() } else { limit.to_string() };
        let mut table =
            format!("{:<25} {:<20} {:<20} {:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units");
        for ((name, units), [soft, hard]) in NAMES.iter().zip(self.0) {
            table += &format!("{name:<25} {:<20} {:<20} {units:<10}\n", text(soft), text(hard));
        }
        table
    }

    /// Soft and hard limit, if there is such a one.
    pub(crate) fn get(&self, which: u64) -> Option<[u64; 2]> {
        self.0.get(usize::try_from(which).ok()?).copied()
    }

    /// Sets a limit that exists.
    pub(crate) fn set(&mut self, which: u64, limit: [u64; 2]) {
        self.0[which as usize] = limit;
    }

    /// How many files may be open.
    pub(crate) fn open_files(&self) -> u64 {
        self.0[raw::RLIMIT_NOFILE as usize][0]
    }

    /// How many files may be open, once a process asks for it.
    pub(crate) fn open_files_at_most(&self) -> u64 {
        let [soft, hard] = self.0[raw::RLIMIT_NOFILE as usize];
        soft.max(hard)
    }

    /// How large a file may become.
    pub(crate) fn file_size(&self) -> u64 {
        self.0[raw::RLIMIT_FSIZE as usize][0]
    }
}
