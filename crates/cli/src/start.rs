//! `kvrm bench --only start`: measures the time to the first instruction.
//!
//! A driver is initialised once per process, so each start is a separate process: `kvrm exec` for one
//! instruction, with a kernel cache that is empty at first.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kvrm::a64::{Instruction, table};
use kvrm::{EngineKind, MemoryModel};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::args::EngineArgs;
use crate::bench::ended_early;
use crate::failure::{Failure, Result};
use crate::guests::{self, GUESTS};
use crate::text;
use crate::timing::Timing;

/// Its name for `--only`.
pub(crate) const NAME: &str = "start";

/// One start.
#[derive(Serialize)]
pub(crate) struct Start {
    program: &'static str,
    /// Whether compiled kernels were in the cache; `None` if the engine has no kernels.
    cache: Option<&'static str>,
    /// From the start of the process to its end.
    process_seconds: f64,
    timing: Timing,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = self.cache.map_or(String::new(), |cache| format!(" {cache}"));
        let steps = self.timing.text("first instruction");
        let process = text::seconds(Duration::from_secs_f64(self.process_seconds));
        write!(f, "start {}{cache}: {steps}; process {process}", self.program)
    }
}

/// Starts a small program and one that needs many handlers, cold and, if the engine has kernels, warm.
pub(crate) fn measure(
    engine: &EngineArgs,
    lanes: usize,
    model: MemoryModel,
    deadline: Option<Instant>,
) -> Result<Vec<Start>> {
    let small = &GUESTS[0];
    let mut starts = Vec::new();
    for (program, code) in [(small.name, small.code.to_vec()), ("many_rows", many_rows())] {
        let folder = TempDir::new().map_err(temporary)?;
        let file = folder.path().join("program.bin");
        std::fs::write(&file, code).map_err(temporary)?;
        let start = || {
            let mut command = command(folder.path(), &file, engine, lanes)?;
            if let Some(deadline) = deadline {
                let left = deadline.saturating_duration_since(Instant::now()).as_millis();
                // At least one, as there is no timeout of nothing.
                command.args(["--timeout", &format!("{}ms", left.max(1))]);
            }
            run(command.args(["--model", model.name()]), program)
        };
        let mut first = start()?;
        if !first.timing.kernels.is_empty() || engine.engine == EngineKind::Cpu {
            first.cache = Some("cold");
            starts.extend([first, Start { cache: Some("warm"), ..start()? }]);
        } else {
            starts.push(first);
        }
    }
    Ok(starts)
}

fn temporary(error: std::io::Error) -> Failure {
    Failure::Host(format!("cannot write a temporary file: {error}"))
}

fn command(cache: &Path, file: &Path, engine: &EngineArgs, lanes: usize) -> Result<Command> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Host(format!("cannot find this program: {error}")))?;
    let mut command = Command::new(program);
    command.arg("exec").arg(file).args(["--json", "--timing", "--lane", "0"]);
    command.args(["--max-cycles", "1", "--engine", engine.engine.name()]);
    command.args(["--memory", &guests::MEMORY.to_string(), "--lanes", &lanes.to_string()]);
    command.args(["--threads", &engine.threads.to_string()]);
    command.args(["--code-memory", &engine.code.code_memory.to_string()]);
    command.env("KVRM_CACHE_DIR", cache);
    // CUDA has a cache of its own, which would make a cold start a little warmer.
    command.env("CUDA_CACHE_DISABLE", "1");
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    Ok(command)
}

/// The relevant part of the other process's output.
#[derive(Deserialize)]
struct Document {
    timing: Timing,
}

fn run(command: &mut Command, program: &'static str) -> Result<Start> {
    let failed = |why| Failure::Host(format!("the process that was to be measured failed: {why}"));
    let start = Instant::now();
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    let process_seconds = start.elapsed().as_secs_f64();
    match output.status.code() {
        Some(0) => {
            let document: Document = serde_json::from_slice(&output.stdout)
                .map_err(|error| failed(error.to_string()))?;
            Ok(Start { program, cache: None, process_seconds, timing: document.timing })
        }
        Some(124) => Err(ended_early(true)),
        Some(130) => Err(Failure::Interrupted),
        _ => Err(failed(output.status.to_string())),
    }
}

/// Rows in the larger program.
const MANY: usize = 200;

/// Rows from all over the table.
fn spread() -> impl Iterator<Item = &'static Instruction> {
    (0..MANY).map(|i| &table()[i * table().len() / MANY])
}

/// Makes a program from which words of many rows can be reached; none of these words is executed.
fn many_rows() -> Vec<u8> {
    /// cbz x0, .+8: execution continues at the next word or the one after it.
    const SKIP: u32 = 0xb400_0040;
    let words = spread().flat_map(|row| [SKIP, word_of(row)]);
    words.flat_map(u32::to_le_bytes).collect()
}

/// Returns a word of a row. Zeros in its free bits keep branches from going elsewhere; a few rows do not allow
/// that.
fn word_of(row: &Instruction) -> u32 {
    let scattered = (1u32..).map(|n| n.wrapping_mul(0x9e37_79b9));
    let words = [0].into_iter().chain(scattered);
    let mut words = words.map(|free| free & !row.pattern.mask | row.pattern.value);
    words.find(|word| row.matches(*word)).expect("every row has a word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_words() {
        let code = many_rows();
        let words = code.chunks_exact(8).map(|pair| &pair[4..]);
        let words = words.map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        for (row, word) in spread().zip(words) {
            assert_eq!(kvrm::a64::decode(word).map(|row| row.name), Some(row.name));
        }
        assert_eq!(code.len(), 8 * MANY);
        assert!(table().iter().all(|row| row.matches(word_of(row))));
    }
}
