//! The command line of kvrm. It contains no emulator: commands set up a [`kvrm::Machine`], run it and print
//! results.

mod args;
mod asm;
mod bench;
mod demo;
mod devices;
mod disasm;
mod exec;
mod exec_report;
mod failure;
mod files;
mod guests;
mod isa;
mod lanes_csv;
mod manual;
mod picture;
mod program;
mod progress;
mod registers;
#[cfg(unix)]
mod run;
mod start;
#[cfg(unix)]
mod syscalls;
mod text;
mod timing;
mod verify;
mod verify_report;

use std::io::{BufWriter, Write};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde::Serialize;

use failure::{Failure, Result};

/// Runs unmodified AArch64 (ARM64) programs, thousands at a time
#[derive(Parser)]
#[command(
    name = "kvrm",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Start with `kvrm demo`. `kvrm help COMMAND` shows a command's options and examples.

Kernels compiled for a GPU, and the code that the cpu engine interprets with, are kept in the user's cache folder. The \
environment variable KVRM_CACHE_DIR names another folder, or turns this off (KVRM_CACHE_DIR=off).

Exit code: 0 success, 1 something failed (a file, memory, a wrong result), 2 the command line is wrong, \
124 the time of --timeout was over, 130 Ctrl-C."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a Linux program in a sandbox
    #[cfg(unix)]
    Run(run::Run),
    /// Draws the Mandelbrot set; a separate machine computes each row
    Demo(demo::Demo),
    /// Runs a file of A64 code in one or many machines
    Exec(exec::Exec),
    /// Compares engines: runs a program on several and shows the first instruction after which they differ
    Verify(verify::Verify),
    /// Measures the speed of an engine
    Bench(bench::Bench),
    /// Assembles A64 code
    Asm(asm::Asm),
    /// Disassembles A64 code
    Disasm(disasm::Disasm),
    /// Lists the engines on this computer
    Devices(devices::Devices),
    /// Lists the implemented instructions
    Isa(isa::Isa),
    /// Lists the system calls that Linux programs can make
    #[cfg(unix)]
    Syscalls(syscalls::Syscalls),
    /// Prints a completion script for a shell
    Completions(manual::Completions),
    /// Prints the manual page, or writes those of all commands to a folder
    Man(manual::Man),
}

fn main() {
    let matches = with_negative_numbers(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let mut out = BufWriter::new(std::io::stdout().lock());
    let result = run(&cli.command, &mut out);
    let flushed = out.flush().map_err(Failure::from);
    // Nobody wants a kernel any more that is still being compiled.
    kvrm::end_process(match result.and(flushed) {
        Ok(()) => 0,
        Err(failure) => {
            match &failure {
                Failure::Interrupted => eprintln!("interrupted"),
                failure => {
                    failure.message().into_iter().for_each(|text| eprintln!("error: {text}"));
                }
            }
            #[cfg(unix)]
            if let Failure::Signal(number) = failure {
                run::die_by(number);
            }
            failure.exit_code()
        }
    })
}

/// Lets options take negative numbers, so that the error says what is wrong with the number. Otherwise clap would take
/// it for an option that does not exist.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command.mut_subcommands(|command| {
        command.mut_args(|arg| {
            let takes = arg.get_long().is_some() && arg.get_action().takes_values();
            arg.allow_negative_numbers(takes)
        })
    })
}

fn run(command: &Command, out: &mut impl Write) -> Result<()> {
    match command {
        #[cfg(unix)]
        Command::Run(run) => run.run(out),
        Command::Demo(demo) => demo.run(out),
        Command::Exec(exec) => exec.run(out),
        Command::Verify(verify) => verify.run(out),
        Command::Bench(bench) => bench.run(out),
        Command::Asm(asm) => asm.run(out),
        Command::Disasm(disasm) => disasm.run(out),
        Command::Devices(devices) => devices.run(out),
        Command::Isa(isa) => isa.run(out),
        #[cfg(unix)]
        Command::Syscalls(syscalls) => syscalls.run(out),
        Command::Completions(completions) => completions.run(out),
        Command::Man(man) => man.run(out),
    }
}

/// Prints a value as indented JSON.
fn write_json(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}
