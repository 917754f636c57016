//! What is cancelled and goes on does what it would have done anyway.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kvrm_fuzzing::cancelling::check(bytes));
