//! The command as users see it: arguments, output, exit codes.

mod bad_input;
mod commands;
mod exec;
mod folder;
mod kernels;
#[cfg(unix)]
mod many;
#[cfg(unix)]
#[path = "../../../kvrm/tests/many/program.rs"]
mod program;
#[cfg(unix)]
mod snapshots;
mod verify;
