//! One program in many lanes: rows in, results out, and nothing from one lane to another.

#![cfg(unix)]

mod program;
mod served;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use kvrm::linux::{
    Decision, Ending, HostSignals, LaneOutcome, Limit, Limits, Many, Outcome, Process, Row, Signal,
};
use kvrm::{EngineKind, Error, RunControl};
use tempfile::TempDir;

/// The program as a file on the host.
struct Program(TempDir);

impl Program {
    fn new() -> Program {
        let folder = tempfile::tempdir().unwrap();
        program::write(&folder.path().join("program"));
        Program(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("program")
    }
}

/// Few enough for the evaluator.
const LIMITS: Limits = Limits {
    instructions: 5_000_000,
    memory: 3 << 30,
    file_bytes: 1 << 20,
    files: 1000,
    open_files: 100,
    threads: 30,
    output: 1 << 20,
};

fn process(program: &Program, engine: EngineKind) -> Process {
    Process::new(program.path()).engine(engine).limits(LIMITS)
}

fn on_cpu(program: &Program) -> Many {
    Many::new(process(program, EngineKind::Cpu))
}

/// Results in the order of lanes.
fn sorted(runs: impl Iterator<Item = kvrm::Result<LaneOutcome>>) -> Vec<LaneOutcome> {
    let mut all: Vec<_> = runs.map(|ran| ran.unwrap()).collect();
    all.sort_by_key(|ran| ran.lane);
    all
}

fn answer(text: &str) -> Row {
    Row::new().arg("answer").stdin(text)
}

/// An attack, with what it must come to.
type Attack = (&'static str, fn(&Outcome) -> bool);

fn attacks() -> [Attack; 8] {
    [
        ("crash", |it| it.signal() == Some(Signal::SEGV.number())),
        ("disk", |it| it.code() == Some(28) && it.limits == [Limit::FileBytes]),
        ("forks", |it| it.ending == Ending::Limited(Limit::Instructions)),
        ("loop", |it| it.ending == Ending::Limited(Limit::Instructions)),
        ("memory", |it| it.code() == Some(12) && it.limits == [Limit::Memory]),
        ("output", |it| it.ending == Ending::Limited(Limit::Output)),
        ("system calls", |it| it.code() == Some(3) && it.system_calls[0].1 == 1_000_000),
        ("x", |it| it.code() == Some(16)),
    ]
}

/// Every other lane attacks.
fn attacked_rows() -> impl Iterator<Item = Row> + Send {
    (0..32).map(|lane| match lane % 2 {
        0 => answer(&format!("answer of lane {lane}")),
        _ => Row::new().arg(attacks()[lane / 2 % 8].0),
    })
}

fn check_attacked(ran: &LaneOutcome) {
    let lane = ran.lane as usize;
    let outcome = ran.result.as_ref().unwrap();
    if lane.is_multiple_of(2) {
        let text = format!("answer of lane {lane}");
        let sum: u32 = text.bytes().map(u32::from).sum();
        assert_eq!(outcome.stdout, text.as_bytes(), "lane {lane}");
        assert_eq!(outcome.code(), Some((sum & 0x7f) as u8), "lane {lane}");
    } else {
        let (name, is_right) = attacks()[lane / 2 % 8];
        assert!(is_right(outcome), "{name}: {outcome:?}");
    }
}

#[test]
fn attacks_do_nothing_to_other_lanes_whatever_the_engine_and_the_threads() {
    let program = Program::new();
    let table = |engine, threads| {
        let many = Many::new(process(&program, engine)).threads(threads);
        let all = sorted(many.run(attacked_rows()).unwrap());
        all.iter().for_each(check_attacked);
        // The engine is told apart from what was done.
        all.into_iter().map(|ran| format!("{} {:?}", ran.lane, ran.result)).collect::<Vec<_>>()
    };
    let first = table(EngineKind::Cpu, 4);
    assert_eq!(first.len(), 32);
    for (engine, threads) in [(EngineKind::Cpu, 1), (EngineKind::Eval, 3)] {
        for (one, other) in first.iter().zip(table(engine, threads)) {
            assert_eq!(*one, other, "{engine:?} with {threads} threads");
        }
    }
}

#[test]
fn a_lane_does_what_its_row_does_alone() {
    let program = Program::new();
    let base = || process(&program, EngineKind::Cpu).arg("answer").env("A", "1").stdin("base");
    let rows = [
        Row::new(),
        Row::new().stdin("other"),
        Row::new().arg("more").env("A", "2").file("/x", "y"),
    ];
    let alone = [base(), base().stdin("other"), base().arg("more").env("A", "2").file("/x", "y")];
    let all = sorted(Many::new(base()).run(rows).unwrap());
    for (ran, alone) in all.into_iter().zip(alone) {
        assert_eq!(format!("{:?}", ran.result.unwrap()), format!("{:?}", alone.run().unwrap()));
        assert_eq!(ran.engine, EngineKind::Cpu);
    }
}

#[test]
fn rows_are_read_when_there_is_room_for_them() {
    let program = Program::new();
    let taken = Arc::new(AtomicU64::new(0));
    let counter = taken.clone();
    let endless = (0_u64..).map(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        answer("")
    });
    let mut runs = on_cpu(&program).threads(2).run(endless).unwrap();
    let lanes: Vec<_> = runs.by_ref().take(100).map(|ran| ran.unwrap().lane).collect();
    assert_eq!(lanes.len(), 100);
    let watch = runs.watch();
    std::thread::sleep(Duration::from_millis(200));
    // Workers wait when nobody takes what they have.
    assert!(taken.load(Ordering::Relaxed) < 300, "{taken:?} rows were read for 100 results");
    assert!(watch.instructions() > 0 && watch.ended() >= 100 && watch.running() <= 2);
    drop(runs);
    assert_eq!(watch.running(), 0);
}

#[test]
fn fewer_lanes_than_threads_run_at_a_time() {
    let program = Program::new();
    let (asked, answers) = mpsc::channel();
    // A row is taken only when the one before has ended, so that its number is there already.
    let rows = (0..20).map(move |_| {
        asked.send(()).unwrap();
        answer("")
    });
    let mut runs = on_cpu(&program).lanes(1).threads(8).run(rows).unwrap();
    for _ in 0..20 {
        runs.next().unwrap().unwrap();
    }
    assert!(runs.next().is_none());
    assert_eq!(answers.iter().count(), 20);
    assert_eq!((runs.watch().ended(), runs.watch().running()), (20, 0));
}

#[test]
fn a_row_that_cannot_be_made_ends_the_run_after_those_before() {
    let program = Program::new();
    let rows = (0..10).map(|lane| if lane < 5 { Ok(answer("")) } else { Err("row 5 is bad") });
    let mut runs = on_cpu(&program).run(rows).unwrap();
    let mut lanes: Vec<_> = runs.by_ref().take(5).map(|ran| ran.unwrap().lane).collect();
    lanes.sort();
    assert_eq!(lanes, [0, 1, 2, 3, 4]);
    let error = runs.next().unwrap().unwrap_err();
    assert!(matches!(&error, Error::Rows(_)) && error.to_string() == "row 5 is bad", "{error}");
    assert!(runs.next().is_none() && runs.next().is_none());
}

#[test]
#[should_panic(expected = "no row for you")]
fn a_panic_of_the_rows_is_the_callers() {
    let program = Program::new();
    let rows = std::iter::from_fn(|| -> Option<Row> { panic!("no row for you") });
    on_cpu(&program).run(rows).unwrap().for_each(drop);
}

#[test]
fn a_row_that_cannot_run_is_a_result_of_its_lane() {
    let program = Program::new();
    let rows = [answer("first"), answer("").args(vec![[b'x'; 100_000]; 100]), answer("last")];
    let all = sorted(on_cpu(&program).run(rows).unwrap());
    let error = all[1].result.as_ref().unwrap_err();
    assert!(matches!(error, Error::Program(_)), "{error}");
    assert_eq!(all[0].result.as_ref().unwrap().stdout, b"first");
    assert_eq!(all[2].result.as_ref().unwrap().stdout, b"last");
}

#[test]
fn lanes_have_the_numbers_of_their_rows() {
    let program = Program::new();
    let rows = [answer("").lane(7), answer(""), answer("").lane(3), answer("")];
    let lanes: Vec<_> =
        sorted(on_cpu(&program).run(rows).unwrap()).iter().map(|it| it.lane).collect();
    assert_eq!(lanes, [3, 4, 7, 8]);
}

#[test]
fn a_lane_has_its_own_time() {
    let program = Program::new();
    let process = Process::new(program.path()).engine(EngineKind::Cpu);
    let rows = [Row::new().arg("loop"), answer("in time")];
    let many = Many::new(process).timeout(Duration::from_millis(500));
    let all = sorted(many.run(rows).unwrap());
    let late = all[0].result.as_ref().unwrap();
    assert_eq!((late.ending, late.status), (Ending::Cancelled, None));
    assert_eq!(all[1].result.as_ref().unwrap().stdout, b"in time");
}

#[test]
fn cancelling_ends_lanes_without_a_result() {
    let program = Program::new();
    let process = || Process::new(program.path()).engine(EngineKind::Cpu);
    let control = Arc::new(RunControl::new());
    let rows =
        [answer("done"), Row::new().arg("loop")].into_iter().chain((0..).map(|_| answer("")));
    let mut runs = Many::new(process()).threads(1).run_with(rows, control.clone()).unwrap();
    assert_eq!(runs.next().unwrap().unwrap().lane, 0);
    assert!(runs.next_within(Duration::from_millis(50)).is_pending());
    control.cancel();
    assert!(runs.next().is_none() && runs.next().is_none());
    assert!(control.executed() > 0, "the instructions of its lanes are the run's");
}

#[test]
fn nobody_waits_for_a_row_that_never_comes() {
    let program = Program::new();
    let (sender, rows) = mpsc::channel::<Row>();
    let control = Arc::new(RunControl::new());
    let start =
        |rows: mpsc::Receiver<Row>| on_cpu(&program).run_with(rows, control.clone()).unwrap();
    let mut runs = start(rows);
    sender.send(answer("")).unwrap();
    assert_eq!(runs.next().unwrap().unwrap().lane, 0);
    let begin = Instant::now();
    assert!(runs.next_within(Duration::from_millis(50)).is_pending());
    control.cancel();
    assert!(runs.next().is_none());
    drop(runs);
    assert!(begin.elapsed() < Duration::from_secs(20));
    drop(sender);
}

#[test]
fn files_of_lanes_are_kept_in_folders_of_their_own() {
    let (program, folder) = (Program::new(), tempfile::tempdir().unwrap());
    let many = Many::new(process(&program, EngineKind::Cpu).keep(folder.path()));
    let all =
        sorted(many.run([Row::new().arg("disk"), answer(""), Row::new().arg("disk")]).unwrap());
    for lane in [0, 2] {
        let written = &all[lane].result.as_ref().unwrap().files[0];
        let kept = std::fs::read(folder.path().join(lane.to_string()).join("tmp/x")).unwrap();
        assert_eq!((&written.path[..], &written.contents), (&b"/tmp/x"[..], &kept));
        assert!(kept.len() > 500_000, "{}", kept.len());
    }
    assert!(!folder.path().join("1/tmp/x").exists());
    // A place where nothing can be put is the host's failure, and not the lane's.
    let many = Many::new(process(&program, EngineKind::Cpu).keep(program.path()));
    let error = many.run([answer("")]).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(error, Error::Keep { .. }), "{error}");
}

#[test]
fn what_lanes_cannot_have_is_refused_at_once() {
    let program = Program::new();
    let base = || process(&program, EngineKind::Cpu);
    let refused = [
        base().strace(|_| {}),
        base().on_system_call(|_| Decision::Serve),
        base().bind_writable(program.path(), "/x"),
        base().inherit(HostSignals::default()),
        base().engine(EngineKind::Cuda).realtime(true),
        base().engine(EngineKind::Wgpu).realtime(true),
    ];
    for process in refused {
        let error = Many::new(process).run([Row::new()]).err().unwrap();
        assert!(matches!(error, Error::NotOfMany(_)), "{error}");
    }
    let missing = Many::new(Process::new("/nowhere/program")).run([Row::new()]);
    assert!(matches!(missing.err().unwrap(), Error::NoProgram(_)));
    let text = Many::new(Process::new("/text").file("/text", "no program")).run([Row::new()]);
    assert!(matches!(text.err().unwrap(), Error::Program(_)));
    let folder = Many::new(base().directory("/nowhere")).run([Row::new()]);
    assert!(matches!(folder.err().unwrap(), Error::Sandbox(_)));
}
