//! The engine `auto` with many lanes: where a row runs makes no difference, and neither does a GPU that fails.
//!
//! Policies of these tests want a GPU at once. Rows come until it was used, so that no test depends on how fast anything is.

#![cfg(unix)]

mod device;
#[path = "../many/program.rs"]
mod program;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kvrm::linux::{Device, Ending, LaneOutcome, Limits, Many, Outcome, Policy, Process, Row, Runs};
use kvrm::{EngineKind, RunControl};
use tempfile::TempDir;

use device::{Manner, device};

/// Few enough for evaluators.
const LIMITS: Limits = Limits {
    instructions: 30_000,
    memory: 3 << 30,
    file_bytes: 16 << 10,
    files: 1000,
    open_files: 100,
    threads: 20,
    output: 64 << 10,
};

fn program() -> (TempDir, Process) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    program::write(&path);
    (folder, process(&path).limits(LIMITS))
}

fn process(path: &Path) -> Process {
    Process::new(path).engine(EngineKind::Auto)
}

/// Few lanes: evaluators have a memory of their own for each.
fn many(process: Process) -> Many {
    Many::new(process).threads(2).lanes(66)
}

/// One that wants a GPU whatever it was measured, and never thinks better of it.
fn eager() -> Policy {
    Policy {
        watched: 0.0,
        busy: 0.0,
        start: 0.0,
        lane_speed: f64::INFINITY,
        first_lot: 64,
        trial: f64::INFINITY,
        gain: 0.0,
        judged: u64::MAX,
    }
}

/// Rows without an end, or until that is set.
fn rows(enough: &Arc<AtomicBool>) -> impl Iterator<Item = Row> + Send + use<> {
    let enough = enough.clone();
    (0..).map(row).take_while(move |_| !enough.load(Ordering::Relaxed))
}

fn row(lane: u64) -> Row {
    let attacks = ["crash", "disk", "forks", "loop", "memory", "output", "x", "unknown"];
    match lane % 4 {
        3 => Row::new().arg(attacks[(lane / 4 % 8) as usize]),
        _ => Row::new().arg("answer").stdin(format!("answer of lane {lane}")),
    }
}

/// What a lane did, whatever it ran on.
fn told(ran: LaneOutcome) -> (u64, String) {
    (ran.lane, format!("{:?}", ran.result.map(|outcome| Outcome { moved: None, ..outcome })))
}

/// The results of a run, each lane once. `see` is asked after each whether it has seen enough.
fn all(
    runs: &mut Runs,
    enough: &AtomicBool,
    mut see: impl FnMut(&LaneOutcome) -> bool,
) -> BTreeMap<u64, LaneOutcome> {
    let mut all = BTreeMap::new();
    for ran in runs {
        let ran = ran.unwrap();
        enough.fetch_or(see(&ran), Ordering::Relaxed);
        let lane = ran.lane;
        assert!(all.insert(lane, ran).is_none(), "lane {lane} has two results");
    }
    assert!(all.keys().copied().eq(0..all.len() as u64), "lanes are missing");
    all
}

/// The same rows on the CPU do the same.
fn compare(process: Process, all: BTreeMap<u64, LaneOutcome>) {
    let rows: Vec<Row> = all.keys().copied().map(row).collect();
    let runs = Many::new(process.engine(EngineKind::Cpu)).run(rows).unwrap();
    let on_cpu: BTreeMap<_, _> = runs.map(|ran| told(ran.unwrap())).collect();
    for (lane, text) in all.into_values().map(told) {
        assert_eq!(on_cpu[&lane], text, "lane {lane}");
    }
}

fn on_wgpu(all: &BTreeMap<u64, LaneOutcome>) -> u64 {
    all.values().filter(|ran| ran.engine == EngineKind::Wgpu).count() as u64
}

fn check_works_beside_cpu(device: Device) {
    let (_folder, process) = program();
    let enough = Arc::new(AtomicBool::new(false));
    let many = many(process).deciding(eager(), device);
    let mut runs = many.run(rows(&enough)).unwrap();
    let mut seen = [0, 0];
    let all = all(&mut runs, &enough, |ran| {
        seen[usize::from(ran.engine == EngineKind::Wgpu)] += 1;
        seen.iter().all(|seen| *seen >= 20)
    });
    let placement = runs.placement();
    let on_gpu = on_wgpu(&all);
    let on_cpu = all.len() as u64 - on_gpu;
    assert_eq!(placement.lanes, [(EngineKind::Wgpu, on_gpu), (EngineKind::Cpu, on_cpu)]);
    let why = placement.why.unwrap();
    assert!(why.starts_with("a lane took ") && why.ends_with(" on wgpu"), "{why}");
    assert_eq!((runs.watch().running(), runs.watch().ended()), (0, all.len() as u64));
    compare(program().1, all);
}

#[test]
fn rows_do_the_same_wherever_they_run() {
    check_works_beside_cpu(device(Manner::Works).0);
}

#[test]
fn rows_do_the_same_on_a_software_gpu_beside_the_cpu() {
    let path = format!("{}/../../guests/linux/collatz", env!("CARGO_MANIFEST_DIR"));
    let row = |lane: u64| Row::new().args([(lane % 100 + 1).to_string(), "1".to_string()]);
    let enough = Arc::new(AtomicBool::new(false));
    let ended = enough.clone();
    let rows = (0..).map(row).take_while(move |_| !ended.load(Ordering::Relaxed));
    let device =
        Device::new(EngineKind::Wgpu, |config| Ok(Box::new(kvrm_wgpu::build(config, None)?)));
    let many = many(process(Path::new(&path))).deciding(eager(), device);
    let mut runs = many.run(rows).unwrap();
    let watch = runs.watch();
    let mut expected: BTreeMap<u64, String> = BTreeMap::new();
    let mut on_gpu = 0;
    for ran in &mut runs {
        let ran = ran.unwrap();
        on_gpu += u64::from(ran.engine == EngineKind::Wgpu);
        // Without a driver, it cannot be used at all.
        let has_failed = || watch.placement().why.is_some_and(|why| why.contains("failed"));
        enough.fetch_or(on_gpu >= 20 || has_failed(), Ordering::Relaxed);
        // Every hundredth row is the same.
        let (lane, text) = told(ran);
        let first = expected.entry(lane % 100).or_insert_with(|| text.clone());
        assert_eq!(*first, text, "lane {lane}");
    }
    let placement = runs.placement();
    let why = placement.why.unwrap();
    assert_eq!(placement.lanes[0], (EngineKind::Wgpu, on_gpu), "{why}");
    assert!(why.starts_with("a lane took ") && why.ends_with(" on wgpu"), "{why}");
}

#[test]
fn rows_of_a_gpu_that_fails_are_run_on_the_cpu() {
    for (manner, message) in [
        (Manner::Fails(20), "wgpu failed, and its lanes were run on cpu: the device was lost"),
        (Manner::Fails(0), "wgpu failed, and its lanes were run on cpu: the device was lost"),
        (Manner::IsMissing, "wgpu failed, and its lanes were run on cpu: there is no such device"),
    ] {
        let (_folder, process) = program();
        let enough = Arc::new(AtomicBool::new(false));
        let many = many(process).deciding(eager(), device(manner).0);
        let mut runs = many.run(rows(&enough)).unwrap();
        let watch = runs.watch();
        let all = all(&mut runs, &enough, |_| {
            watch.placement().why.is_some_and(|why| why.contains("failed"))
        });
        assert_eq!(runs.placement().why.unwrap(), message);
        assert_eq!((watch.running(), watch.ended()), (0, all.len() as u64));
        compare(program().1, all);
    }
}

#[test]
fn rows_of_a_gpu_that_makes_no_progress_are_taken_from_it() {
    let (_folder, process) = program();
    let (device, advances) = device(Manner::Hangs);
    let enough = Arc::new(AtomicBool::new(false));
    let many = many(process).deciding(eager(), device);
    let mut runs = many.run(rows(&enough)).unwrap();
    let all = all(&mut runs, &enough, |_| advances.load(Ordering::Relaxed) > 10);
    assert_eq!(on_wgpu(&all), 0);
    let why = runs.placement().why.unwrap();
    assert!(why.ends_with("cpu was done before a lane of wgpu was"), "{why}");
    compare(program().1, all);
}

#[test]
fn a_lane_of_a_gpu_that_has_no_time_left_has_it_again_on_the_cpu() {
    let (folder, _) = program();
    let (device, advances) = device(Manner::Works);
    let enough = Arc::new(AtomicBool::new(false));
    let ended = enough.clone();
    let rows = (0..).take_while(move |_| !ended.load(Ordering::Relaxed)).map(|lane| match lane {
        5 | 70 | 150 => Row::new().arg("loop"),
        _ => Row::new().arg("answer").stdin(format!("{lane}")),
    });
    let many = many(process(&folder.path().join("program")));
    let many = many.timeout(Duration::from_millis(300)).deciding(eager(), device);
    let mut runs = many.run(rows).unwrap();
    let all =
        all(&mut runs, &enough, |ran| ran.lane > 200 && advances.load(Ordering::Relaxed) > 20);
    for (lane, ran) in &all {
        let outcome = ran.result.as_ref().unwrap();
        match lane {
            5 | 70 | 150 => {
                assert_eq!((outcome.ending, ran.engine), (Ending::Cancelled, EngineKind::Cpu))
            }
            _ => assert_eq!(outcome.stdout, format!("{lane}").as_bytes()),
        }
    }
}

#[test]
fn cancelling_ends_both() {
    let (folder, _) = program();
    let (device, advances) = device(Manner::Works);
    let control = Arc::new(RunControl::new());
    let rows = (0..).map(|lane| Row::new().arg(["answer", "loop"][usize::from(lane > 100)]));
    let many = many(process(&folder.path().join("program")));
    let mut runs = many.deciding(eager(), device).run_with(rows, control.clone()).unwrap();
    while advances.load(Ordering::Relaxed) == 0 {
        // Before lanes do nothing but loop, results must be taken.
        if let std::task::Poll::Ready(ran) = runs.next_within(Duration::from_millis(1)) {
            ran.unwrap().unwrap();
        }
    }
    control.cancel();
    let watch = runs.watch();
    runs.by_ref().for_each(|ran| drop(ran.unwrap()));
    assert!(runs.next().is_none());
    assert_eq!(watch.running(), 0);
}

#[test]
fn a_run_may_be_dropped_while_a_gpu_has_rows() {
    let (_folder, process) = program();
    let never = Arc::new(AtomicBool::new(false));
    let many = many(process).deciding(eager(), device(Manner::Works).0);
    let mut runs = many.run(rows(&never)).unwrap();
    let watch = runs.watch();
    while runs.next().unwrap().unwrap().engine == EngineKind::Cpu {}
    drop(runs);
    assert_eq!(watch.running(), 0);
}

#[test]
#[should_panic(expected = "no row for you")]
fn a_panic_of_the_rows_is_the_callers_whoever_reads_them() {
    let (_folder, process) = program();
    let (device, advances) = device(Manner::Works);
    let rows = (0..).map(move |lane| match advances.load(Ordering::Relaxed) {
        0..5 => row(lane),
        _ => panic!("no row for you"),
    });
    many(process).deciding(eager(), device).run(rows).unwrap().for_each(drop);
}

#[test]
fn a_bad_row_ends_both_after_those_before() {
    let (_folder, process) = program();
    let (device, advances) = device(Manner::Works);
    let made = Arc::new(AtomicU64::new(0));
    let counter = made.clone();
    let rows = (0..).map(move |lane| match advances.load(Ordering::Relaxed) {
        0..5 => {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(row(lane))
        }
        _ => Err("this row is bad"),
    });
    let runs = many(process).deciding(eager(), device).run(rows).unwrap();
    let mut results: Vec<_> = runs.collect();
    let error = results.pop().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "this row is bad");
    let lanes = results.into_iter().map(|ran| ran.unwrap().lane);
    let lanes: std::collections::BTreeSet<_> = lanes.collect();
    assert!(lanes.into_iter().eq(0..made.load(Ordering::Relaxed)));
}

/// Where rows like this one are, and why, after so many.
fn placed(many: Many, row: Row, count: usize) -> String {
    let mut runs = many.run(vec![row; count]).unwrap();
    runs.by_ref().for_each(|ran| drop(ran.unwrap()));
    runs.placement().to_string()
}

#[test]
fn a_gpu_is_not_looked_for_without_need() {
    let (folder, process) = program();
    let none = || Device::new(EngineKind::Wgpu, |_| unreachable!("nobody has asked for it"));
    let answer = || Row::new().arg("answer").stdin("x");
    let few = many(process).deciding(Policy::default(), none());
    let text = placed(few, answer(), 20);
    let reason = ": the rest was done in less time than a GPU needs to start)";
    assert!(text.starts_with("20 lanes on cpu (a lane took ") && text.ends_with(reason), "{text}");
    let real = Process::new(folder.path().join("program")).realtime(true);
    let text = placed(many(real).deciding(eager(), none()), answer(), 2);
    assert_eq!(text, "2 lanes on cpu (a program that sees the real time stays on cpu)");
    let chosen = Process::new(folder.path().join("program")).engine(EngineKind::Cpu);
    let text = placed(many(chosen).deciding(eager(), none()), answer(), 1);
    assert_eq!(text, "1 lane on cpu");
}

#[test]
fn programs_with_processes_end_on_the_cpu() {
    let (_folder, process) = program();
    let enough = Arc::new(AtomicBool::new(false));
    let ended = enough.clone();
    // Lanes that have nothing in common after their argument.
    let rows = (0..)
        .map(|lane| Row::new().arg(format!("forks {lane}")))
        .take_while(move |_| !ended.load(Ordering::Relaxed));
    let policy = Policy { judged: 4, ..eager() };
    let process = process.limits(Limits { instructions: 2000, ..LIMITS });
    let many = many(process).deciding(policy, device(Manner::Works).0);
    let mut runs = many.run(rows).unwrap();
    let watch = runs.watch();
    // Before the GPU has got any, or after it has had some.
    let reasons = ["most lanes make threads or processes", "most lanes left wgpu"];
    let is_told = || {
        let why = watch.placement().why.unwrap();
        reasons.iter().any(|reason| why.starts_with(reason))
    };
    let all = all(&mut runs, &enough, |_| is_told());
    assert!(is_told(), "{:?}", watch.placement());
    for ran in all.values() {
        let outcome = ran.result.as_ref().unwrap();
        assert_eq!(outcome.ending, Ending::Limited(kvrm::linux::Limit::Instructions));
        assert_eq!(outcome.moved.is_some(), ran.engine == EngineKind::Wgpu);
    }
}
