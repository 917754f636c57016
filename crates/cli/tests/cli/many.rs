//! `kvrm run` in many lanes: rows from options and files, tables, and going on with them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::folder::Folder;
use crate::program;

/// A folder with the program.
fn folder() -> Folder {
    let folder = Folder::new();
    program::write(&folder.path().join("program"));
    folder
}

/// The lines of a table, by lane; each lane is there once.
fn table(path: &Path) -> BTreeMap<u64, Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut lanes = BTreeMap::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let lane = row["lane"].as_u64().unwrap();
        assert!(lanes.insert(lane, row).is_none(), "lane {lane} is there twice");
    }
    lanes
}

fn outputs(path: &Path) -> Vec<String> {
    table(path).values().map(|row| row["stdout"].as_str().unwrap().to_string()).collect()
}

#[test]
fn lanes_have_their_number_in_arguments_and_variables() {
    let folder = folder();
    folder.output(
        "run --lanes 3 --results t.jsonl --env N={lane} --env M={m} ./program echo a{lane}b {{lane}} {x} {lane",
    );
    let expected = |lane| format!("a{lane}b\n{{lane}}\n{{x}}\n{{lane\nM={{m}}\nN={lane}\n");
    assert_eq!(outputs(&folder.path().join("t.jsonl")), [0, 1, 2].map(expected));
}

#[test]
fn without_lanes_nothing_is_replaced() {
    let output = folder().output("run ./program echo {lane} {{lane}}");
    assert_eq!(output, "{lane}\n{{lane}}\n");
}

#[test]
fn rows_come_from_lines() {
    let folder = folder();
    folder.file("args", "one 'two words'\r\n\n\"a\\\"b\" '' c\\ d");
    folder.file("stdin", "not read\n\nlast");
    folder.file("env", "A=1 B='x y'\nA=\nC==");
    folder.output(
        "run --args-from args --stdin-from stdin --env-from env --env A=0 --results t.jsonl ./program echo first",
    );
    assert_eq!(
        outputs(&folder.path().join("t.jsonl")),
        ["first\none\ntwo words\nA=1\nB=x y\n", "first\nA=\n", "first\na\"b\n\nc d\nA=0\nC==\n",]
    );
    folder.output("run --stdin-from stdin --results s.jsonl ./program answer");
    assert_eq!(outputs(&folder.path().join("s.jsonl")), ["not read\n", "\n", "last\n"]);
    let many = "run --args-from - --lanes 2 --results a.jsonl ./program echo";
    assert_eq!(folder.kvrm_with_input(many, b"1\n2\n3\n4\n5\n").code, 0);
    assert_eq!(outputs(&folder.path().join("a.jsonl")), ["1\n", "2\n", "3\n", "4\n", "5\n"]);
}

#[test]
fn rows_come_from_the_files_of_a_folder() {
    let folder = folder();
    fs::create_dir(folder.path().join("in")).unwrap();
    for (name, text) in [("b", "second"), ("a", "first\nfile"), ("c", "")] {
        folder.file(&format!("in/{name}"), text);
    }
    folder.output("run --stdin-from in --results t.jsonl ./program answer");
    assert_eq!(outputs(&folder.path().join("t.jsonl")), ["first\nfile", "second", ""]);
    fs::create_dir(folder.path().join("in/d")).unwrap();
    let error = folder.error("run --stdin-from in ./program answer", 2);
    assert!(error.contains("in/d is not a file"), "{error}");
}

#[test]
fn a_row_says_everything_about_its_lane() {
    let folder = folder();
    folder.file("args", "answer\ncrash\ndisk\nloop\nmemory\noutput\nsystem\n");
    folder.file("stdin", b"a,\"\xff\n\n\n\n\n\n\n");
    let options = "--args-from args --stdin-from stdin --max-instructions 5M --max-memory 2G --max-file-bytes 100K --max-output 100K";
    folder.output(&format!("run {options} --results t.jsonl ./program"));
    folder.output(&format!("run {options} --results t.csv --results-output 1 ./program"));
    let rows = table(&folder.path().join("t.jsonl"));
    let expected = json!({
        "lane": 0, "ending": "exited", "exit_code": (97 + 44 + 34 + 255 + 10) % 128, "signal": null,
        "fault_address": null, "pc": null, "function": null, "instructions": rows[&0]["instructions"],
        "system_calls": 4, "stdout": "612c22ff0a", "stdout_form": "hex", "stdout_bytes": 5, "stderr": "",
        "stderr_form": "text", "stderr_bytes": 0, "files": [], "limits": [], "engine": "cpu",
        "moved_after": null, "error": null,
    });
    assert_eq!(rows[&0], expected);
    let part = |lane: u64, names: &[&str]| -> Value {
        names.iter().map(|name| rows[&lane][name].clone()).collect()
    };
    assert_eq!(
        part(1, &["ending", "exit_code", "signal", "fault_address", "function"]),
        json!(["killed", null, "SIGSEGV", "0x8", null])
    );
    assert!(rows[&1]["pc"].as_str().unwrap().starts_with("0x400"));
    assert_eq!(part(2, &["exit_code", "limits"]), json!([28, ["bytes in files"]]));
    let file = &rows[&2]["files"][0];
    let contents = vec![0; file["bytes"].as_u64().unwrap() as usize];
    let digest =
        Sha256::digest(&contents).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!((&file["path"], &file["sha256"]), (&json!("/tmp/x"), &json!(digest)));
    assert!(contents.len() > 10_000, "{file}");
    assert_eq!(part(3, &["ending", "limits"]), json!(["limit of instructions", ["instructions"]]));
    assert_eq!(part(4, &["exit_code", "limits"]), json!([12, ["memory"]]));
    assert_eq!(
        part(5, &["ending", "stdout_form", "stdout_bytes"]),
        json!(["limit of output", "sha256", 102_400])
    );
    assert_eq!(part(6, &["exit_code", "system_calls"]), json!([3, 1_000_001]));
    let csv = fs::read_to_string(folder.path().join("t.csv")).unwrap();
    let mut lines: Vec<_> = csv.lines().collect();
    assert!(lines[0].starts_with("lane,ending,exit_code,signal,") && lines.len() == 8, "{csv}");
    lines.sort();
    let hash = "5660d87cabfe0f7f238d127e3433bee6d91ac53c40ea188f1e613529a0e204d6";
    assert!(
        lines[0].starts_with("0,exited,56,,,,,")
            && lines[0].contains(&format!(",{hash},sha256,5,,text,0,")),
        "{csv}"
    );
    assert!(lines[1].starts_with("1,killed,,SIGSEGV,0x8,0x400"), "{csv}");
}

#[test]
fn tables_are_the_same_on_every_engine_and_with_any_number_of_threads() {
    let folder = folder();
    folder.file("args", "answer\ncrash\ndisk\nforks\nloop\nmemory\nx\nanswer\n");
    let rows = |name: &str, options: &str| {
        let limits =
            "--max-instructions 300K --max-memory 2G --max-file-bytes 8K --max-processes 20";
        folder
            .output(&format!("run --args-from args {limits} {options} --results {name} ./program"));
        let mut rows = table(&folder.path().join(name));
        rows.values_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("engine")));
        rows
    };
    let cpu = rows("cpu.jsonl", "");
    assert_eq!(cpu.len(), 8);
    assert_eq!(rows("one.jsonl", "--threads 1"), cpu);
    assert_eq!(rows("eval.jsonl", "--engine eval --threads 3 --lanes 2"), cpu);
}

#[test]
fn without_a_table_the_outcomes_are_printed() {
    let folder = folder();
    folder.file("args", "echo hello\ncrash\necho other\nunknown\nforever\n");
    let options = "run --args-from args --max-instructions 10K";
    let text = folder.output(&format!("{options} ./program"));
    let lines: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(lines[0], "2 exit code 0 lane 0: hello");
    assert!(lines[1].starts_with("1 SIGSEGV at 0x400") && lines[1].ends_with(" lane 1"), "{text}");
    assert_eq!(lines[2..4], ["1 exit code 99 lane 3", "1 limit of instructions lane 4"]);
    assert!(lines[4].starts_with("5 lanes on cpu: 3 failed; "), "{text}");
    assert!(lines[5].starts_with("auto: 5 lanes on cpu (a lane took "), "{text}");
    let text = folder.output(&format!("{options} --engine cpu ./program"));
    assert!(!text.contains("auto:"), "{text}");
    let json: Value =
        serde_json::from_str(&folder.output(&format!("{options} --json ./program"))).unwrap();
    assert_eq!(
        (&json["lanes"], &json["failed"], &json["complete"]),
        (&json!(5), &json!(3), &json!(true))
    );
    assert_eq!(json["engines"], json!({"cpu": 5}));
    let why = json["why"].as_str().unwrap();
    assert!(why.ends_with(": the rest was done in less time than a GPU needs to start"), "{why}");
    let first =
        json!({"outcome": "exit code 0", "lanes": 2, "example_lane": 0, "example_output": "hello"});
    assert_eq!(json["outcomes"][0], first);
}

#[test]
fn mistakes_are_located() {
    let folder = folder();
    folder.file("two", "1\n2\n");
    folder.file("three", "1\n'2\n3\n");
    folder.file("env", "A=1\nB\n");
    for (options, code, message) in [
        ("--args-from three", 1, "--args-from three, line 2 (lane 1): a ' is not closed"),
        ("--env-from env", 1, "--env-from env, line 2 (lane 1): B is not NAME=VALUE"),
        (
            "--args-from two --stdin-from three",
            2,
            "--args-from two has 2 rows, and --stdin-from three has 3: give each as many",
        ),
        (
            "--args-from two --stdin-from -",
            1,
            "--stdin-from standard input has 0 rows, and --args-from two has more",
        ),
        ("--args-from - --env-from -", 2, "only one kind of rows can come from standard input"),
        ("--args-from nowhere", 1, "cannot read nowhere"),
        ("--lanes 0", 2, "at least 1 is needed"),
        ("--lanes 2 --strace", 2, "--strace"),
        ("--lanes 2 --results t.txt", 2, "must end in .jsonl or .csv"),
        ("--results t.jsonl", 2, "--lanes"),
        ("--lanes 2 --resume", 2, "--results"),
        ("--lanes 2 --bind .:/x:rw", 2, "no folder of the host can be written"),
        ("--lanes 2 --engine wgpu --realtime", 2, "have no real time"),
        ("--lanes 2 --cwd /nowhere", 1, "/nowhere"),
    ] {
        let error = folder.error(&format!("run {options} ./program echo"), code);
        assert!(error.contains(message), "{options}: {error}");
    }
    assert!(folder.error("run --lanes 2 ./nowhere", 127).contains("cannot find the program"));
    assert!(folder.error("run --lanes 2 ./two", 126).contains("cannot execute"));
    // The lanes before a bad row are done.
    folder.error("run --args-from three --results t.jsonl ./program echo", 1);
    assert_eq!(outputs(&folder.path().join("t.jsonl")), ["1\n"]);
}

#[test]
fn a_table_is_of_one_command() {
    let folder = folder();
    folder.file("args", "1\n2\n");
    let run = "run --args-from args --results t.csv";
    folder.output(&format!("{run} ./program echo"));
    let before = fs::read(folder.path().join("t.csv")).unwrap();
    let error = folder.error(&format!("{run} ./program echo"), 2);
    assert!(error.contains("t.csv is there already: --resume goes on with it"), "{error}");
    for (options, difference) in [
        ("--seed 1 ./program echo", "--seed was 0, and is 1"),
        ("--max-memory 1G ./program echo", "--max-memory was 4294967296, and is 1073741824"),
        (
            "./program echo x",
            r#"command was ["./program","echo"], and is ["./program","echo","x"]"#,
        ),
    ] {
        let error = folder.error(&format!("{run} --resume {options}"), 2);
        assert!(
            error.contains("t.csv is the table of another command") && error.contains(difference),
            "{error}"
        );
    }
    // An engine or a number of threads makes no difference.
    let text = folder.output(&format!("{run} --resume --engine eval --threads 1 ./program echo"));
    assert!(text.contains("2 lanes on eval, 2 of them before: 0 failed"), "{text}");
    assert_eq!(fs::read(folder.path().join("t.csv")).unwrap(), before);
    folder.file("args", "1\n2\n3\n");
    let error = folder.error(&format!("{run} --resume ./program echo"), 2);
    assert!(error.contains("what is in --args-from has changed"), "{error}");
    fs::write(folder.path().join("t.csv"), "lane,other\n").unwrap();
    folder.file("args", "1\n2\n");
    let error = folder.error(&format!("{run} --resume ./program echo"), 1);
    assert!(error.contains("line 1: these are not the columns"), "{error}");
    fs::remove_file(folder.path().join("t.csv.run.json")).unwrap();
    let error = folder.error(&format!("{run} --resume ./program echo"), 1);
    assert!(error.contains("t.csv.run.json"), "{error}");
}

/// A run that takes some seconds, on any computer: lanes use their argument, and have nothing in common after that.
const LONG: &str = "--lanes 400 --threads 2 --max-instructions 20M ./program loop{lane}";

fn spawn(folder: &Folder, arguments: &str) -> Child {
    let mut kvrm = Command::new(env!("CARGO_BIN_EXE_kvrm"));
    kvrm.args(arguments.split_whitespace()).current_dir(folder.path());
    kvrm.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Lines that are whole.
fn lines(path: &Path) -> usize {
    fs::read(path).map_or(0, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count())
}

fn wait_for_lines(path: &Path, more_than: usize) {
    let start = Instant::now();
    while lines(path) <= more_than {
        assert!(start.elapsed() < Duration::from_secs(120), "{} does not grow", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_run_that_is_killed_again_and_again_has_every_lane_once() {
    for name in ["t.jsonl", "t.csv"] {
        let folder = folder();
        folder.output(&format!("run --results whole.jsonl {LONG}"));
        let path = folder.path().join(name);
        let run = format!("run --results {name} --resume {LONG}");
        let (mut kills, mut seen) = (0, 0);
        while seen < 300 && kills < 5 {
            let mut child = spawn(&folder, &run);
            wait_for_lines(&path, seen);
            std::thread::sleep(Duration::from_millis(37 * kills));
            child.kill().unwrap();
            child.wait().unwrap();
            (kills, seen) = (kills + 1, lines(&path));
        }
        assert!(kills > 1, "the run was over before it could be killed twice");
        // As if it had been killed while it wrote.
        let torn = fs::read(&path).unwrap();
        let last = torn.split_inclusive(|byte| *byte == b'\n').next_back().unwrap();
        fs::write(&path, [&torn[..], &last[..last.len() / 2]].concat()).unwrap();
        let text = folder.output(&run);
        assert!(text.contains("400 lanes on cpu"), "{text}");
        match name {
            "t.jsonl" => assert_eq!(table(&path), table(&folder.path().join("whole.jsonl"))),
            _ => {
                let csv = fs::read_to_string(&path).unwrap();
                let mut lanes: Vec<u64> = csv
                    .lines()
                    .skip(1)
                    .map(|line| line.split(',').next().unwrap().parse().unwrap())
                    .collect();
                lanes.sort();
                assert_eq!(lanes, (0..400).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn ctrl_c_keeps_what_has_ended() {
    let folder = folder();
    let run = format!("run --results t.jsonl --resume {LONG}");
    let child = spawn(&folder, &run);
    let path = folder.path().join("t.jsonl");
    wait_for_lines(&path, 0);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    let there = table(&path).len();
    let hint = format!("t.jsonl has {there} lanes: the same command with --resume runs the others");
    assert!(error.contains(&hint) && error.contains("interrupted"), "{error}");
    assert!(there < 400, "it was over before Ctrl-C");
    folder.output(&run);
    assert_eq!(table(&path).len(), 400);
}

#[test]
fn two_runs_do_not_write_one_table() {
    let folder = folder();
    let run = format!("run --results t.jsonl --resume {LONG}");
    let mut child = spawn(&folder, &run);
    wait_for_lines(&folder.path().join("t.jsonl"), 0);
    let error = folder.error(&run, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(error.contains("another kvrm is writing t.jsonl"), "{error}");
}

#[test]
fn ctrl_c_does_not_wait_for_rows() {
    let folder = folder();
    let mut kvrm = Command::new(env!("CARGO_BIN_EXE_kvrm"));
    kvrm.args(["run", "--args-from", "-", "--results", "t.jsonl", "./program", "echo"]);
    let mut child = kvrm
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"first\n").unwrap();
    wait_for_lines(&folder.path().join("t.jsonl"), 0);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    assert_eq!(outputs(&folder.path().join("t.jsonl")), ["first\n"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_how_far_it_is() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&controller, size).unwrap();
    let path = ptsname(&controller, Vec::new()).unwrap();
    let terminal = fs::File::options().write(true).open(path.to_str().unwrap()).unwrap();
    let folder = folder();
    let mut kvrm = Command::new(env!("CARGO_BIN_EXE_kvrm"));
    kvrm.arg("run").args(LONG.split_whitespace()).env("TERM", "xterm");
    kvrm.current_dir(folder.path()).stdout(Stdio::null()).stderr(terminal);
    let mut child = kvrm.spawn().unwrap();
    // The child has the last copy of the terminal, so reading ends when it does.
    drop(kvrm);
    let mut shown = Vec::new();
    let _ = std::io::Read::read_to_end(&mut fs::File::from(controller), &mut shown);
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8_lossy(&shown);
    for part in [" of 400 lanes, 2 running, ", " failed, ", "/s, ", " s left"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
}
