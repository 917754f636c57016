//! Describes the computer of a measurement.

use crate::shell::{self, command};

/// The computer and the programs, by their usual names.
pub(crate) struct Host {
    pub(crate) date: String,
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) system: String,
    pub(crate) rustc: String,
    pub(crate) qemu: String,
    /// The load of the minute before the measurement.
    pub(crate) load: String,
}

impl Host {
    pub(crate) fn describe() -> Host {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let first_line = |program: &str, arguments: &[&str]| {
            let text = shell::output(command(program).args(arguments)).unwrap_or_default();
            text.lines().next().unwrap_or("unknown").to_string()
        };
        let cpu = value(&read("/proc/cpuinfo"), "model name", ':');
        let system = value(&read("/etc/os-release"), "PRETTY_NAME", '=');
        let load = read("/proc/loadavg");
        Host {
            date: first_line("date", &["-u", "+%F"]),
            cpu: cpu.unwrap_or(std::env::consts::ARCH.to_string()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            system: system.unwrap_or(std::env::consts::OS.to_string()),
            rustc: first_line("rustc", &["--version"]),
            qemu: first_line("qemu-aarch64-static", &["--version"]),
            load: load.split(' ').next().unwrap_or("unknown").to_string(),
        }
    }
}

/// Returns the value of the first `name = value` line.
pub(crate) fn value(text: &str, name: &str, separator: char) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(separator));
    let (_, value) = pairs.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().trim_matches('"').to_string())
}
