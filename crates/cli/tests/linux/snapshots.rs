//! Programs of Debian that are kept in the middle, beside the same command lines without a break.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::debian;

/// A command line, where it is kept, and its input.
struct Case {
    name: &'static str,
    point: &'static str,
    words: &'static [&'static str],
    input: &'static str,
}

/// A shell with children, which are joined by pipes when one of them waits for input.
const SHELL: Case = Case {
    name: "shell",
    point: "first-read",
    words: &[
        "busybox",
        "sh",
        "-c",
        "mkfifo /tmp/p; (cat /tmp/p > /tmp/q; sleep 1) & exec 6>/tmp/p; echo begin
        (echo start; cat; date; echo $RANDOM) | tr a-z A-Z | (cat; echo end >&2); echo $? >&6
        exec 6>&-; wait; cat /tmp/q; ls -l /tmp; exit 4",
    ],
    input: "one two\nthree\n",
};

const LUA: Case = Case {
    name: "lua",
    point: "luaL_openlibs",
    words: &["lua5.4", "-e", "for l in io.lines() do print(#l, math.random(), os.time()) end"],
    input: "hello\nworld\n",
};

const PYTHON: Case = Case {
    name: "python",
    point: "first-read",
    words: &[
        "python3",
        "-c",
        "
import os, queue, random, subprocess, sys, tempfile, threading, time
jobs = queue.Queue()
def work(number):
    while (job := jobs.get()) is not None:
        time.sleep(0.01)
        print(number, job, random.random(), time.time())
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for thread in threads: thread.start()
child = subprocess.Popen(['tr', 'a-z', 'A-Z'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
temporary = tempfile.TemporaryFile(); temporary.write(b'kept'); temporary.flush()
log = open('/tmp/log', 'w'); log.write('before ')
print('begin', flush=True)
line = input()
for job in range(6): jobs.put(job)
for _ in threads: jobs.put(None)
for thread in threads: thread.join()
temporary.seek(0); print(temporary.read(), child.communicate(line.encode()))
log.write('after'); log.close()
print(os.listdir('/tmp'), file=sys.stderr); sys.exit(5)",
    ],
    input: "input\n",
};

/// kvrm with Debian as `/`.
struct Kvrm {
    root: PathBuf,
    folder: TempDir,
}

impl Kvrm {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, args: &[&str], input: &str) -> Output {
        let command = std::env::var("KVRM_COMMAND");
        let mut kvrm = Command::new(command.as_deref().unwrap_or(env!("CARGO_BIN_EXE_kvrm")));
        kvrm.arg("run").args(args).current_dir(self.folder.path());
        kvrm.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = kvrm.spawn().unwrap();
        // A command that needs none does not read it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// With the root and the environment.
    fn run_in_root(&self, options: &[&str], case: &Case, input: &str) -> Output {
        let root = ["--root", self.root.to_str().unwrap(), "--env", "PATH=/usr/bin"];
        self.run(&[&root[..], options, case.words].concat(), input)
    }

    fn save(&self, case: &Case, file: &str) {
        let options = ["--boot-until", case.point, "--save", file];
        let saved = self.run_in_root(&options, case, "");
        let said = String::from_utf8_lossy(&saved.stderr).into_owned();
        assert!(saved.status.success() && saved.stdout.is_empty(), "{}: {said}", case.name);
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

fn kvrm() -> Option<Kvrm> {
    Some(Kvrm { root: debian()?, folder: TempDir::new().unwrap() })
}

/// All files of a folder with what is in them.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.is_file() {
                let name = path.strip_prefix(folder).unwrap().to_path_buf();
                found.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn programs_go_on_as_if_nothing_had_been() {
    let Some(kvrm) = kvrm() else { return };
    for case in [SHELL, LUA, PYTHON] {
        kvrm.save(&case, "s.snap");
        let options = |name: &'static str| {
            [["--report-json", name], ["--keep", &name[..name.len() - 5]]].concat()
        };
        let whole = kvrm.run_in_root(&options("whole.json"), &case, case.input);
        let on = kvrm.run(&[&options("on.json")[..], &["s.snap"]].concat(), case.input);
        assert!(!whole.stdout.is_empty(), "{}: {whole:?}", case.name);
        assert_eq!(on, whole, "{}", case.name);
        assert_eq!(kvrm.read("on.json"), kvrm.read("whole.json"), "{}", case.name);
        assert_eq!(files(&kvrm.path("on")), files(&kvrm.path("whole")), "{}", case.name);
    }
}

/// A table of lanes, by lane.
fn rows(text: &str) -> Vec<Value> {
    let mut rows: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| row["lane"].as_u64());
    rows
}

#[test]
fn lanes_go_on_from_python_that_has_started() {
    let Some(kvrm) = kvrm() else { return };
    let case = Case {
        name: "lanes",
        point: "first-read",
        words: &[
            "python3",
            "-c",
            "n = int(input()); print(n ** n); open('/tmp/n', 'w').write(str(n))",
        ],
        input: "",
    };
    let lines: String = (1..=24).map(|n| format!("{}\n", n * n % 29)).collect();
    std::fs::write(kvrm.path("lines"), lines).unwrap();
    kvrm.save(&case, "s.snap");
    let lanes = ["--stdin-from", "lines", "--results"];
    let whole = kvrm.run_in_root(&[&lanes[..], &["whole.jsonl"]].concat(), &case, "");
    assert!(whole.status.success(), "{whole:?}");
    let on = kvrm.run(&[&lanes[..], &["on.jsonl", "s.snap"]].concat(), "");
    assert!(on.status.success(), "{on:?}");
    let whole = rows(&kvrm.read("whole.jsonl"));
    assert_eq!(whole.len(), 24);
    assert_eq!(rows(&kvrm.read("on.jsonl")), whole);
}
