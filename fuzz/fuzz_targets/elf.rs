//! Any file as a Linux program: it runs or is refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kvrm_fuzzing::linux::files::check(bytes));
