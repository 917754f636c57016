//! Compares the CPU engine with the evaluator on few lanes; `cargo xtask gpu-check` compares a GPU's on many.

use kvrm::{EngineKind, MemoryModel};
use kvrm_a64::table;
use kvrm_conformance::lanes::{Plan, report};
use kvrm_conformance::quota::Quota;
use kvrm_conformance::suite::SEED;

fn check(model: MemoryModel, cases: u64) {
    let plan = Plan {
        engine: EngineKind::Cpu,
        model,
        rows: table().iter().collect(),
        cases: Quota::each(cases),
        seed: SEED,
        // Two rounds: one has first runs of one instruction, the other of two, and fewer cases.
        lanes: 1 + cases.div_ceil(2) as usize * (table().len() + 1),
        threads: 2,
    };
    let summary = plan.run(&|_, _, _| ()).unwrap();
    print!("{}", report::text(&plan, &summary));
    assert_eq!(summary.cases(), cases * (table().len() as u64 + 1));
    assert_eq!(summary.different(), 0);
}

#[test]
fn the_cpu_engine_agrees_with_the_evaluator() {
    check(MemoryModel::Private, 2);
}

#[test]
fn the_cpu_engine_agrees_with_the_evaluator_in_shared_memory() {
    check(MemoryModel::Shared, 2);
}
