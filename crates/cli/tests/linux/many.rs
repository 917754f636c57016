//! Programs of Debian in many lanes, beside the same command lines one by one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use serde_json::{Value, json};

use crate::case::{Case, Needs, Output};
use crate::check::run_all;
use crate::debian;
use crate::place::{Kvrm, Qemu};

/// What lanes differ in.
struct Row {
    args: Vec<String>,
    input: String,
}

fn row(args: &[&str], input: &str) -> Row {
    Row { args: args.iter().map(ToString::to_string).collect(), input: format!("{input}\n") }
}

/// A program, and lanes of it.
struct Table {
    program: &'static str,
    rows: Vec<Row>,
}

fn tables() -> [Table; 3] {
    let busybox = (1..=40).flat_map(|n| {
        let (number, text) = (n.to_string(), format!("line {n} of many: äöü \"quoted\""));
        [
            row(&["expr", &number, "*", "3", "+", "1"], ""),
            row(&["wc", "-c"], &text),
            row(&["md5sum"], &text),
            row(&["sed", "s/[aeiou]/'&'/g"], &text),
            row(
                &[
                    "sh",
                    "-c",
                    "read a b; echo $b | tr a-z A-Z; echo $a >&2; exit $1",
                    "sh",
                    &number,
                ],
                &text,
            ),
            row(&["sh", "-c", "kill -$0 $$", ["TERM", "SEGV", "KILL", "USR1"][n % 4]], ""),
        ]
    });
    let lua = (1..=40).map(|n| {
        let script = "local n = tonumber(arg[1]) local s = 0 for i = 1, n do s = s + i * i end \
                      print(s, io.read()) if n % 10 == 0 then error('ten') end os.exit(n % 3)";
        row(&["-e", script, "-", &n.to_string()], &format!("input {n}"))
    });
    let dash = (1..=20).map(|n| {
        row(
            &["-c", "for i in 1 2 3; do (echo $1.$i) & wait; done; cat", "dash", &n.to_string()],
            "rest",
        )
    });
    [
        Table { program: "busybox", rows: busybox.collect() },
        Table { program: "lua5.4", rows: lua.collect() },
        Table { program: "dash", rows: dash.collect() },
    ]
}

/// Words as a line of `--args-from`.
fn quoted(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ") + "\n"
}

/// The table of many lanes.
fn run(root: &std::path::Path, table: &Table, options: &[&str]) -> BTreeMap<u64, Value> {
    let folder = tempfile::tempdir().unwrap();
    let [args, stdin, results] = ["args", "stdin", "t.jsonl"].map(|name| folder.path().join(name));
    std::fs::write(&args, table.rows.iter().map(|row| quoted(&row.args)).collect::<String>())
        .unwrap();
    std::fs::write(&stdin, table.rows.iter().map(|row| &row.input[..]).collect::<String>())
        .unwrap();
    let mut kvrm = Command::new(env!("CARGO_BIN_EXE_kvrm"));
    kvrm.arg("run")
        .arg("--root")
        .arg(root)
        .arg("--args-from")
        .arg(args)
        .arg("--stdin-from")
        .arg(stdin);
    kvrm.arg("--results").arg(&results).args(["--env", "PATH=/usr/bin", "--env", "LC_ALL=C"]);
    kvrm.args(["--env", "HOME=/work", "--env", "TZ=UTC", "--cwd", "/tmp"]);
    let output = kvrm.args(options).arg(table.program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(results).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| (row["lane"].as_u64().unwrap(), row)).collect()
}

/// The same command lines, for one run each.
fn cases(table: &Table) -> Vec<Case> {
    let rows = table.rows.iter().enumerate();
    let case = |(lane, row): (usize, &Row)| Case {
        name: format!("{}-{lane}", table.program),
        needs: Needs::Processes,
        qemu_is_right: true,
        files: Vec::new(),
        input: row.input.clone(),
        words: [&[table.program.to_string()][..], &row.args].concat(),
        directory: "/tmp",
        programs: None,
        expected: Default::default(),
    };
    rows.map(case).collect()
}

/// How lanes differ from what one run each gives.
fn differences(lanes: &BTreeMap<u64, Value>, cases: &[Case], outputs: &[Output]) -> String {
    let mut text = String::new();
    for ((case, output), (lane, row)) in cases.iter().zip(outputs).zip(lanes) {
        let status = match output.status {
            status @ ..128 => json!(status),
            signal => json!(match signal - 128 {
                9 => "SIGKILL",
                10 => "SIGUSR1",
                11 => "SIGSEGV",
                15 => "SIGTERM",
                other => panic!("{}: signal {other}", case.name),
            }),
        };
        let found = if row["signal"].is_null() { &row["exit_code"] } else { &row["signal"] };
        let [out, err] =
            [&output.out, &output.err].map(|bytes| json!(String::from_utf8_lossy(bytes)));
        if (found, &row["stdout"], &row["stderr"]) != (&status, &out, &err) {
            writeln!(text, "lane {lane}, {:?}: {status} {out} {err}, but {row}", case.words)
                .unwrap();
        }
    }
    text
}

#[test]
fn lanes_do_what_command_lines_do_one_by_one() {
    let Some(root) = debian() else { return };
    let kvrm = Kvrm::new(root.clone());
    for table in tables() {
        let lanes = run(&root, &table, &[]);
        let cases = cases(&table);
        assert_eq!(lanes.len(), cases.len());
        let outputs = run_all(&cases.iter().collect::<Vec<_>>(), |case| {
            let mut output = kvrm.output(case);
            // What kvrm says of a crash is not the program's.
            let lines = output.err.split_inclusive(|byte| *byte == b'\n');
            let its = lines.filter(|line| !line.starts_with(b"kvrm: "));
            output.err = its.flatten().copied().collect();
            output
        });
        let text = differences(&lanes, &cases, &outputs);
        assert!(text.is_empty(), "{text}");
    }
}

#[test]
fn lanes_do_what_qemu_does() {
    let Some(root) = debian() else { return };
    let Some(qemu) = Qemu::new(root.clone()) else { return };
    for table in tables() {
        let lanes = run(&root, &table, &["--threads", "3", "--lanes", "5"]);
        let cases = cases(&table);
        let outputs = run_all(&cases.iter().collect::<Vec<_>>(), |case| qemu.output(case));
        let text = differences(&lanes, &cases, &outputs);
        assert!(text.is_empty(), "{text}");
    }
}
