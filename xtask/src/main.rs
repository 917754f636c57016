//! The chores of this repository: `cargo xtask test`, `cargo xtask bench-peers` and others.
//!
//! What they need beyond Rust and Python they install themselves ([`tools`]).

mod bench;
mod bench_page;
mod deny;
mod docs;
mod gpu;
mod gpu_page;
mod gpu_results;
mod guests;
mod host;
mod plot;
mod shell;
mod targets;
mod test;
mod text;
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
      cargo xtask conformance lanes --engine cpu    (an engine and the evaluator, without them)
  bench-peers     Measures kvrm beside qemu-aarch64; writes docs/BENCHMARKS.md and the table in README.md
      --rounds N    Runs of each guest under each of them, the best of which counts [5]
      --print       Prints the page and writes nothing
  gpu-check       Builds tests and measurements for an NVIDIA GPU (with CUDA, and with Vulkan if there is a
                  driver) into target/gpu-check, and runs them if this computer has one; otherwise copy the
                  folder to one that has and run run.sh
  gpu-report FOLDER...
                  Writes what gpu-check measured (the results.json there) into docs/BENCHMARKS.md and plots
                  docs/cuda-lanes.svg
      --check       Prints it beside what is wanted, and writes nothing
  check-targets   Type-checks kvrm and the Python package for macOS, Windows and ARM64 Linux, whose Rust libraries
                  rustup downloads
  coverage-page   Writes docs/isa.md anew from the instruction table
  book            Builds the guide, docs/, as a book, and prints where its first page is

What is missing is installed: Debian packages by apt-get (QEMU and a cross compiler), Python packages
(Unicorn, ptxas) into .cache/. KVRM_ORACLE_PYTHON names a Python that already has Unicorn, KVRM_PTXAS an
assembler that is already there.

Exit code: 0 all went well, 1 something failed, 2 the command line is wrong.
";

/// What went wrong with a command.
enum Failure {
    /// The command line.
    Usage(String),
    /// Something that was tried; the message may be empty if it has been said.
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

fn coverage_page() -> Outcome {
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "kvrm-cli", "--test", "cli"]);
    command.arg("the_page_of_instructions_is_current").env("KVRM_BLESS", "1");
    shell::run(&mut command)
}
