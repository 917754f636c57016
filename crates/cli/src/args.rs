//! Parts that commands share: parsing numbers, choosing engine and memory.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use kvrm::{EngineKind, MachineBuilder, MemoryModel, parse_unsigned};

/// Which engine runs the lanes.
#[derive(Clone, clap::Args)]
pub(crate) struct EngineArgs {
    /// Engine to run on (`kvrm devices` lists them). `auto` takes an NVIDIA GPU for very many lanes, else the
    /// CPU
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine_parser())]
    pub(crate) engine: EngineKind,

    /// GPU to run on, or several to split the lanes over, as in 0,1 (`kvrm devices` lists them). Default: the
    /// first usable one. Only private memory can be split
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = device)]
    device: Vec<usize>,

    /// Host threads for the cpu engine; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub(crate) threads: u16,

    #[command(flatten)]
    pub(crate) code: CodeArgs,

    /// Interpret all code, on engines that otherwise translate what is executed often
    #[arg(long)]
    pub(crate) no_translate: bool,
}

/// What translated code may take.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct CodeArgs {
    /// Memory for code that the cpu engine translates, over all lanes: 4K or more. When it is spent, all of it is
    /// translated anew as it is needed
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub(crate) code_memory: u64,
}

impl EngineArgs {
    /// Starts building a machine on this engine.
    pub(crate) fn builder(&self) -> MachineBuilder {
        let builder = kvrm::Machine::builder().engine(self.engine).threads(self.threads.into());
        let builder = builder.devices(self.device.iter().copied());
        let builder = builder.code_memory(self.code.code_memory);
        if self.no_translate { builder.translate_after(u32::MAX) } else { builder }
    }

    /// Returns the same options, with the engine of `machine`.
    pub(crate) fn as_for(&self, machine: &kvrm::Machine) -> Result<EngineArgs, kvrm::Error> {
        Ok(EngineArgs { engine: machine.engine().parse()?, ..self.clone() })
    }
}

/// How a run is launched.
#[derive(Clone, clap::Args)]
pub(crate) struct LaunchArgs {
    /// Run in a single launch instead of many short ones. This freezes a display on the same GPU, and the
    /// system may kill the launch. Has an effect only on the cuda engine
    #[arg(long)]
    pub(crate) mega: bool,
}

/// The time that guests may run.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct TimeoutArgs {
    /// Time that guests may run: 500ms, 10s, 2m or 1h. Then the run ends as after Ctrl-C, with exit code 124. By
    /// default, there is no limit of time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
}

impl TimeoutArgs {
    /// Returns the time.
    #[cfg(unix)]
    pub(crate) fn time(self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the end of the time that begins now; `None` if it is too far away to be represented.
    pub(crate) fn deadline(self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }
}

fn engine_parser() -> impl TypedValueParser<Value = EngineKind> {
    let names = EngineKind::ALL.map(EngineKind::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<EngineKind>())
}

/// A particular engine, and possibly one of its GPUs: `wgpu`, `wgpu:1`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineOn {
    pub(crate) engine: EngineKind,
    pub(crate) device: Option<usize>,
}

impl EngineOn {
    pub(crate) fn builder(self) -> MachineBuilder {
        kvrm::Machine::builder().engine(self.engine).devices(self.device)
    }
}

impl fmt::Display for EngineOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device {
            Some(device) => write!(f, "{}:{device}", self.engine.name()),
            None => f.write_str(self.engine.name()),
        }
    }
}

const CERTAIN: [EngineKind; 4] =
    [EngineKind::Cpu, EngineKind::Cuda, EngineKind::Wgpu, EngineKind::Eval];

/// Parses a particular engine; `auto` is not one.
pub(crate) fn engine_on(text: &str) -> Result<EngineOn, String> {
    let (name, number) = match text.split_once(':') {
        Some((name, number)) => (name, Some(number)),
        None => (text, None),
    };
    let engine = CERTAIN
        .into_iter()
        .find(|engine| engine.name() == name)
        .ok_or_else(|| format!("it must be one of {}", CERTAIN.map(EngineKind::name).join(", ")))?;
    Ok(EngineOn { engine, device: number.map(device).transpose()? })
}

/// The memory model of the lanes.
#[derive(Clone, clap::Args)]
pub(crate) struct ModelArgs {
    /// Memory of the lanes. private: one per lane. shared: one for all. read-only: one for all; a store stops
    /// the lane with FAULT. double-buffered: one for all; a run's changes stay only if no lane ends with FAULT,
    /// UNDEFINED or OUT_OF_MEMORY and the run is not cancelled
    #[arg(long, value_name = "NAME", default_value = "private", value_parser = model_parser())]
    model: MemoryModel,

    /// Same as --model private
    #[arg(long, conflicts_with_all = ["shared", "model"])]
    private: bool,

    /// Same as --model shared
    #[arg(long, conflicts_with = "model")]
    shared: bool,
}

fn model_parser() -> impl TypedValueParser<Value = MemoryModel> {
    let names = MemoryModel::ALL.map(MemoryModel::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<MemoryModel>())
}

impl ModelArgs {
    pub(crate) fn model(&self) -> MemoryModel {
        if self.shared { MemoryModel::Shared } else { self.model }
    }
}

/// Parses a number of bytes: `4M`, `64KiB`, `1MB`, `0x100000`, `65536`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    kvrm::parse_size(text).map_err(|error| error.to_string())
}

/// Parses the size of a memory, in bytes.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    kvrm::parse_memory_size(text).map_err(|error| error.to_string())
}

/// Parses a time longer than zero: `500ms`, `10s`, `1.5m`, `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let number = |digits: &str| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        plain.then(|| digits.parse::<f64>().ok()).flatten()
    };
    let seconds = units
        .into_iter()
        .find_map(|(unit, seconds)| Some(number(text.strip_suffix(unit)?)? * seconds));
    match seconds.map(Duration::try_from_secs_f64) {
        Some(Ok(Duration::ZERO)) => Err("this leaves no time at all".to_string()),
        Some(Ok(time)) => Ok(time),
        Some(Err(_)) => Err("too long".to_string()),
        None => Err("not a time: write a number and ms, s, m or h (500ms, 10s, 2m)".to_string()),
    }
}

/// Parses a count: `1000`, `50K`, `2G`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    kvrm::parse_with_suffix(text, 1000).ok_or_else(|| {
        let too_large = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match too_large {
            true => "too large: the most is 18446744073709551615",
            false if text.starts_with('-') => "it cannot be negative",
            false => "not a count: write a whole number (1000000) or use K, M, G or T (1M)",
        }
        .to_string()
    })
}

/// A number of things, at least one.
pub(crate) fn some(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("at least 1 is needed".to_string()),
        n => Ok(n),
    }
}

/// The number of a GPU.
pub(crate) fn device(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| {
        "not the number of a GPU: write 0 for the first, or 0,1 for two; `kvrm devices` lists them"
            .to_string()
    })
}

/// Parses an address of code.
pub(crate) fn code_address(text: &str) -> Result<u64, String> {
    match address(text)? {
        address if address.is_multiple_of(4) => Ok(address),
        _ => Err("instructions are at multiples of 4".to_string()),
    }
}

/// Parses a number of lanes.
pub(crate) fn lanes(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("a machine needs at least one lane".to_string()),
        n => usize::try_from(n).map_err(|_| "too many lanes".to_string()),
    }
}

/// Parses a guest address.
pub(crate) fn address(text: &str) -> Result<u64, String> {
    parse_unsigned(text).ok_or_else(|| "not an address: write 0x10000 or 65536".to_string())
}

/// Parses an A64 instruction word, always in hexadecimal.
pub(crate) fn word(text: &str) -> Result<u32, String> {
    let digits = text.trim_start_matches("0x").trim_start_matches("0X");
    let plain = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    let word = plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
    word.ok_or_else(|| "not an instruction word: write 8 hexadecimal digits (91000420)".to_string())
}

/// Parses the argument of `--dump`: `0x20000:64`.
pub(crate) fn span(text: &str) -> Result<(u64, u64), String> {
    let (start, len) =
        text.split_once(':').ok_or("not a range of memory: write ADDRESS:LENGTH (0x20000:64)")?;
    match size(len)? {
        0 => Err("a length of zero shows nothing".to_string()),
        len => Ok((address(start)?, len)),
    }
}

/// Parses the argument of `--lane`: `3` or `0..4` (without 4).
pub(crate) fn lane_range(text: &str) -> Result<Range<usize>, String> {
    let number = |text: &str| {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<usize>().ok()).flatten()
    };
    let range = match text.split_once("..") {
        Some((start, end)) => number(start).zip(number(end)),
        None => number(text).and_then(|n| Some((n, n.checked_add(1)?))),
    };
    match range {
        Some((start, end)) if start < end => Ok(start..end),
        _ => {
            Err("not a choice of lanes: write 3, or 0..4 for 0 to 3, or both (0..4,9)".to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("4M"), Ok(4 << 20));
        assert_eq!(size("64k"), Ok(64 << 10));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("0x10_0000"), Ok(1 << 20));
        assert_eq!(size("12"), Ok(12));
        assert_eq!((size("4MB"), size("4mb")), (Ok(4_000_000), Ok(4_000_000)));
        assert_eq!(
            (size("64KiB"), size("2TB"), size("7B")),
            (Ok(65536), Ok(2_000_000_000_000), Ok(7))
        );
        for bad in [
            "",
            "M",
            "1e30",
            "-4M",
            "+4",
            "4.5M",
            "16777216T",
            "0x",
            "4 M",
            "_",
            "B",
            "MB",
            "4iB",
            "4MiBB",
            "4BB",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
        // A memory has whole pages; what was written to the byte has to be right.
        assert_eq!(
            (memory("4MB"), memory("4M"), memory("5000")),
            (Ok(4_001_792), Ok(4 << 20), Ok(5000))
        );
    }

    #[test]
    fn durations() {
        let millis = |n| Ok(Duration::from_millis(n));
        assert_eq!((duration("500ms"), duration("10s")), (millis(500), millis(10_000)));
        assert_eq!((duration("1.5m"), duration("2h")), (millis(90_000), millis(7_200_000)));
        for bad in [
            "",
            "10",
            "s",
            "ms",
            "-1s",
            "1e3s",
            "0s",
            "0ms",
            "infs",
            "1 s",
            "99999999999999999999s",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_are_decimal() {
        assert_eq!(count("5K"), Ok(5_000));
        assert_eq!(count("3G"), Ok(3_000_000_000));
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        assert!(count("18446744073709551616").is_err());
        assert!(lanes("0").is_err());
    }

    #[test]
    fn engines_with_a_device() {
        for text in ["cpu", "wgpu", "wgpu:1", "cuda:0"] {
            assert_eq!(engine_on(text).unwrap().to_string(), text);
        }
        for bad in ["", "auto", "abacus", "wgpu:", "wgpu:x", "wgpu:-1", "wgpu:0:1"] {
            assert!(engine_on(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn spans_and_ranges() {
        assert_eq!(span("0x20000:64"), Ok((0x20000, 64)));
        assert_eq!(span("16:4K"), Ok((16, 4096)));
        assert!(span("0x20000").is_err() && span("0:0").is_err());
        assert_eq!(lane_range("3"), Ok(3..4));
        assert_eq!(lane_range("2..5"), Ok(2..5));
        for bad in ["", "..", "5..2", "2..2", "-1", "1..=3", "18446744073709551615"] {
            assert!(lane_range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn words() {
        assert_eq!(word("91000420"), Ok(0x9100_0420));
        assert_eq!(word("0xd4400000"), Ok(0xd440_0000));
        assert!(word("").is_err() && word("123456789").is_err() && word("+1").is_err());
    }
}
