//! Guests that do their worst, on all engines. Whatever they try ends in an error that they are told, a signal, or a limit
//! that has a name.

#![cfg(target_os = "linux")]

mod bombs;
mod images;
mod known;
mod sequences;
mod support;
