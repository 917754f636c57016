//! Guests that do their worst. Whatever they try ends in an error that they are told, a signal, or a limit that has a
//! name.

#![cfg(target_os = "linux")]

mod bombs;
mod elf;
mod guest;
mod images;
mod known;
mod program;
mod sequences;
mod support;
mod values;
