//! No program runs past its time, or takes memory without end.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kvrm_fuzzing::limits::check(bytes));
