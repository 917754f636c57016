//! Runs that nobody waits for, and runs in batches.

use std::ops::ControlFlow;
use std::time::Duration;

use kvrm::{Batches, Error, Lanes, Machine, MemoryModel, Reg, Stop};

use crate::support::{CODE, DATA, HALT, Snapshot, Subject, all_memory, read_u64, x};

for_every_engine! {
    a_started_run_ends_by_itself, a_running_machine_is_out_of_reach, a_cancelled_start_can_go_on,
    waiting_for_a_while, nothing_to_wait_for, a_dropped_machine_stops, breakpoints_of_a_started_run,
    batches_do_what_one_run_does, batches_keep_stops, batches_end_when_told, batches_of_nothing,
    bulk_registers, registers_of_very_many_lanes,
}

for_split_engines! { a_started_run_ends_by_itself, batches_do_what_one_run_does, bulk_registers }

fn forever() -> Vec<u8> {
    asm!(; again: ; add x0, x0, 1 ; ldr x1, [x28] ; cbz x1, <again ; hlt 0)
}

fn until_it_has_begun(machine: &mut Machine) {
    while machine.poll().cycles == 0 {
        std::thread::yield_now();
    }
}

fn a_started_run_ends_by_itself(subject: Subject) {
    let code = asm!(; add x0, x27, 1 ; svc 1 ; hlt 0);
    let mut machine = subject.private(40, 2, &code);
    machine.start(1_000).unwrap();
    while machine.poll().running {
        std::thread::yield_now();
    }
    // Readable now, before anybody has waited.
    assert_eq!(x(&machine, 39, 0), 40);
    let report = machine.wait().unwrap();
    assert_eq!((report.cycles, report.cancelled, report.batches), (80, false, 1));
    let progress = machine.poll();
    assert_eq!((progress.cycles, progress.stopped, progress.running), (80, 40, false));
    machine.start_mega(1_000).unwrap();
    machine.wait().unwrap();
    assert_eq!(machine.stop(39).unwrap(), Some(HALT));
}

fn a_running_machine_is_out_of_reach(subject: Subject) {
    let mut machine = subject.shared(2, 1, &forever());
    machine.start(u64::MAX).unwrap();
    let running = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Running)));
    running(machine.start(1));
    running(machine.run(1).map(drop));
    running(machine.run_batches(Batches::of(1), |_, _| ControlFlow::Continue(())).map(drop));
    running(machine.register(0, Reg::X(0)).map(drop));
    running(machine.set_register(0, Reg::X(0), 1));
    running(machine.vector(0, 0).map(drop));
    running(machine.set_vector(0, 0, 1));
    running(machine.read_vectors(&mut [0; 64]));
    running(machine.write_vectors(&[0; 64]));
    running(machine.read_memory(0, 0, &mut [0]));
    running(machine.write_memory(0, 0, &[0]));
    running(machine.load(0, &[0]));
    running(machine.reset(Lanes::All));
    running(machine.stop(0).map(drop));
    assert_eq!((machine.lanes(), machine.memory_model()), (2, MemoryModel::Shared));
    assert!(machine.is_running());
    machine.cancel().unwrap();
    assert!(!machine.is_running());
    machine.register(0, Reg::X(0)).unwrap();
}

fn a_cancelled_start_can_go_on(subject: Subject) {
    let mut machine = subject.shared(3, 2, &forever());
    machine.start(u64::MAX).unwrap();
    until_it_has_begun(&mut machine);
    let report = machine.cancel().unwrap();
    assert!(report.cancelled && report.cycles > 0);
    assert_eq!(machine.stop(0).unwrap(), None);
    machine.write_memory(0, DATA, &[1]).unwrap();
    machine.start(u64::MAX).unwrap();
    assert!(!machine.wait().unwrap().cancelled);
    assert_eq!(machine.stop(2).unwrap(), Some(HALT));
}

fn waiting_for_a_while(subject: Subject) {
    let mut machine = subject.private(1, 1, &forever());
    machine.start(u64::MAX).unwrap();
    assert_eq!(machine.wait_for(Duration::from_millis(1)).unwrap(), None);
    machine.control().expect("it is running").cancel();
    let report = machine.wait_for(Duration::from_secs(60)).unwrap().expect("it was cancelled");
    assert!(report.cancelled);
}

fn nothing_to_wait_for(subject: Subject) {
    let mut machine = subject.machine(&asm!(; hlt 0));
    assert!(matches!(machine.wait(), Err(Error::NotStarted)));
    assert!(matches!(machine.cancel(), Err(Error::NotStarted)));
    assert!(matches!(machine.wait_for(Duration::ZERO), Err(Error::NotStarted)));
    assert!(!machine.poll().running && machine.control().is_none());
    machine.start(10).unwrap();
    machine.wait().unwrap();
    assert!(matches!(machine.wait(), Err(Error::NotStarted)));
}

fn a_dropped_machine_stops(subject: Subject) {
    let mut machine = subject.private(2, 2, &forever());
    machine.start(u64::MAX).unwrap();
    let control = machine.control().expect("it is running");
    drop(machine);
    assert!(control.was_cancelled());
    let executed = control.executed();
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(control.executed(), executed);
}

fn breakpoints_of_a_started_run(subject: Subject) {
    let mut machine = subject.machine(&asm!(; nop ; nop ; hlt 0));
    machine.add_breakpoint(CODE + 4).unwrap();
    machine.start(100).unwrap();
    machine.wait().unwrap();
    assert_eq!(machine.stop(0).unwrap(), Some(Stop::Breakpoint { imm: None }));
}

fn go_on(_: &Machine, _: &kvrm::RunReport) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Lanes stop after different numbers of instructions and for different reasons, at breakpoints too; where
/// batches end makes no difference.
fn batches_do_what_one_run_does(subject: Subject) {
    let code = asm!(
        ; add x3, x27, 3
        ; again: ; str x3, [x28] ; eor x4, x4, x3, ror 5 ; subs x3, x3, 1 ; b.ne <again
        ; cmp x27, 4 ; b.eq >two ; cmp x27, 5 ; b.eq >three ; svc 7 ; movz x5, 1
        ; two: ; movz x5, 2 ; hlt 0
        ; three: ; ldr x6, [x3, x5] ; .u32 0xffff_ffff);
    let two = CODE + 11 * 4;
    for batch in [1, 3, 7, 1000] {
        let (mut whole, mut cut) = (subject.private(7, 2, &code), subject.private(7, 2, &code));
        for machine in [&mut whole, &mut cut] {
            machine.add_breakpoint(two).unwrap();
        }
        whole.run(u64::MAX).unwrap();
        let report = cut.run_batches(Batches::of(batch), go_on).unwrap();
        for lane in 0..7 {
            assert_eq!(Snapshot::of(&cut, lane), Snapshot::of(&whole, lane), "{batch} {lane}");
            assert!(all_memory(&cut, lane) == all_memory(&whole, lane));
            assert_eq!(cut.cycles(lane).unwrap(), whole.cycles(lane).unwrap());
        }
        let longest = (0..7).map(|lane| whole.cycles(lane).unwrap()).max().unwrap();
        // A stop that executes nothing may need a batch of its own.
        assert!([longest.div_ceil(batch), longest / batch + 1].contains(&report.batches));
    }
}

/// A lane that has called the system does not go on while the others run.
fn batches_keep_stops(subject: Subject) {
    let code = asm!(; cbnz x27, >long ; svc 3 ; movz x0, 1 ; hlt 0 ; long: ; nop ; b <long);
    let mut machine = subject.private(2, 1, &code);
    let batches = Batches { max: Some(5), ..Batches::of(10) };
    let report = machine.run_batches(batches, go_on).unwrap();
    assert_eq!((report.batches, report.cycles), (5, 2 + 50));
    assert_eq!(machine.stop(0).unwrap(), Some(Stop::Syscall { imm: 3 }));
    assert_eq!((x(&machine, 0, 0), machine.stop(1).unwrap()), (0, Some(Stop::MaxCycles)));
    // An ordinary run resumes it.
    machine.run(10).unwrap();
    assert_eq!((x(&machine, 0, 0), machine.stop(0).unwrap()), (1, Some(HALT)));
}

fn batches_end_when_told(subject: Subject) {
    let mut machine = subject.private(2, 1, &forever());
    let mut reports = Vec::new();
    let report = machine
        .run_batches(Batches::of(30), |machine, report| {
            reports.push((report.cycles, report.batches, x(machine, 1, 0)));
            if report.batches == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(reports, [(60, 1, 10), (120, 2, 20)]);
    assert_eq!((report.cycles, report.batches, report.cancelled), (120, 2, false));
    let timeout = Some(Duration::from_millis(30));
    let report = machine.run_batches(Batches { timeout, ..Batches::of(u64::MAX) }, go_on).unwrap();
    assert!(report.cancelled && report.batches == 1);
    assert_eq!(machine.stop(0).unwrap(), None);
}

fn batches_of_nothing(subject: Subject) {
    let mut machine = subject.machine(&forever());
    let error = machine.run_batches(Batches::of(0), go_on).unwrap_err();
    assert!(matches!(error, Error::EmptyBatches));
    let report = machine.run_batches(Batches { max: Some(0), ..Batches::of(5) }, go_on).unwrap();
    assert_eq!((report.cycles, report.batches), (0, 0));
}

/// So many that engines may share the work among threads.
fn registers_of_very_many_lanes(subject: Subject) {
    let lanes = 40_000;
    let mut machine = subject.shared(lanes, 3, &asm!(; hlt 0));
    let wanted: Vec<u64> = (0..lanes as u64 * 31).collect();
    machine.write_general_registers(&wanted).unwrap();
    let mut all = vec![0; lanes * 31];
    machine.read_general_registers(&mut all).unwrap();
    assert!(all == wanted);
    let wanted: Vec<u128> = (0..lanes as u128 * 32).map(|n| n << 64 | !n >> 64).collect();
    machine.write_vectors(&wanted).unwrap();
    let mut all = vec![0; lanes * 32];
    machine.read_vectors(&mut all).unwrap();
    assert!(all == wanted);
}

fn bulk_registers(subject: Subject) {
    let mut machine = subject.private(70, 2, &asm!(; add x1, x27, 1 ; str x1, [x28] ; hlt 0));
    machine.run(10).unwrap();
    let mut all = vec![0; 70 * 31];
    machine.read_general_registers(&mut all).unwrap();
    for lane in 0..70 {
        assert_eq!((all[lane * 31 + 27], all[lane * 31 + 1]), (lane as u64, lane as u64 + 1));
        all[lane * 31 + 5] = 1000 - lane as u64;
    }
    machine.write_general_registers(&all).unwrap();
    assert_eq!((x(&machine, 69, 5), x(&machine, 69, 28)), (931, DATA));
    let pcs: Vec<u64> = (0..70).map(|lane| CODE + 4 * (lane % 2)).collect();
    machine.write_register(Reg::Pc, &pcs).unwrap();
    let mut read = vec![0; 70];
    machine.read_register(Reg::Pc, &mut read).unwrap();
    assert_eq!(read, pcs);
    let error = machine.write_register(Reg::Pc, &[2; 70]).unwrap_err();
    assert!(matches!(error, Error::MisalignedPc(2)));
    let error = machine.read_register(Reg::Pc, &mut [0; 69]).unwrap_err();
    assert!(matches!(error, Error::WrongLength { len: 69, wanted: 70 }));
    assert_eq!(machine.statuses().unwrap()[69].stop, Some(HALT));
    assert_eq!(read_u64(&machine, 69, DATA), 70);
}
