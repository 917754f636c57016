//! Lanes of a Linux program do what the program does when it runs alone, whatever they have in common.
//!
//! Programs are those of a Debian for arm64, whose folder `KVRM_DEBIAN_ARM64` names, except in tests of programs of the
//! repository.

mod programs;
mod support;
