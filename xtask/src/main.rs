//! The chores of this repository: `cargo xtask test`, `cargo xtask bench-peers` and others.
//!
//! They install what they need beyond Rust and Python ([`tools`]).

mod bench;
mod bench_cache;
mod bench_choice;
mod bench_linux;
mod bench_linux_page;
mod bench_many;
mod bench_page;
mod bench_set;
mod bench_set_page;
mod deny;
mod docs;
mod gpu;
mod gpu_linux;
mod gpu_page;
mod gpu_results;
mod guests;
mod host;
mod plot;
mod shell;
mod targets;
mod test;
mod text;
mod timing;
mod tools;

use std::process::ExitCode;

use shell::{Outcome, cargo};

const HELP: &str = "\
The chores of this repository

Usage: cargo xtask COMMAND [OPTIONS]

Commands:
  test            Runs everything that must pass before a change goes in
      --list        Lists its steps
      --only STEP   Runs only this step (repeatable)
  conformance     Compares instructions with Unicorn and QEMU; arguments go to the `conformance` program
      cargo xtask conformance --seconds 600
      cargo xtask conformance --rows ADD_imm --cases 100000
      cargo xtask conformance lanes --engine cpu    (compares an engine with the evaluator instead)
  bench-peers     Measures kvrm beside qemu-aarch64; writes docs/BENCHMARKS.md and the table in README.md
      --rounds N    Runs of each guest under each of them, the best of which counts [5]
      --print       Prints the page, or with --only its sections, and writes nothing
      --only PARTS  Measures only these, with commas: long and short (sizes of the benchmark set, guests/bench),
                    linux (programs of Debian, benchmarks/linux), lanes (such programs in many lanes of one run);
                    prints tables and writes nothing
      --guests NAMES
                    The same, with only these programs: bench-peers --only short --guests regex,lists
  gpu-check       Builds tests and measurements for an NVIDIA GPU (with CUDA, and with Vulkan if there is a
                  driver) into target/gpu-check, and Linux programs into target/gpu-check-linux, and runs them if
                  this computer has a GPU; otherwise, copy the folders to one that has a GPU and run run.sh there
  gpu-report FOLDER...
                  Writes the measurements of gpu-check (results.json in the folder) into docs/BENCHMARKS.md
                  and plots docs/cuda-lanes.svg
      --check       Prints them beside the expected results, and writes nothing
  check-targets   Type-checks kvrm and the Python package for macOS, Windows and ARM64 Linux; rustup downloads
                  their Rust libraries
  debian-arm64    Unpacks Debian 12 for arm64 with the programs that tests run into .cache/debian-arm64, and prints
                  the folder
  coverage-page   Rewrites docs/isa.md from the instruction table, and docs/syscalls.md from that of system calls
  book            Builds the guide, docs/, as a book, and prints where its first page is

Commands install what they need: Debian packages with apt-get (QEMU and a cross compiler), Python packages (Unicorn,
ptxas), a newer QEMU and a Debian for arm64 into .cache/. KVRM_ORACLE_PYTHON names a Python that already has Unicorn,
KVRM_PTXAS an existing assembler, KVRM_NEWER_QEMU an existing qemu-aarch64, KVRM_DEBIAN_ARM64 the root of an existing
Debian.

Exit code: 0 success, 1 something failed, 2 the command line is wrong.
";

/// Why a command failed.
enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// The chore failed; the message is empty if it has already been printed.
    Chore(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Chore(message)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            eprintln!("error: {message}; see `cargo xtask --help`");
            ExitCode::from(2)
        }
        Err(Failure::Chore(message)) => {
            if !message.is_empty() {
                eprintln!("error: {message}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((command, options)) = arguments.split_first() else {
        print!("{HELP}");
        return Ok(());
    };
    let for_itself = command == "conformance";
    if !for_itself && options.iter().any(|option| option == "--help" || option == "-h") {
        print!("{HELP}");
        return Ok(());
    }
    match command.as_str() {
        "--help" | "-h" | "help" => print!("{HELP}"),
        "test" => test::Options::parse(options).map_err(Failure::Usage)?.run()?,
        "conformance" => conformance(options)?,
        "bench-peers" => bench::Options::parse(options).map_err(Failure::Usage)?.run()?,
        "gpu-check" => no_options(options).and_then(|()| Ok(gpu::check()?))?,
        "gpu-report" => gpu_page::Options::parse(options).map_err(Failure::Usage)?.run()?,
        "check-targets" => no_options(options).and_then(|()| Ok(targets::check()?))?,
        "debian-arm64" => no_options(options).and_then(|()| Ok(debian_arm64()?))?,
        "coverage-page" => no_options(options).and_then(|()| Ok(coverage_page()?))?,
        "book" => no_options(options).and_then(|()| Ok(docs::book()?))?,
        other => return Err(Failure::Usage(format!("no such command: {other}"))),
    }
    Ok(())
}

fn no_options(options: &[String]) -> Result<(), Failure> {
    match options.first() {
        Some(option) => Err(Failure::Usage(format!("unexpected {option}"))),
        None => Ok(()),
    }
}

fn conformance(arguments: &[String]) -> Outcome {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--package", "kvrm-conformance", "--bin"]);
    command.args(["conformance", "--"]).args(arguments);
    if arguments.first().is_none_or(|argument| argument != "lanes") {
        tools::emulators()?;
        command.env("KVRM_ORACLE_PYTHON", tools::oracle_python()?);
    }
    shell::run(&mut command)
}

fn debian_arm64() -> Outcome {
    println!("{}", tools::debian_arm64()?.display());
    Ok(())
}

fn coverage_page() -> Outcome {
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "kvrm-cli", "--test", "cli"]);
    command.arg("the_page_of").env("KVRM_BLESS", "1");
    shell::run(&mut command)
}
