//! A program larger than a region does the same on the CPU engine and on the reference.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kvrm_fuzzing::large::check(bytes));
