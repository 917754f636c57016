//! Memory whose pages have permissions, on the engines that have it.

use kvrm::{EngineKind, Stop};
use kvrm_a64::state::CpuState;
use kvrm_cpu::CpuEngine;
use kvrm_engine::{
    Config, Engine, EngineError, EvalEngine, LaneStatus, MemoryModel, RunControl, RunRequest,
};
use kvrm_fuzzing::program::Setup;
use kvrm_mem::{PAGE, Permissions};

use crate::support::{CODE, Subject};

/// Makes tests of functions that take a `Subject`, for the engines on GPUs, where a mapped memory is for one lane.
macro_rules! for_mapped_devices {
    ($($test:ident),* $(,)?) => {
        for_every_engine! { @module wgpu, WGPU, []: $($test)* }
        for_every_engine! {
            @module cuda, CUDA, [#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]]: $($test)*
        }
        for_every_engine! {
            @module cuda_interpreting, CUDA_INTERPRETING,
            [#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]]: $($test)*
        }
        for_every_engine! {
            @module cuda_switching, CUDA_SWITCHING,
            [#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]]: $($test)*
        }
    };
}

/// Makes tests of functions that take a `Subject`, for engines whose lanes may have a mapped memory each.
macro_rules! for_mapped_lanes {
    ($($test:ident),* $(,)?) => {
        for_every_engine! { @module eval, EVAL, []: $($test)* }
        for_mapped_devices! { $($test),* }
    };
}

/// Makes tests of functions that take a `Subject`, for the engines on the host.
macro_rules! for_mapped_engines {
    ($($test:ident),* $(,)?) => {
        for_every_engine! { @module cpu_translating, TRANSLATING, []: $($test)* }
        for_every_engine! { @module cpu_interpreting, INTERPRETING, []: $($test)* }
        for_every_engine! { @module cpu_switching, SWITCHING, []: $($test)* }
        for_every_engine! { @module cpu, CPU, []: $($test)* }
        for_every_engine! { @module eval, EVAL, []: $($test)* }
    };
}

mod accesses;
mod code;
mod deriving;
mod lanes;
mod processes;
mod random;
mod siblings;
mod spans;
mod supervisors;
mod tags;

const NONE: Permissions = Permissions::NONE;
const READ: Permissions = Permissions::READ;
const WRITE: Permissions = Permissions::WRITE;
const EXECUTE: Permissions = Permissions::EXECUTE;

/// Bytes of memory: as many as a process may have.
const SIZE: u64 = 1 << 39;

/// A machine with mapped memory.
struct Guest {
    engine: Box<dyn Engine>,
}

impl Guest {
    /// One lane and no pages.
    fn empty(subject: Subject) -> Guest {
        Guest::with(subject, SIZE, 1)
    }

    /// One lane about to run `code`.
    fn new(subject: Subject, code: &[u8]) -> Guest {
        let mut guest = Guest::empty(subject);
        guest.load(CODE, code);
        guest.set_pc(CODE);
        guest
    }

    fn with(subject: Subject, memory_size: u64, lanes: usize) -> Guest {
        Guest::of(subject, memory_size, lanes, MemoryModel::Shared)
    }

    fn of(subject: Subject, memory_size: u64, lanes: usize, model: MemoryModel) -> Guest {
        Guest::with_supervisors(subject, [memory_size, 0], lanes, model)
    }

    /// The same, with so many bytes at the end of memory that are the supervisors'.
    fn with_supervisors(
        subject: Subject,
        [memory_size, supervisor_bytes]: [u64; 2],
        lanes: usize,
        model: MemoryModel,
    ) -> Guest {
        let Setup { engine, translate_after } = subject.setup;
        let config = Config {
            lanes,
            memory_size,
            model,
            read_only: false,
            mapped: true,
            supervisor_bytes,
            threads: lanes,
            translate_after,
            code_memory: subject.code_memory.unwrap_or(64 << 20),
            profile: false,
        };
        let engine: Box<dyn Engine> = match engine {
            EngineKind::Eval => Box::new(EvalEngine::new(config).unwrap()),
            EngineKind::Cpu => Box::new(CpuEngine::new(config).unwrap()),
            EngineKind::Cuda => {
                Box::new(kvrm_cuda::build(config, 0).unwrap().without_other_kernels())
            }
            EngineKind::Wgpu => {
                Box::new(kvrm_wgpu::build(config, None).unwrap().without_other_kernels())
            }
            EngineKind::Auto => unreachable!("an engine was named"),
        };
        Guest { engine }
    }

    /// Puts code into pages of its own, which can be executed and read.
    fn load(&mut self, addr: u64, code: &[u8]) {
        self.write(addr, code);
        let first = addr / PAGE * PAGE;
        let end = (addr + code.len() as u64).next_multiple_of(PAGE);
        self.protect(first, end - first, READ | EXECUTE);
    }

    fn protect(&mut self, addr: u64, len: u64, permissions: Permissions) {
        self.engine.protect(0, addr, len, permissions).unwrap();
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) {
        self.engine.write_memory(0, addr, bytes).unwrap();
    }

    fn read(&self, addr: u64) -> u64 {
        let mut bytes = [0; 8];
        self.engine.read_memory(0, addr, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn change(&mut self, change: impl Fn(&mut CpuState)) {
        self.engine.change_states(0..1, &mut |state| change(state)).unwrap();
    }

    fn set_pc(&mut self, pc: u64) {
        self.change(|state| state.pc = pc);
    }

    fn set_x(&mut self, number: usize, value: u64) {
        self.change(|state| state.x[number] = value);
    }

    fn x(&self, number: usize) -> u64 {
        self.engine.state(0).unwrap().x[number]
    }

    fn pc(&self) -> u64 {
        self.engine.state(0).unwrap().pc
    }

    fn status(&self) -> LaneStatus {
        self.engine.status(0).unwrap()
    }

    /// Runs until it stops; why it did.
    fn run(&mut self) -> Stop {
        self.run_for(100_000_000)
    }

    fn run_for(&mut self, max_cycles: u64) -> Stop {
        let control = RunControl::default();
        let request = RunRequest {
            max_cycles,
            breakpoints: &[],
            single_launch: false,
            continues: false,
            control: &control,
        };
        self.engine.run(&request).unwrap();
        self.status().stop.unwrap()
    }

    /// Runs from an address on.
    fn run_at(&mut self, pc: u64) -> Stop {
        self.set_pc(pc);
        self.run()
    }
}

#[test]
fn a_memory_is_for_one_lane_on_devices_and_for_all_on_the_cpu() {
    let config = Config {
        lanes: 2,
        memory_size: PAGE,
        model: MemoryModel::Shared,
        read_only: false,
        mapped: true,
        supervisor_bytes: 0,
        threads: 1,
        translate_after: 0,
        code_memory: 1 << 20,
        profile: false,
    };
    let cuda = kvrm_cuda::build(config.clone(), 0).err();
    let wgpu = kvrm_wgpu::build(config.clone(), None).err();
    let cpu = CpuEngine::new(Config { model: MemoryModel::Private, ..config }).err();
    assert!(matches!(cpu, Some(EngineError::MappedForEach("cpu"))));
    for (error, name) in [(cuda, "cuda"), (wgpu, "wgpu")] {
        assert!(matches!(error, Some(EngineError::MappedForMany(engine)) if engine == name));
    }
}
