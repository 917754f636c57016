//! No program runs longer than its timeout, or takes more and more memory.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kvrm::{Machine, MemoryModel, RunControl, RunReport};

use crate::compare::go_on;
use crate::program::{CODE, Program, Setup};
use crate::{Source, large};

/// How long a run with a timeout of milliseconds may take: one that takes longer hangs, however busy the computer is.
const HANGS: Duration = Duration::from_secs(20);
/// Bytes by which the process may grow in such runs.
const GROWTH: u64 = 512 << 20;
/// How often a program is run.
const RUNS: u64 = 3;
const LANES: u64 = 20;

/// Runs the program in `bytes` with a timeout and without a limit on instructions.
pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let setup = if source.one_in(8) { Setup::REFERENCE } else { Setup::from_source(&mut source) };
    let lanes = 1 + source.below(LANES) as usize;
    let shared = source.one_in(2);
    let timeout = Duration::from_millis(1 + source.below(8));
    let program = match source.u8() % 4 {
        0 => large::program(&mut source),
        1 => fresh_code(&mut source),
        _ => Program::from_source(&mut source),
    }
    .endless();
    let model = if shared { MemoryModel::Shared } else { MemoryModel::Private };
    let builder = setup.builder().lanes(lanes).threads(2).model(model);
    let start = |machine| program.start(machine);
    let mut machine = builder.build().and_then(start).expect("small machines can be built");
    let before = resident();
    for _ in 0..RUNS {
        machine = ends_in_time(machine, timeout);
        let grown = resident().saturating_sub(before);
        assert!(
            grown < GROWTH,
            "{grown} more bytes of memory, {setup:?}, {lanes} lanes\n{program}"
        );
        for lane in 0..lanes {
            go_on(&mut machine, lane, program.words.len()).expect("the lane exists");
        }
    }
}

/// Runs the machine until its time is over, and checks the result.
fn ends_in_time(machine: Machine, timeout: Duration) -> Machine {
    let (machine, report) = run(machine, timeout).expect("the run does not end");
    let lanes = machine.lanes();
    let runs_on = |lane| machine.stop(lane).expect("the lane exists").is_none();
    assert!(report.timed_out || !(0..lanes).any(runs_on), "the run ended before its time");
    let cycles = (0..lanes).map(|lane| machine.cycles(lane).expect("the lane exists"));
    assert_eq!(cycles.sum::<u64>(), report.cycles);
    machine
}

/// Runs the machine on a separate thread, which is abandoned if it hangs.
fn run(mut machine: Machine, timeout: Duration) -> Result<(Machine, RunReport), RecvTimeoutError> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let control = RunControl::new().with_timeout(timeout);
        let report = machine.run_with(u64::MAX, &control).expect("programs cannot make runs fail");
        // This fails if the run took too long, because nobody waits for it any more.
        let _ = sender.send((machine, report));
    });
    receiver.recv_timeout(HANGS)
}

/// Makes a program that writes a function and calls it: each time a different one, at a different address.
fn fresh_code(source: &mut Source<'_>) -> Program {
    let step = 4 * (1 + source.below(64));
    let text = format!(
        "movz w7, #0x9100, lsl #16     // add x0, x0, #0
        movz w8, #0x03c0
        movk w8, #0xd65f, lsl #16      // ret
        mov x9, #0x4000
        add x2, x2, #{step}
        and x2, x2, #0x1ffc
        add x3, x9, x2
        add w5, w5, #0x400
        and w6, w5, #0x3ffc00
        orr w6, w6, w7
        stp w6, w8, [x3]
        blr x3"
    );
    let program = kvrm_asm::assemble_program(&text, CODE).expect("this is right");
    let words = program.bytes.chunks(4).map(|word| word.try_into().expect("four bytes"));
    Program::around(source, 1, |_| words.map(u32::from_le_bytes).collect())
}

/// Returns the bytes of memory that the process has; 0 if the system does not say.
fn resident() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/status") else { return 0 };
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}
