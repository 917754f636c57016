//! Linux programs do the same on every engine.

#![cfg(unix)]

use kvrm::EngineKind;
use kvrm::linux::{Many, Outcome, Process, Row};

fn run(engine: EngineKind, program: &str) -> Outcome {
    let path = format!("{}/../../guests/linux/{program}", env!("CARGO_MANIFEST_DIR"));
    let process = Process::new(path).args(["3", "2"]).engine(engine);
    process.run().unwrap()
}

#[test]
fn engines_agree_on_every_instruction_and_call() {
    for program in ["collatz", "sort", "json", "aes_O3", "fft"] {
        let (cpu, eval) = (run(EngineKind::Cpu, program), run(EngineKind::Eval, program));
        assert!(cpu.success() && !cpu.stdout.is_empty(), "{program}: {cpu:?}");
        assert_eq!(cpu.stdout, eval.stdout, "{program}");
        assert_eq!(cpu.instructions, eval.instructions, "{program}");
        assert_eq!(cpu.system_calls, eval.system_calls, "{program}");
    }
}

#[test]
fn a_gpu_agrees_on_every_instruction_and_call() {
    let [cpu, gpu] = [EngineKind::Cpu, EngineKind::Wgpu].map(|engine| run(engine, "collatz"));
    assert_eq!((cpu.stdout, cpu.instructions), (gpu.stdout, gpu.instructions));
    assert_eq!((cpu.system_calls, gpu.moved), (gpu.system_calls, None));
}

/// A program in lanes of a GPU does for each row what it does on the CPU, also where it leaves its lane; the lanes are used again
/// for more rows than there are.
#[test]
fn lanes_of_a_gpu_agree_with_the_cpu() {
    let path = format!("{}/../../guests/linux/collatz", env!("CARGO_MANIFEST_DIR"));
    let rows = || {
        (1..=100u32).map(|number| match number % 10 {
            // No number, and more bytes of arguments than on other rows.
            7 => Row::new().arg("x".repeat(5000)).env("A", "b"),
            _ => Row::new().args([number.to_string(), "1".to_string()]),
        })
    };
    let [cpu, gpu] = [EngineKind::Cpu, EngineKind::Wgpu].map(|engine| {
        let many = Many::new(Process::new(&path).engine(engine)).lanes(40);
        let mut outcomes: Vec<_> = many.run(rows()).unwrap().map(|ran| ran.unwrap()).collect();
        outcomes.sort_by_key(|ran| ran.lane);
        let told = |ran: kvrm::linux::LaneOutcome| {
            let Outcome { ending, status, stdout, stderr, instructions, system_calls, .. } =
                ran.result.unwrap();
            (ran.lane, ending, status, stdout, stderr, instructions, system_calls)
        };
        outcomes.into_iter().map(told).collect::<Vec<_>>()
    });
    assert_eq!(cpu.len(), 100);
    for (cpu, gpu) in cpu.iter().zip(&gpu) {
        assert_eq!(cpu, gpu);
    }
    assert_eq!(cpu, gpu);
}
