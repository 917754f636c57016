//! Linux programs do the same on every engine.

#![cfg(unix)]

use kvrm::EngineKind;
use kvrm::linux::{Outcome, Process};

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
