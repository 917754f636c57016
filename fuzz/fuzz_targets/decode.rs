//! Any word can be decoded, and what it decodes to is sound.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kvrm_fuzzing::decode::check(bytes));
