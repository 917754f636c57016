//! Programs of all kinds.

use kvrm::EngineKind;
use kvrm::linux::Limits;

use crate::support::{Case, Own, args, stdin};

fn numbers(count: u32) -> impl Iterator<Item = String> {
    // Some have one digit, some two.
    (0..count).map(|lane| (lane * 7 % 30).to_string())
}

#[test]
fn a_static_program_with_arguments() {
    let case = Case::of_repository("guests/linux/collatz");
    let rows = (1..=40).map(|start: u32| args([&start.to_string(), "1"]));
    let case = case.rows(rows);
    case.check();
    case.check_on(EngineKind::Eval);
}

#[test]
fn busybox() {
    let rows = numbers(20).map(|lane| args([&lane, "+", "1"]));
    Case::of_debian("busybox").args(["expr"]).rows(rows).check();
    let texts = ["one two\nthree\n", "", "a\nb\nc\nd\n", "one two\nthree\n", "x"];
    for applet in ["wc", "sort", "cat", "md5sum", "head"] {
        Case::of_debian("busybox").args([applet]).rows(texts.map(stdin)).check();
    }
    let rows =
        numbers(8).map(|lane| args([&format!("echo {lane} > /tmp/{lane}; cat /tmp/* | wc")]));
    Case::of_debian("busybox").args(["sh", "-c"]).rows(rows).check();
}

#[test]
fn lua() {
    let rows =
        numbers(12).map(|lane| args([&format!("print({lane} * 2, os.time(), os.getenv('X'))")]));
    Case::of_debian("lua5.4").args(["-e"]).rows(rows).check();
    let script = "for line in io.lines() do print(#line) end error('no more')";
    let rows = numbers(12).map(|lane| stdin(format!("{lane}\nline\n")));
    Case::of_debian("lua5.4").args(["-e", script]).rows(rows).check();
}

#[test]
fn environment() {
    let rows = numbers(12).map(|lane| Own { env: vec![("X".to_owned(), lane)], ..Own::default() });
    Case::of_debian("bash").args(["-c", "echo $X $0; cat /proc/self/environ"]).rows(rows).check();
}

#[test]
fn children() {
    let rows = numbers(10).map(|lane| {
        args([&format!("for i in 1 2 3; do ls /usr | head -{lane} & done; wait; date")])
    });
    Case::of_debian("bash").args(["-c"]).rows(rows).check();
    let script = "x=$(date | wc -c); sleep 3; read line; echo $x $line; date; kill -SEGV $$";
    let rows = numbers(10).map(stdin);
    Case::of_debian("bash").args(["-c", script]).rows(rows).check();
}

#[test]
fn python() {
    let rows = numbers(6).map(|lane| args([&format!("print({lane} + 1)")]));
    Case::of_debian("python3").args(["-c"]).rows(rows).check();
    let script = "import sys, json, hashlib, threading\nt = threading.Thread(target=lambda: None)\nt.start()\nt.join()\n\
                  text = sys.stdin.read()\nprint(hashlib.sha256(text.encode()).hexdigest())";
    Case::of_debian("python3").args(["-c", script]).rows(numbers(6).map(stdin)).check();
}

#[test]
fn lanes_go_together_after_they_have_used_their_arguments() {
    let rows = (100..130).map(|lane| args([&format!("print({lane} * 3, 'x' * ({lane} % 7))")]));
    let case = Case::of_debian("python3").args(["-c"]).rows(rows);
    let (alone, together) = (case.instructions(u64::MAX), case.instructions(1 << 24));
    assert!(together < alone / 2, "{together} instead of {alone} instructions");
    case.check();
    // Some end early, and some have nothing in common but how long their arguments are.
    let scripts = ["0/1", "1/0", "exi", "3;;", "'ab", "  4", "5 6", "\u{e9}0", "x=7", "800"];
    let rows = scripts.map(|script| args([script])).into_iter().cycle().take(20);
    Case::of_debian("python3").args(["-c"]).rows(rows).check();
}

#[test]
fn sqlite_gzip_and_bc() {
    let rows = numbers(8).map(|lane| args([&format!("select {lane} * 7, random() is null;")]));
    Case::of_debian("sqlite3").args([":memory:"]).rows(rows).check();
    let rows = numbers(8).map(|lane| stdin(lane.repeat(500)));
    Case::of_debian("gzip").args(["-c"]).rows(rows).check();
    let rows = numbers(8).map(|lane| stdin(format!("2^{lane}\n")));
    Case::of_debian("bc").rows(rows).check();
}

#[test]
fn own_files() {
    let own = |lane: String| Own {
        files: vec![("/tmp/in".to_owned(), lane.clone())],
        args: vec![lane],
        ..Own::default()
    };
    let script = "cat /tmp/in; stat -c %s /tmp/in; echo $0 >> /tmp/in; echo $0 > /tmp/out";
    Case::of_debian("bash").args(["-c", script]).rows(numbers(10).map(own)).check();
    // Some lanes have the same files and differ otherwise.
    let own = |lane: String| Own {
        files: vec![("/tmp/in".to_owned(), "text".to_owned())],
        ..args([&lane])
    };
    Case::of_debian("bash").args(["-c", script]).rows(numbers(10).map(own)).check();
}

#[test]
fn limits() {
    for instructions in [1000, 30_000, 200_000] {
        let limits = Limits { instructions, output: 100, ..Limits::default() };
        let rows = numbers(10).map(|lane| args([&lane, "+", "1"]));
        Case::of_debian("busybox").args(["expr"]).limits(limits).rows(rows).check();
    }
    let limits = Limits { output: 4, memory: 64 << 20, ..Limits::default() };
    let rows = numbers(10).map(|lane| args([&format!("echo {lane}")]));
    Case::of_debian("busybox").args(["sh", "-c"]).limits(limits).rows(rows).check();
}
