//! `kvrm run --boot-until` and `--save`, and going on from a snapshot.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::folder::Folder;
use crate::program;

/// A folder with the program.
fn folder() -> Folder {
    let folder = Folder::new();
    program::write(&folder.path().join("program"));
    folder
}

fn guest(name: &str) -> String {
    format!("{}/../../guests/linux/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_program_goes_on_where_it_was_kept() {
    let folder = folder();
    for (name, point, command, input) in [
        ("answer", "first-read", "./program answer", &b"some input\n"[..]),
        ("collatz", "0x4001a0", &format!("{} 27 1", guest("collatz")), b""),
        ("sha256", "4194720", &format!("{} 20 1", guest("sha256")), b""),
    ] {
        let saved = folder.kvrm(&format!("run --boot-until {point} --save s.snap {command}"));
        assert_eq!((saved.code, &saved.stdout[..]), (0, ""), "{name}: {}", saved.stderr);
        let lines: Vec<_> = saved.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{}", saved.stderr);
        assert!(lines[0].starts_with("kvrm: s.snap has the program at "), "{}", saved.stderr);
        let bytes = fs::metadata(folder.path().join("s.snap")).unwrap().len();
        let said = lines[0].rsplit(", ").next().unwrap().replace([',', ' '], "");
        assert_eq!(said, format!("{bytes}bytes"));
        let run = |what: &str, report: &str| {
            let ran = folder.kvrm_with_input(&format!("run --report-json {report} {what}"), input);
            let report = fs::read_to_string(folder.path().join(report)).unwrap();
            (ran.code, ran.stdout, ran.stderr, report)
        };
        let whole = run(command, "whole.json");
        for engine in ["cpu", "eval"] {
            let went_on = run(&format!("--engine {engine} s.snap"), "on.json");
            assert_eq!(went_on, whole, "{name} on {engine}");
        }
    }
}

#[test]
fn lanes_go_on_from_a_snapshot() {
    let folder = folder();
    let lines: String = (0..20).map(|n| format!("line {}\n", "x".repeat(n % 7))).collect();
    folder.file("lines", lines);
    let table = |options: &str, name: &str| {
        folder.output(&format!("run --stdin-from lines --results {name} {options}"));
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        let mut rows: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        rows.sort_by_key(|row| row["lane"].as_u64());
        rows
    };
    let whole = table("./program answer", "whole.jsonl");
    assert_eq!(whole.len(), 20);
    let saved = folder.kvrm("run --boot-until first-read --save s.snap ./program answer");
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    assert_eq!(table("s.snap", "on.jsonl"), whole);
    assert_eq!(table("--threads 1 --lanes 3 s.snap", "one.jsonl"), whole);
    assert_eq!(table("--boot-until first-read ./program answer", "boot.jsonl"), whole);
}

#[test]
fn arguments_may_be_others_until_they_are_used() {
    let folder = folder();
    let collatz = guest("collatz");
    let saved = folder.kvrm(&format!("run --boot-until 0x4001a0 --save s.snap {collatz} 27 1"));
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    let whole = folder.output(&format!("run {collatz} 97 1"));
    assert_eq!(folder.output("run s.snap 97 1"), whole);
    folder.output("run --lanes 12 --results t.jsonl s.snap 9{lane} 1");
    folder.output(&format!("run --lanes 12 --results w.jsonl {collatz} 9{{lane}} 1"));
    let sorted = |name: &str| {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    let (on, whole) = (sorted("t.jsonl"), sorted("w.jsonl"));
    for (on, whole) in on.iter().zip(&whole) {
        let [on, whole] = [on, whole].map(|line| serde_json::from_str::<Value>(line).unwrap());
        match whole["lane"].as_u64().unwrap() {
            0..10 => assert_eq!(on, whole),
            _ => {
                let error = on["error"].as_str().unwrap();
                assert!(error.contains("can only be another one of that length"), "{error}");
            }
        }
    }
    let saved = folder.kvrm(&format!("run --boot-until 0x400140 --save u.snap {collatz} 27 1"));
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    assert_eq!(
        folder.error("run u.snap 97 1", 1),
        "error: argument 1 was used before the snapshot was made, so it stays \"27\"\n"
    );
}

#[test]
fn what_cannot_be_kept_is_an_error() {
    let folder = folder();
    let collatz = guest("collatz");
    let save = "run --boot-until first-read --save s.snap";
    for (command, code, message) in [
        (
            format!("{save} {collatz} 27 1"),
            1,
            "the program ended before it used its standard input",
        ),
        (format!("{save} ./program crash"), 1, "it was killed by SIGSEGV at 0x400"),
        (format!("{save} --max-instructions 9 ./program loop"), 1, "the limit of instructions"),
        (format!("{save} --timeout 100ms ./program loop"), 124, "the time of --timeout was over"),
        (
            format!("run --boot-until main --save s.snap {collatz} 27 1"),
            1,
            "has loaded has a function main",
        ),
        (
            format!("run --boot-until 0x400078 --save s.snap {collatz} 27 1"),
            1,
            "the program ended before it reached 0x400078: it exited with code 0",
        ),
        (
            format!("run --boot-until 0x4000f --save s.snap {collatz}"),
            2,
            "is no point in a program",
        ),
        (format!("{save} --realtime ./program answer"), 2, "the program would see the real time"),
        (format!("{save} --bind .:/w:rw ./program answer"), 2, "could write folders of the host"),
        (format!("{save} --lanes 3 ./program answer"), 2, "cannot be used with"),
        ("run --boot-until first-read ./program answer".into(), 2, "add --save FILE"),
        (
            "run --boot-until first-read --lanes 3 ./program a{lane}".into(),
            2,
            "not with {lane} in arguments",
        ),
        ("run --save s.snap ./program answer".into(), 2, "--boot-until"),
    ] {
        let error = folder.error(&command, code);
        assert!(error.contains(message), "{command}: {error}");
        assert!(!folder.path().join("s.snap").exists(), "{command}");
    }
}

#[test]
fn what_belongs_to_the_beginning_cannot_be_given_again() {
    let folder = folder();
    let saved = folder.kvrm("run --boot-until first-read --save s.snap ./program answer");
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    for (options, code, message) in [
        ("--seed 3", 2, "the seed of random numbers belongs to the beginning"),
        ("--cwd /tmp", 2, "the directory that it begins in belongs to the beginning"),
        ("--realtime", 2, "the real time belongs to the beginning"),
        ("--bind .:/w:rw", 2, "a folder that can be written belongs to the beginning"),
        ("--bind .:/w", 1, "it was made without anything of the host as /w"),
        ("--root .", 1, "it was made without anything of the host as /"),
        ("--max-memory 4K", 1, "more memory at that point than the limit of memory"),
        ("--env A=1", 1, "made without the variable A"),
    ] {
        let error = folder.error(&format!("run {options} s.snap"), code);
        assert!(error.contains(message), "{options}: {error}");
    }
    let path = folder.path().join("s.snap");
    let good = fs::read(&path).unwrap();
    let broken = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        folder.error("run s.snap", 1)
    };
    assert!(broken(&good[..good.len() - 1]).contains("its checksum is wrong"));
    let mut other = good.clone();
    other[8] += 1;
    assert!(broken(&other).contains("format 2"), "{}", broken(&other));
    fs::write(&path, &good).unwrap();
    fs::remove_file(folder.path().join("program")).unwrap();
    assert!(folder.error("run s.snap", 1).contains("which cannot be opened"));
}

#[test]
fn a_snapshot_of_somebody_else_shows_only_what_the_caller_says() {
    let (folder, collatz) = (Folder::new(), guest("collatz"));
    let saved = folder.kvrm(&format!("run --boot-until 0x4001a0 --save s.snap {collatz} 27 1"));
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    let as_somebody_else = |options: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kvrm"));
        command.arg("run").args(options.split_whitespace()).arg("s.snap");
        command.current_dir(folder.path()).env("KVRM_CACHE_DIR", folder.path().join("cache"));
        command.output().unwrap()
    };
    let refused = as_somebody_else("");
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("somebody else has made the snapshot"), "{error}");
    let program = fs::canonicalize(&collatz).unwrap();
    assert!(error.contains(&format!("{0} as {0}", program.display())), "{error}");
    let told = as_somebody_else(&format!("--bind {}", program.display()));
    assert_eq!(told.stdout, folder.output(&format!("run {collatz} 27 1")).into_bytes());
}
