//! Any text is assembled or refused, and what is assembled can be decoded.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kvrm_fuzzing::assemble::check(bytes));
