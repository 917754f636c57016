//! Runs both oracles on cases with known answers.
//!
//! Needs `KVRM_ORACLE_PYTHON`, a Python with the `unicorn` package, and
//! `qemu-aarch64-static` and `aarch64-linux-gnu-gcc` in the path.

mod vectors;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use kvrm_oracles::{
    CODE_END, CODE_START, Case, Error, MEMORY_END, Oracle, Outcome, OutcomeKind, QemuOracle, State,
    UnicornOracle, WINDOW_LEN, WINDOW_START, build_qemu_harness,
};

const NOP: u32 = 0xD503_201F;
const B_SELF: u32 = 0x1400_0000;
const LDXR_X2_X1: u32 = 0xC85F_7C22;
const STXR_W0_X1_X1: u32 = 0xC800_7C21;
const UNMAPPED: u64 = 0x8_0000;

fn unicorn() -> UnicornOracle {
    let python = std::env::var_os("KVRM_ORACLE_PYTHON").expect(
        "set KVRM_ORACLE_PYTHON to a Python that has the unicorn package \
         (python3 -m venv env && env/bin/pip install unicorn==2.1.4)",
    );
    UnicornOracle::start(Path::new(&python)).unwrap_or_else(|error| panic!("{error}"))
}

fn qemu() -> QemuOracle {
    static HARNESS: OnceLock<PathBuf> = OnceLock::new();
    let harness = HARNESS.get_or_init(|| {
        build_qemu_harness(Path::new(env!("CARGO_TARGET_TMPDIR")))
            .unwrap_or_else(|error| panic!("{error}"))
    });
    QemuOracle::start(Path::new("qemu-aarch64-static"), harness)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn both() -> [Box<dyn Oracle>; 2] {
    [Box::new(unicorn()), Box::new(qemu())]
}

/// A case with distinct values in all registers and in the window.
fn case(code: &[u32]) -> Case {
    Case {
        code: code.to_vec(),
        max_instructions: if code.len() == 1 { 1 } else { 10_000 },
        code_address: CODE_START + 0x1000,
        state: State {
            x: std::array::from_fn(|i| 0x100 + i as u64),
            sp: WINDOW_START + 0x100,
            nzcv: 0,
            tpidr_el0: 0x777,
            ..State::default()
        },
        vectors: false,
        window: std::array::from_fn(|i| i as u8),
    }
}

fn with_x(mut case: Case, register: usize, value: u64) -> Case {
    case.state.x[register] = value;
    case
}

fn at(mut case: Case, code_address: u64) -> Case {
    case.code_address = code_address;
    case
}

/// The outcome of a case that runs to its end and changes nothing else.
fn done(case: &Case) -> Outcome {
    Outcome {
        kind: OutcomeKind::Done,
        detail: 0,
        pc: case.code_address + 4 * case.code.len() as u64,
        state: case.state,
        window: case.window,
    }
}

/// The outcome of a case that stops at the instruction with this index.
fn stopped(case: &Case, kind: OutcomeKind, index: u64) -> Outcome {
    Outcome { kind, pc: case.code_address + 4 * index, ..done(case) }
}

/// Runs a case on its own and compares all but the detail.
fn check_on(oracle: &mut dyn Oracle, what: &str, case: &Case, expected: &Outcome) {
    let outcome = run(oracle, std::slice::from_ref(case)).remove(0);
    let expected = Outcome { detail: outcome.detail, ..expected.clone() };
    assert_eq!(outcome, expected, "{what} on {}", oracle.name());
}

fn run(oracle: &mut dyn Oracle, cases: &[Case]) -> Vec<Outcome> {
    oracle.run(cases).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks a case on both oracles; `change` turns "nothing happened" into the
/// expected outcome.
fn check(what: &str, case: &Case, change: impl Fn(&mut Outcome)) {
    let mut expected = done(case);
    change(&mut expected);
    for mut oracle in both() {
        check_on(oracle.as_mut(), what, case, &expected);
    }
}

#[test]
fn arithmetic() {
    check("add x0, x1, x2", &case(&[0x8B02_0020]), |o| o.state.x[0] = 0x203);
    check("subs xzr, x1, x1", &case(&[0xEB01_003F]), |o| o.state.nzcv = 0x6000_0000);
    check("add sp, sp, #16", &case(&[0x9100_43FF]), |o| o.state.sp += 16);
    let mut carry = case(&[0x9A02_0020]);
    carry.state.nzcv = 0x2000_0000;
    check("adc x0, x1, x2", &carry, |o| o.state.x[0] = 0x204);
}

#[test]
fn loads_and_stores() {
    let load = with_x(case(&[0xF940_0020]), 1, WINDOW_START + 8);
    check("ldr x0, [x1]", &load, |o| o.state.x[0] = 0x0F0E_0D0C_0B0A_0908);
    let store = with_x(case(&[0xF81F_8C20]), 1, MEMORY_END);
    check("str x0, [x1, #-8]!", &store, |o| {
        o.state.x[1] = MEMORY_END - 8;
        o.window[WINDOW_LEN - 8..].copy_from_slice(&0x100_u64.to_le_bytes());
    });
}

#[test]
fn addresses_and_thread_pointer() {
    check("adr x0, .+4", &case(&[0x1000_0020]), |o| o.state.x[0] = o.pc);
    check("mrs x0, tpidr_el0", &case(&[0xD53B_D040]), |o| o.state.x[0] = 0x777);
    check("msr tpidr_el0, x0", &case(&[0xD51B_D040]), |o| o.state.tpidr_el0 = 0x100);
}

#[test]
fn branches() {
    let start = case(&[NOP]).code_address;
    check("b to unmapped memory", &case(&[0x1410_0000]), |o| o.pc = start + 0x40_0000);
    check("b to itself", &case(&[B_SELF]), |o| o.pc = start);
    check("b into the code area", &case(&[0x1400_0008]), |o| o.pc = start + 0x20);
    check("cbz x0, not taken", &case(&[0xB400_0100]), |_| {});
    check("cbz x0, taken", &with_x(case(&[0xB400_0100]), 0, 0), |o| o.pc = start + 0x20);
    let into_window = with_x(case(&[0xD63F_0020]), 1, WINDOW_START);
    check("blr x1", &into_window, |o| {
        o.state.x[30] = o.pc;
        o.pc = WINDOW_START;
    });
    let misaligned = with_x(case(&[0xD61F_0020]), 1, start + 0x23);
    check("br x1 to a misaligned address", &misaligned, |o| o.pc = start + 0x23);
}

#[test]
fn programs() {
    // mov x0, #10; subs x0, x0, #1; b.ne .-4; nop
    check("a loop", &case(&[0xD280_0140, 0xF100_0400, 0x54FF_FFE1, NOP]), |o| {
        o.state.x[0] = 0;
        o.state.nzcv = 0x6000_0000;
    });
    let start = case(&[NOP]).code_address;
    check("an endless loop", &case(&[B_SELF, NOP]), |o| {
        o.kind = OutcomeKind::Limit;
        o.pc = start;
    });
}

#[test]
fn events() {
    let ldr_unmapped = 0xF940_0020;
    let events = [
        ("udf", 0x0000_0000, OutcomeKind::Undefined),
        ("hlt", 0xD440_0000, OutcomeKind::Undefined),
        ("brk", 0xD420_0020, OutcomeKind::Brk),
        ("ldr from unmapped memory", ldr_unmapped, OutcomeKind::MemoryFault),
    ];
    for (what, word, kind) in events {
        let single = with_x(case(&[word]), 1, UNMAPPED);
        check(what, &single, |o| *o = stopped(&single, kind, 0));
        let program = with_x(case(&[NOP, NOP, word, NOP]), 1, UNMAPPED);
        check(what, &program, |o| *o = stopped(&program, kind, 2));
    }
    let unaligned = with_x(case(&[LDXR_X2_X1]), 1, WINDOW_START + 1);
    check("ldxr of an unaligned address", &unaligned, |o| {
        *o = stopped(&unaligned, OutcomeKind::AlignmentFault, 0);
    });
}

#[test]
fn memory_faults_tell_the_address() {
    let loads = [UNMAPPED, MEMORY_END - 4].map(|address| with_x(case(&[0xF940_0020]), 1, address));
    for mut oracle in both() {
        let details: Vec<_> = run(oracle.as_mut(), &loads).iter().map(|o| o.detail).collect();
        assert_eq!(details, [UNMAPPED, MEMORY_END], "{}", oracle.name());
    }
}

#[test]
fn svc_runs_on_unicorn_only() {
    let svc = case(&[0xD400_0541]);
    let outcome = run(&mut unicorn(), std::slice::from_ref(&svc)).remove(0);
    assert_eq!(outcome, Outcome { kind: OutcomeKind::Svc, detail: 42, ..done(&svc) });
    check_on(&mut qemu(), "svc", &svc, &stopped(&svc, OutcomeKind::Other, 0));
}

#[test]
fn cases_leave_no_trace() {
    let start = CODE_START + 0x1000;
    let load_exclusive = with_x(at(case(&[LDXR_X2_X1]), start), 1, WINDOW_START);
    let store_exclusive = with_x(at(case(&[STXR_W0_X1_X1]), start + 16), 1, WINDOW_START);
    let set_vector = at(case(&[0x9E67_0020]), start + 32); // fmov d0, x1
    let get_vector = at(case(&[0x9E66_0000]), start + 48); // fmov x0, d0
    let branch_ahead = at(case(&[0x1400_0008]), start + 64);
    let code_there = at(case(&[0x8B02_0020]), start + 96);
    let branch_back = at(case(&[0x17FF_FFFC]), start + 112);
    let same_address = at(case(&[NOP]), start + 112);
    let cases = [
        load_exclusive,
        store_exclusive,
        set_vector,
        get_vector,
        branch_ahead,
        code_there,
        branch_back,
        same_address,
    ];
    let mut expected = cases.each_ref().map(done);
    expected[0].state.x[2] = 0x0706_0504_0302_0100;
    expected[1].state.x[0] = 1;
    expected[3].state.x[0] = 0;
    expected[4].pc = start + 96;
    expected[5].state.x[0] = 0x203;
    expected[6].pc = start + 96;
    for mut oracle in both() {
        assert_eq!(run(oracle.as_mut(), &cases), expected, "{}", oracle.name());
    }
}

#[test]
fn a_crash_costs_one_case() {
    // An unallocated encoding that fails an assertion inside Unicorn.
    let crash = case(&[0x7EF8_1A42]);
    let add = case(&[0x8B02_0020]);
    let mut oracle = unicorn();
    let cases = [add.clone(), add.clone(), crash.clone(), add.clone()];
    let Err(Error::Cases { failures, outcomes, .. }) = oracle.run(&cases) else {
        panic!("the crash was not reported");
    };
    assert_eq!(failures.len(), 1);
    assert_eq!((failures[0].index, &failures[0].words), (2, &crash.code));
    let answered: Vec<_> = outcomes.iter().map(Option::is_some).collect();
    assert_eq!(answered, [true, true, false, true]);
    assert_eq!(run(&mut oracle, &[add]).len(), 1);
}

#[test]
fn invalid_cases_are_refused() {
    let mut oracle = qemu();
    let mut two_words = case(&[NOP, NOP]);
    two_words.max_instructions = 1;
    let mut unannounced = case(&[NOP]);
    unannounced.state.v[31] = 1;
    let invalid = [
        case(&[]),
        two_words,
        at(case(&[NOP]), CODE_END - 4),
        at(case(&[NOP]), CODE_START + 2),
        unannounced,
    ];
    for case in invalid {
        let result = oracle.run(&[case]);
        assert!(matches!(result, Err(Error::InvalidCase { index: 0, .. })), "{result:?}");
    }
}

#[test]
fn missing_programs_are_named() {
    let Err(error) = UnicornOracle::start(Path::new("no-such-python")) else {
        panic!("a missing program was started");
    };
    assert!(error.to_string().starts_with("no-such-python not found: install"), "{error}");
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// ADD and EOR of a shifted register and LSL by a register, 32 and 64 bits.
fn random_word(random: &mut Random) -> u32 {
    let bits = random.next();
    let registers = bits as u32 & 0x001F_03FF;
    let wide = (bits >> 32) as u32 & 0x8000_0000;
    // 32-bit shifts go only to 31, and ADD has no rotation.
    let amount = ((bits >> 40) as u32 % if wide == 0 { 32 } else { 64 }) << 10;
    let shift = ((bits >> 48) as u32 % 3) << 22;
    let operation = match (bits >> 56) % 3 {
        0 => 0x0B00_0000 | shift | amount,
        1 => 0x4A00_0000 | shift | amount,
        _ => 0x1AC0_2000,
    };
    operation | wide | registers
}

fn random_cases(count: u64) -> Vec<Case> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let slots = (CODE_END - CODE_START) / 16;
    (0..count)
        .map(|index| {
            let mut case = case(&[random_word(&mut random)]);
            case.code_address = CODE_START + index % slots * 16;
            case.state.x = std::array::from_fn(|_| random.next());
            case.state.nzcv = random.next() & 0xF000_0000;
            case
        })
        .collect()
}

#[test]
fn oracles_agree_on_random_arithmetic() {
    let cases = random_cases(5000);
    let [mut first, mut second] = both();
    let outcomes = run(first.as_mut(), &cases).into_iter().zip(run(second.as_mut(), &cases));
    for (case, (a, b)) in cases.iter().zip(outcomes) {
        assert_eq!(a.kind, OutcomeKind::Done, "{:#010x}", case.code[0]);
        assert_eq!(a, b, "{:#010x}", case.code[0]);
    }
}

/// Gives a case vectors.
fn with_random_vectors(mut case: Case, random: &mut Random) -> Case {
    case.vectors = true;
    case.state.v =
        std::array::from_fn(|_| u128::from(random.next()) << 64 | u128::from(random.next()));
    case
}

/// Makes every eight cases have the code of the first of them, in the same place.
fn with_words_repeated(mut cases: Vec<Case>) -> Vec<Case> {
    for eight in cases.chunks_mut(8) {
        let (first, rest) = eight.split_first_mut().expect("chunks are not empty");
        for case in rest {
            (case.code, case.code_address) = (first.code.clone(), first.code_address);
        }
    }
    cases
}

#[test]
fn code_may_be_repeated() {
    let mut random = Random(7);
    let cases = random_cases(400).into_iter().map(|case| with_random_vectors(case, &mut random));
    let cases = with_words_repeated(cases.collect());
    for mut oracle in both() {
        let together = run(oracle.as_mut(), &cases);
        let alone: Vec<_> = cases
            .iter()
            .rev()
            .flat_map(|case| run(oracle.as_mut(), std::slice::from_ref(case)))
            .collect();
        assert!(together.iter().eq(alone.iter().rev()), "{}", oracle.name());
    }
}

#[test]
#[ignore = "measures speed; run with --ignored --nocapture"]
fn throughput() {
    let integer = random_cases(100_000);
    let mut random = Random(1);
    let vectors: Vec<_> =
        integer.iter().map(|case| with_random_vectors(case.clone(), &mut random)).collect();
    let repeated = with_words_repeated(vectors.clone());
    for mut oracle in both() {
        let kinds =
            [("integer", &integer), ("vectors", &vectors), ("vectors, eight a word", &repeated)];
        for (kind, cases) in kinds {
            let start = Instant::now();
            run(oracle.as_mut(), cases);
            let per_case = start.elapsed().as_secs_f64() * 1e6 / cases.len() as f64;
            println!("{}, {kind}: {per_case:.1} µs per case", oracle.name());
        }
    }
}
