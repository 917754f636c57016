//! Lanes in shared memory do together what each does alone.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kvrm_fuzzing::lanes::check(bytes));
