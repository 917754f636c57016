//! `cargo xtask test`: everything that must pass before a change goes in.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::shell::{self, Outcome, cargo, command};
use crate::{bench, deny, docs, guests, tools};

/// A step that must pass.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Outcome,
}

/// The steps in their order: quick ones that often fail come first.
const STEPS: &[Step] = &[
    Step { name: "fmt", about: "code is formatted", run: fmt },
    Step {
        name: "deny",
        about: "licences, versions and sources of dependencies are those that deny.toml allows",
        run: deny::check,
    },
    Step {
        name: "docs",
        about: "links lead somewhere, README shows a tested example, the book has every page and builds",
        run: docs::check,
    },
    Step { name: "clippy", about: "no warnings", run: clippy },
    Step {
        name: "guests",
        about: "guest programs come from their sources and give the right results",
        run: guests::check,
    },
    Step {
        name: "test",
        about: "all tests, with Unicorn, QEMU and the PTX assembler as judges",
        run: test,
    },
    Step {
        name: "python",
        about: "the Python package builds, and its tests pass on every engine here",
        run: python,
    },
    Step { name: "doc", about: "the API documentation builds without warnings", run: doc },
];

/// Options of `cargo xtask test`.
pub(crate) struct Options {
    list: bool,
    only: Vec<String>,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options { list: false, only: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => options.list = true,
                "--only" => {
                    let name = arguments.next().ok_or("--only needs the name of a step")?;
                    if !STEPS.iter().any(|step| step.name == name) {
                        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
                        return Err(format!("no step {name}; there are {}", names.join(", ")));
                    }
                    options.only.push(name.clone());
                }
                other => return Err(format!("unexpected {other}")),
            }
        }
        Ok(options)
    }

    /// Runs the steps until one fails.
    pub(crate) fn run(&self) -> Outcome {
        if self.list {
            STEPS.iter().for_each(|step| println!("{:8} {}", step.name, step.about));
            return Ok(());
        }
        let wanted =
            |step: &&Step| self.only.is_empty() || self.only.iter().any(|n| n == step.name);
        let steps: Vec<_> = STEPS.iter().filter(wanted).collect();
        let mut times = Vec::new();
        let mut failure = None;
        for (number, step) in (1..).zip(&steps) {
            println!("== {number}/{} {}: {}", steps.len(), step.name, step.about);
            let start = Instant::now();
            let result = (step.run)();
            times.push((step, result.is_ok(), start.elapsed().as_secs_f64()));
            if let Err(message) = result {
                failure = Some((step.name, message));
                break;
            }
        }
        println!("==");
        for (step, passed, seconds) in &times {
            println!("{:8} {:6} {seconds:7.1} s", step.name, if *passed { "ok" } else { "FAILED" });
        }
        if let Some((name, message)) = &failure {
            println!("{message}\nto repeat: cargo xtask test --only {name}");
        }
        let passed = times.iter().filter(|(_, passed, _)| *passed).count();
        println!("{passed} passed, {} failed", times.len() - passed);
        failure.map_or(Ok(()), |_| Err(String::new()))
    }
}

fn fmt() -> Outcome {
    tools::rust_components()?;
    shell::run(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Outcome {
    tools::rust_components()?;
    let options = ["--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    shell::run(cargo().arg("clippy").args(options))
}

fn test() -> Outcome {
    tools::emulators()?;
    tools::spirv_val()?;
    let python = tools::oracle_python()?;
    let ptxas = tools::ptxas(&python)?;
    let mut command = cargo_test();
    command.envs(tools::lavapipe()?).env("KVRM_DEBIAN_ARM64", tools::debian_arm64()?);
    shell::run(command.env("KVRM_ORACLE_PYTHON", python).env("KVRM_PTXAS", ptxas))
}

/// Runs all tests in Rust. The guide's builder has none, and would make cargo compile many crates again, with
/// other features.
fn cargo_test() -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--exclude", "kvrm-book"]);
    command
}

/// Builds the command for its own tests, and returns its path; building it separately would compile it again.
pub(crate) fn build_kvrm() -> Outcome<PathBuf> {
    shell::run(cargo_test().args(["--no-run", "--quiet"]))?;
    Ok(bench::target_folder()?.join("debug/kvrm"))
}

fn python() -> Outcome {
    // For the guide's console blocks.
    let kvrm = build_kvrm()?;
    let python = tools::python_with_kvrm()?;
    let mut command = command(python);
    command.args(["-m", "pytest", "--quiet"]).envs(tools::lavapipe()?);
    command.env("KVRM_COMMAND", kvrm);
    shell::run(command.current_dir(shell::root()))
}

fn doc() -> Outcome {
    let mut command = cargo();
    command.args(["doc", "--quiet", "--workspace", "--no-deps"]);
    shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}
