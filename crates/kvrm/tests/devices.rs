//! Choosing devices, what `auto` takes, and lanes split over engines of any kind.

use kvrm::{EngineKind, Error, Machine, MemoryModel, RunControl};
use kvrm_cpu::CpuEngine;
use kvrm_engine::{Config, Engine, EvalEngine, RunRequest, SplitEngine};

fn error(builder: kvrm::MachineBuilder) -> Error {
    builder.build().err().expect("it cannot be built")
}

#[test]
fn engines_without_devices_say_so() {
    for kind in [EngineKind::Cpu, EngineKind::Eval] {
        let error = error(Machine::builder().engine(kind).device(0));
        assert!(matches!(error, Error::NoDevices(name) if name == kind.name()));
        assert!(error.to_string().contains("only cuda and wgpu have"), "{error}");
        assert!(Machine::builder().engine(kind).devices([]).build().is_ok());
    }
}

/// Also on a computer without any, and where few lanes would leave it without work.
#[test]
fn a_device_that_does_not_exist() {
    for kind in [EngineKind::Auto, EngineKind::Cuda] {
        for devices in [vec![1000], vec![0, 1000]] {
            let error = error(Machine::builder().engine(kind).devices(devices));
            assert!(matches!(error, Error::Engine(_)));
            assert!(error.to_string().starts_with("no CUDA device"), "{error}");
        }
    }
}

#[test]
fn shared_memory_is_not_split() {
    let builder = Machine::builder().model(MemoryModel::Shared).lanes(100).devices([0, 1]);
    let error = error(builder);
    assert!(error.to_string().contains("use private memory or one device"), "{error}");
}

#[test]
fn auto_takes_a_gpu_for_very_many_lanes() {
    let engine = |lanes| {
        let builder = Machine::builder().threads(1).memory(4096).lanes(lanes);
        builder.build().unwrap().engine()
    };
    assert_eq!(engine(1), "cpu");
    assert_eq!(engine(511), "cpu");
    let gpu = kvrm::devices().iter().any(|device| device.engine == EngineKind::Cuda);
    assert_eq!(engine(512), if gpu { "cuda" } else { "cpu" });
}

/// `x0 += x1` as often as X1 says, its result in memory; then HLT.
const CODE: [u32; 5] = [0x8b01_0000, 0xf100_0421, 0x54ff_ffc1, 0xf900_0040, 0xd440_0000];
const DATA: u64 = 0x1000;

fn run(mut engine: impl Engine) -> Vec<(kvrm::Stop, u64, u64)> {
    engine.write_image(0, &CODE.map(u32::to_le_bytes).concat()).unwrap();
    let lanes = 0..engine.config().lanes;
    for lane in lanes.clone() {
        let mut state = engine.state(lane).unwrap();
        (state.x[1], state.x[2]) = (1 + lane as u64 % 50, DATA);
        engine.set_state(lane, &state).unwrap();
    }
    let control = RunControl::new();
    let request = RunRequest {
        max_cycles: 120,
        breakpoints: &[],
        single_launch: false,
        continues: false,
        control: &control,
    };
    engine.run(&request).unwrap();
    let results: Vec<_> = lanes
        .map(|lane| {
            let mut bytes = [0; 8];
            engine.read_memory(lane, DATA, &mut bytes).unwrap();
            let status = engine.status(lane).unwrap();
            (status.stop.expect("it was not cancelled"), status.count, u64::from_le_bytes(bytes))
        })
        .collect();
    let counts: u64 = results.iter().map(|(_, count, _)| count).sum();
    assert_eq!((control.executed(), control.stopped()), (counts, results.len() as u64));
    results
}

#[test]
fn parts_of_any_kind() {
    let model = kvrm_engine::MemoryModel::Private;
    let config = Config {
        lanes: 200,
        memory_size: 0x2000,
        model,
        read_only: false,
        mapped: false,
        supervisor_bytes: 0,
        threads: 2,
        translate_after: 0,
        code_memory: 1 << 20,
        profile: false,
    };
    let expected = run(EvalEngine::new(config.clone()).unwrap());
    let split = SplitEngine::new(config.clone(), 3, 32, |part, config| {
        Ok(match part {
            1 => Box::new(EvalEngine::new(config)?) as Box<dyn Engine>,
            _ => Box::new(CpuEngine::new(config)?),
        })
    });
    assert_eq!(run(split.unwrap()), expected);
    assert_eq!(run(CpuEngine::new(config).unwrap()), expected);
}
