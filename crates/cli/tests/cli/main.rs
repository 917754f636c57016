//! The command as users see it: arguments, output, exit codes.

mod bad_input;
mod commands;
mod exec;
mod folder;
#[cfg(unix)]
mod many;
#[cfg(unix)]
mod snapshots;
mod verify;
