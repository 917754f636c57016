//! Printing system calls.

use std::fmt::Write;

use crate::answer::{Answer, Refusal};
use crate::calls::{Argument, Entry, find};
use crate::kernel::Kernel;
use crate::memory::Memory;
use crate::signals::Signal;
use crate::thread::Tid;

/// Bytes of a string or buffer that are printed.
const SHOWN: usize = 32;

/// Called with the line of every system call.
pub type Strace = Box<dyn FnMut(&str) + Send>;

impl Kernel {
    /// Remembers a call whose answer may be that nobody is there to answer.
    pub(crate) fn trace_call(&mut self, tid: Tid, number: u64, args: &[u64; 6]) {
        if self.strace.is_none() {
            return;
        }
        let ends = matches!(
            find(number),
            Some(Entry {
                name: "exit" | "exit_group" | "execve" | "execveat" | "rt_sigreturn",
                ..
            })
        );
        if ends {
            let line = self.line(tid, number, args, "?");
            self.print(tid, &line);
        }
    }

    /// Prints a call that has its answer.
    pub(crate) fn trace_answer(&mut self, tid: Tid, number: u64, args: &[u64; 6], answer: &Answer) {
        if self.strace.is_none() || !self.threads.contains_key(&tid) {
            return;
        }
        let result = match answer {
            Ok(value) if *value < 4096 || value >> 63 != 0 => (*value as i64).to_string(),
            Ok(value) => format!("{value:#x}"),
            Err(Refusal::Errno(errno)) => format!("-1 {errno}"),
            Err(Refusal::Wait(_) | Refusal::Gone | Refusal::Host(_)) => return,
        };
        let line = self.line(tid, number, args, &result);
        self.print(tid, &line);
    }

    fn print(&mut self, tid: Tid, line: &str) {
        let many = self.threads.len() > 1;
        let line = if many { format!("[{tid}] {line}") } else { line.to_owned() };
        if let Some(strace) = &mut self.strace {
            strace(&line);
        }
    }

    fn line(&mut self, tid: Tid, number: u64, args: &[u64; 6], result: &str) -> String {
        let memory = &self.held_of(tid).memory;
        let text = match find(number) {
            None => format!("syscall_{number}({:#x}, {:#x}, {:#x})", args[0], args[1], args[2]),
            Some(entry) => {
                let mut text = format!("{}(", entry.name);
                for (index, kind) in entry.arguments.iter().enumerate() {
                    let separator = if index > 0 { ", " } else { "" };
                    write!(text, "{separator}{}", shown(*kind, index, args, memory))
                        .expect("strings take everything");
                }
                text + ")"
            }
        };
        format!("{text:<39} = {result}")
    }
}

/// An argument as text.
fn shown(kind: Argument, index: usize, args: &[u64; 6], memory: &Memory) -> String {
    let value = args[index];
    match kind {
        Argument::Fd if value as i32 == -100 => "AT_FDCWD".into(),
        Argument::Fd | Argument::Int => (value as i32).to_string(),
        Argument::Size | Argument::Offset => (value as i64).to_string(),
        Argument::Pointer if value == 0 => "NULL".into(),
        Argument::Pointer | Argument::Flags => format!("{value:#x}"),
        Argument::Mode => format!("{value:#o}"),
        Argument::Signal => Signal::from_number(value)
            .map_or(value.to_string(), |signal| format!("SIG{}", signal.name())),
        Argument::Text if value == 0 => "NULL".into(),
        Argument::Text => match memory.read_string(value, 4096) {
            Ok(text) => quoted(&text, SHOWN * 8),
            Err(_) => format!("{value:#x}"),
        },
        Argument::Bytes => {
            let len = args.get(index + 1).map_or(0, |len| *len as usize);
            let mut bytes = vec![0; len.min(SHOWN + 1)];
            match memory.read(value, &mut bytes) {
                Ok(()) => quoted(&bytes, SHOWN),
                Err(_) => format!("{value:#x}"),
            }
        }
    }
}

fn quoted(bytes: &[u8], most: usize) -> String {
    let shown = bytes[..bytes.len().min(most)].escape_ascii().to_string();
    let rest = if bytes.len() > most { "..." } else { "" };
    format!("\"{shown}\"{rest}")
}
