//! The guest programs give the results they give elsewhere, on every engine.

use std::path::Path;

use kvrm::{EngineKind, Machine, MemoryModel, Reg, Stop};

const BASE: u64 = 0x10000;
const MEMORY: u64 = 1 << 20;

fn guests() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests"))
}

/// A row of `guests/expected.txt`: what a guest returns for some arguments.
struct Expected {
    name: String,
    input: u64,
    iterations: u64,
    result: u64,
}

fn expected() -> Vec<Expected> {
    let text = std::fs::read_to_string(guests().join("expected.txt")).unwrap();
    let rows = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    rows.map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Expected {
            name: fields[0].to_string(),
            input: fields[1].parse().unwrap(),
            iterations: fields[2].parse().unwrap(),
            result: u64::from_str_radix(fields[3], 16).unwrap(),
        }
    })
    .collect()
}

fn run(engine: EngineKind, model: MemoryModel, row: &Expected, limit: u64) -> Option<u64> {
    let code = std::fs::read(guests().join(format!("bin/{}.bin", row.name))).unwrap();
    let builder = Machine::builder().engine(engine).memory(MEMORY).model(model);
    let mut machine = builder.build().unwrap();
    machine.load(BASE, &code).unwrap();
    machine.set_entry(BASE).unwrap();
    machine.set_register(0, Reg::X(0), row.input).unwrap();
    machine.set_register(0, Reg::X(1), row.iterations).unwrap();
    machine.run(limit).unwrap();
    match machine.stop(0).unwrap() {
        Some(Stop::Halt { imm: 0 }) => Some(machine.register(0, Reg::X(0)).unwrap()),
        Some(Stop::MaxCycles) => None,
        stop => panic!("{} stopped with {stop:?}", row.name),
    }
}

#[test]
fn results_on_the_cpu_engine() {
    for model in [MemoryModel::Private, MemoryModel::Shared] {
        for row in expected() {
            let result = run(EngineKind::Cpu, model, &row, u64::MAX);
            let context = format!("{} {} {}", row.name, row.input, row.iterations);
            assert_eq!(result, Some(row.result), "{context} in {model:?} memory");
        }
    }
}

#[test]
fn results_on_the_evaluator() {
    let mut compared = 0;
    for row in expected() {
        if let Some(result) = run(EngineKind::Eval, MemoryModel::Private, &row, 200_000) {
            assert_eq!(result, row.result, "{} {} {}", row.name, row.input, row.iterations);
            compared += 1;
        }
    }
    assert!(compared >= 10, "only {compared} guests are short enough to compare");
}

/// In shared memory every lane has a word of its own, at the distance in x2.
#[test]
fn lanes_store_side_by_side_in_shared_memory() {
    let code = std::fs::read(guests().join("bin/loop_store.bin")).unwrap();
    let (lanes, iterations, first) = (300, 1000, 0x20000);
    let builder = Machine::builder().lanes(lanes).memory(MEMORY).model(MemoryModel::Shared);
    let mut machine = builder.build().unwrap();
    machine.load(BASE, &code).unwrap();
    machine.set_entry(BASE).unwrap();
    for lane in 0..lanes {
        for (n, value) in [lane as u64, iterations, 8].into_iter().enumerate() {
            machine.set_register(lane, Reg::X(n as u8), value).unwrap();
        }
    }
    let report = machine.run(u64::MAX).unwrap();
    assert_eq!(report.cycles, lanes as u64 * (4 * iterations + 6));
    for lane in 0..lanes {
        let result = lane as u64 + iterations;
        assert_eq!(machine.register(lane, Reg::X(0)).unwrap(), result);
        let mut word = [0; 8];
        machine.read_memory(0, first + 8 * lane as u64, &mut word).unwrap();
        assert_eq!(u64::from_le_bytes(word), result);
    }
}
