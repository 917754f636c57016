//! Python's own tests, which know many more ways to use it than command lines do.

use crate::case::{Case, Needs, Output};
use crate::debian;
use crate::place::Kvrm;

/// Runs a module of Python's tests; at least `count` of them must pass, and none may fail.
fn passes(module: &str, count: u32) {
    let Some(root) = debian() else { return };
    let case = Case {
        name: module.to_string(),
        // `test_json` starts Python again, for `json.tool`.
        needs: Needs::Processes,
        qemu_is_right: true,
        files: Vec::new(),
        input: String::new(),
        words: ["/usr/bin/python3", "-m", "unittest", module].map(str::to_string).to_vec(),
        directory: "/work",
        programs: None,
        expected: Default::default(),
    };
    let kvrm = Kvrm::new(root);
    if kvrm.runs(&case) {
        let output = kvrm.output(&case);
        assert!(ran(&output) >= count, "{module}: {}", String::from_utf8_lossy(&output.err));
    }
}

/// Returns how many tests have run, 0 unless all passed. Python prints `Ran 37 tests in 1.295s` and `OK (skipped=1)`.
fn ran(output: &Output) -> u32 {
    let text = String::from_utf8_lossy(&output.err);
    let is_ok = output.status == 0 && text.lines().any(|line| line.starts_with("OK"));
    let line = text.lines().find_map(|line| line.strip_prefix("Ran ")).filter(|_| is_ok);
    line.and_then(|line| line.split(' ').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn python_passes_its_tests_of_json() {
    passes("test.test_json", 160);
}

#[test]
fn python_passes_its_tests_of_regular_expressions() {
    passes("test.test_re", 150);
}

#[test]
fn python_passes_its_tests_of_struct() {
    passes("test.test_struct", 35);
}

#[test]
fn only_tests_that_pass_count() {
    let output = |status, err: &str| Output { status, out: Vec::new(), err: err.into() };
    assert_eq!(ran(&output(0, "...\nRan 37 tests in 1.295s\n\nOK (skipped=1)\n")), 37);
    assert_eq!(ran(&output(1, "...\nRan 37 tests in 1.295s\n\nFAILED (errors=1)\n")), 0);
    assert_eq!(ran(&output(0, "")), 0);
}
