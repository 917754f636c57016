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
mod guests;
mod isa;
mod lanes_csv;
mod manual;
mod picture;
mod program;
mod progress;
mod start;
mod text;
mod timing;
mod verify;
mod verify_report;

use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
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

Kernels compiled for a GPU are kept in the user's cache folder. The environment variable KVRM_CACHE_DIR names \
another folder, or turns this off (KVRM_CACHE_DIR=off).

Exit code: 0 success, 1 something failed (a file, memory, a wrong result), 2 the command line is wrong, \
130 Ctrl-C."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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
    /// Prints a completion script for a shell
    Completions(manual::Completions),
    /// Prints the manual page, or writes those of all commands to a folder
    Man(manual::Man),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let result = run(&cli.command, &mut out);
    let flushed = out.flush().map_err(Failure::from);
    match result.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            match &failure {
                Failure::Interrupted => eprintln!("interrupted"),
                failure => {
                    failure.message().into_iter().for_each(|text| eprintln!("error: {text}"));
                }
            }
            failure.exit_code().into()
        }
    }
}

fn run(command: &Command, out: &mut impl Write) -> Result<()> {
    match command {
        Command::Demo(demo) => demo.run(out),
        Command::Exec(exec) => exec.run(out),
        Command::Verify(verify) => verify.run(out),
        Command::Bench(bench) => bench.run(out),
        Command::Asm(asm) => asm.run(out),
        Command::Disasm(disasm) => disasm.run(out),
        Command::Devices(devices) => devices.run(out),
        Command::Isa(isa) => isa.run(out),
        Command::Completions(completions) => completions.run(out),
        Command::Man(man) => man.run(out),
    }
}

/// Reads a file, or standard input if its name is `-`.
fn read_file(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.map_err(|error| Failure::file("read", path, &error))?;
    Ok(bytes)
}

/// Reads a file of machine code, or standard input if its name is `-`.
fn read_code(path: &Path) -> Result<Vec<u8>> {
    let code = read_file(path)?;
    match other_than_code(&code) {
        Some(what) => Err(Failure::Host(format!("{} is {what}", path.display()))),
        None => Ok(code),
    }
}

/// Says what a file is that is not machine code, and what to do with it.
fn other_than_code(bytes: &[u8]) -> Option<&'static str> {
    // Code has bytes of zero and the like nearly everywhere.
    let is_text = |text: &str| text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace());
    match bytes {
        [] => Some("empty"),
        [0x7f, b'E', b'L', b'F', ..] => Some(
            "an ELF file, which kvrm does not load: it runs plain machine code, such as `objcopy -O binary` takes \
             out of a program that needs no operating system",
        ),
        _ if std::str::from_utf8(bytes).is_ok_and(is_text) => {
            Some("text, and not machine code: if it is assembly, `kvrm asm` makes a program of it")
        }
        _ => None,
    }
}

/// Prints a value as indented JSON.
fn write_json(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}
