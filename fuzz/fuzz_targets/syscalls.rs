//! Any system calls of a Linux program: nothing panics, and engines agree.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kvrm_fuzzing::linux::calls::check(bytes));
