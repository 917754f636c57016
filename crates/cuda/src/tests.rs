//! Kernels assemble for every generation and say what they should, which takes no GPU; the driver compiles
//! and the cache keeps them, which does.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use kvrm_a64::state::TPIDR_EL0;
use kvrm_a64::{Flow, flow};
use kvrm_engine::MemoryModel;
use kvrm_engine::cache::KernelCache;
use kvrm_engine::kernel::{FIRST_HANDLER, Handlers, Record};
use kvrm_engine::translation::{Translated, Translation};
use kvrm_ir::legalise::legalise;
use kvrm_ir::{Builder, Function, Type};
use kvrm_translate::{GuestCode, Region};

use crate::call::functions;
use crate::compile::compile;
use crate::driver::{CudaError, Device, Kernel};
use crate::emit::{Emitter, LACKS, Setting};
use crate::kernel::{Arguments, KernelTarget, kernel};
use crate::memory::MemorySpec;
use crate::region::Blocks;

/// The oldest generation the engine supports, one in wide use, and the newest the assembler knows.
const GENERATIONS: [u32; 3] = [70, 90, 121];

fn ptxas() -> PathBuf {
    std::env::var_os("KVRM_PTXAS")
        .expect("KVRM_PTXAS must name a ptxas: `cargo xtask test` brings one")
        .into()
}

/// How much the assembler optimises. What it accepts does not depend on it, but the time it takes does.
#[derive(Clone, Copy)]
enum Effort {
    Least = 0,
    Usual = 3,
}

/// Assembles a kernel; what the assembler objects to, if anything.
fn assemble(text: &str, name: &str, generation: u32, effort: Effort) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join(format!("{name}-{generation}.ptx"));
    std::fs::write(&source, text).unwrap();
    let output = Command::new(ptxas())
        .args(["-arch", &format!("sm_{generation}"), &format!("-O{}", effort as u32), "-o"])
        .arg(source.with_extension("cubin"))
        .arg(&source)
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn memory(model: MemoryModel) -> MemorySpec {
    MemorySpec { model, size: 1 << 20, read_only: false, mapped: false, program: 1 << 20 }
}

/// Mapped memory.
fn mapped() -> MemorySpec {
    MemorySpec {
        size: 1 << 39,
        program: (1 << 39) - (2 << 20),
        mapped: true,
        ..memory(MemoryModel::Private)
    }
}

/// Each part with both models of memory, and the first one, which has the most kinds of instructions, also with memory
/// that is only read. Generations take turns, so that the first part is for all of them.
#[test]
fn kernels_of_all_rows_assemble() {
    let parts = Handlers::of_all_rows();
    let models = [MemoryModel::Shared, MemoryModel::Private].map(memory);
    let of_parts = (0..parts.len()).flat_map(|part| models.map(|memory| (part, memory)));
    let read_only = (0, MemorySpec { read_only: true, ..models[0] });
    let with_loads = parts.len().div_ceil(2);
    let of_mapped = (0..with_loads).map(|part| (part, mapped()));
    let jobs = std::iter::once(read_only).chain(of_parts).chain(of_mapped);
    in_parallel(jobs.zip(GENERATIONS.into_iter().cycle()), |((part, memory), capability)| {
        let text = kernel(&parts[part], None, &KernelTarget { memory, capability });
        let result = assemble(&text, &format!("all-{part}"), capability, Effort::Least);
        assert_eq!(result, Ok(()), "part {part}, {memory:?} on sm_{capability}");
    });
}

#[test]
fn the_kernel_that_moves_words_assembles() {
    for generation in GENERATIONS {
        let text = crate::moves::kernel();
        assert_eq!(assemble(&text, "moves", generation, Effort::Usual), Ok(()));
    }
}

/// Does some work on as many threads as there are processors.
fn in_parallel<T>(jobs: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let threads = std::thread::available_parallelism().unwrap().get();
    let jobs = Mutex::new(jobs);
    let next = || jobs.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = next() {
                    work(job);
                }
            });
        }
    });
}

/// Each interpreted, and with its first region translated.
#[test]
fn kernels_of_the_guests_assemble() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/bin"));
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let words = |at: u64| -> Option<u32> {
            let offset = at.checked_sub(0x10000)? as usize;
            Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().unwrap()))
        };
        let mut handlers = Handlers::new();
        let mut records = HashMap::new();
        for (pc, word) in kvrm_engine::code::reachable([0x10000], 1 << 16, words) {
            records.insert(pc, handlers.record(pc, word));
        }
        let translation = translation(0x10000, words);
        let record = |pc: u64| records[&pc];
        let translated = Translated { translation: &translation, record: &record };
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for (capability, memory) in [
            (GENERATIONS[0], memory(MemoryModel::Private)),
            (GENERATIONS[1], memory(MemoryModel::Private)),
            (GENERATIONS[1], mapped()),
            (GENERATIONS[2], memory(MemoryModel::Shared)),
        ] {
            for translated in [None, Some(translated)] {
                let text = kernel(&handlers, translated, &KernelTarget { memory, capability });
                let result = assemble(&text, &name, capability, Effort::Usual);
                assert_eq!(result, Ok(()), "{name} on sm_{capability}, {memory:?}");
            }
        }
    }
}

#[test]
fn kernels_of_lanes_with_supervisors_assemble() {
    let mut handlers = Handlers::new().supervised();
    // svc 0; ldr x0, [x1]; str x0, [x1], 8; stp x0, x1, [x2]; br x3; mrs x0, cntvct_el0
    for word in [0xd400_0001, 0xf940_0020, 0xf800_8420, 0xa900_0440, 0xd61f_0060, 0xd53b_e040] {
        handlers.record(0x1000, word);
    }
    for capability in GENERATIONS {
        let text = kernel(&handlers, None, &KernelTarget { memory: mapped(), capability });
        let result = assemble(&text, "supervisors", capability, Effort::Usual);
        assert_eq!(result, Ok(()), "sm_{capability}");
    }
}

/// A region of code that does not stop.
fn translation(entry: u64, words: impl Fn(u64) -> Option<u32>) -> Translation {
    let goes_on = |pc: u64, word: u32| !matches!(flow(word, pc), Flow::Stop { .. });
    let fetch = |pc| words(pc).filter(|word| goes_on(pc, *word));
    let code = GuestCode::find(entry, fetch, |_, _| true);
    Translation::new(vec![Region::new(&code, LACKS)])
}

static ONE_MORE: Function =
    Function::new("OneMore", &[Type::U64], &[Type::U64], |_, args| vec![args[0] + 1u64]);
static TWO_MORE: Function = Function::new("TwoMore", &[Type::U64], &[Type::U64; 2], |b, args| {
    let one = b.call(&ONE_MORE, args)[0];
    vec![one, b.call(&ONE_MORE, &[one])[0]]
});

#[test]
fn functions_are_written_once_and_after_those_that_they_call() {
    let b = Builder::new(None);
    for function in [&TWO_MORE, &ONE_MORE] {
        b.write_var(TPIDR_EL0, b.call(function, &[b.u64(7)])[0]);
    }
    let mut text = EMPTY.split_inclusive("\n\n").next().unwrap().to_string();
    let setting = Setting { memory: memory(MemoryModel::Shared), vectors: false };
    functions(&mut text, &setting, &[b.finish()]);
    let places = |name: &str| {
        text.match_indices(&format!(") {name}(")).map(|(at, _)| at).collect::<Vec<_>>()
    };
    let [inner, outer] = ["OneMore", "TwoMore"].map(places);
    assert_eq!([inner.len(), outer.len()], [1, 1], "{text}");
    assert!(inner < outer, "{text}");
    assert_eq!(assemble(&text, "functions", 90, Effort::Usual), Ok(()));
}

#[test]
fn bad_ptx_is_noticed() {
    assert!(assemble("not PTX", "bad", 90, Effort::Usual).is_err());
}

/// Instructions whose handlers are recorded: word, assembly.
const GOLDEN: &[(u32, &str)] = &[
    (0x9100_0420, "add x0, x1, #1"),
    (0xf100_0421, "subs x1, x1, #1"),
    (0x54ff_ffa1, "b.ne -12"),
    (0xb940_0420, "ldr w0, [x1, #4]"),
    (0xf900_0062, "str x2, [x3]"),
    (0xf8e2_0020, "ldaddal x2, x0, [x1]"),
    (0x1e62_2820, "fadd d0, d1, d2"),
];

/// After a deliberate change: `KVRM_BLESS=1 cargo test -p kvrm-cuda golden`.
/// A loop that is translated: address, word, assembly.
const LOOP: &[(u64, u32, &str)] = &[
    (0x1000, 0xb940_0420, "ldr w0, [x1, #4]"),
    (0x1004, 0xf900_0062, "str x2, [x3]"),
    (0x1008, 0xb400_0040, "cbz x0, over the next"),
    (0x100c, 0x9100_0442, "add x2, x2, #1"),
    (0x1010, 0xf100_0421, "subs x1, x1, #1"),
    (0x1014, 0x54ff_ff61, "b.ne, back to the first"),
];

/// The part of a kernel with its translated blocks.
fn blocks(memory: MemorySpec) -> String {
    let word = |pc: u64| LOOP.iter().find(|(at, ..)| *at == pc).map(|(_, word, _)| *word);
    let mut handlers = Handlers::new();
    let records: HashMap<u64, Record> =
        LOOP.iter().map(|(pc, word, _)| (*pc, handlers.record(*pc, *word))).collect();
    let translation = translation(0x1000, word);
    let record = |pc: u64| records[&pc];
    let setting = Setting { memory, vectors: false };
    let translated = Translated { translation: &translation, record: &record };
    let mut text = String::new();
    Blocks::new(translated, &setting).write(&mut text);
    text
}

#[test]
fn handlers_are_as_recorded_in_golden_files() {
    let mut text = String::new();
    for model in [MemoryModel::Shared, MemoryModel::Private] {
        let mut handlers = Handlers::new();
        for (word, _) in GOLDEN {
            handlers.record(0x1000, *word);
        }
        for (index, (handler, (_, assembly))) in handlers.iter().zip(GOLDEN).enumerate() {
            text.push_str(&format!("// {assembly}, {model:?} memory\n"));
            let number = FIRST_HANDLER + index as u32;
            let routine = legalise(&handler.routine, LACKS);
            let setting = Setting { memory: memory(model), vectors: handlers.use_vectors() };
            Emitter::handler(&mut text, &setting, number, &routine);
        }
    }
    let models = [MemoryModel::Shared, MemoryModel::Private].map(memory);
    for (memory, name) in
        [models[0], models[1], mapped()].into_iter().zip(["Shared", "Private", "Mapped"])
    {
        let code = LOOP.iter().map(|(_, _, assembly)| *assembly).collect::<Vec<_>>().join("; ");
        text += &format!("// {code}, translated, {name} memory\n{}", blocks(memory));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/golden.ptx");
    if std::env::var_os("KVRM_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(recorded == text, "{} is out of date: see the comment on this test", path.display());
}

/// A kernel that does nothing.
const EMPTY: &str =
    ".version 6.5\n.target sm_70\n.address_size 64\n\n.visible .entry run()\n{\n\tret;\n}\n";

#[test]
#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]
fn compiled_kernels_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut device = Device::open(0).unwrap();
    device.cache = KernelCache::at(folder.path());
    let is_cached = || Kernel::load(&device, EMPTY).unwrap().1;
    assert_eq!([is_cached(), is_cached()], [false, true]);
    // The driver reads a module without a header as text, to its zero.
    device.cache.put(&device.key(EMPTY), b"neither PTX nor machine code\0");
    assert_eq!([is_cached(), is_cached()], [false, true], "compiled anew, and kept");
}

#[test]
#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]
fn what_the_compiler_objects_to_is_told() {
    let _device = Device::open(0).unwrap();
    let error = compile(&EMPTY.replace("ret;", "return;")).unwrap_err();
    assert!(matches!(&error, CudaError::Compile { log, .. } if log.contains("return")), "{error}");
}

/// In a process of its own: it spoils the driver for all others.
#[test]
#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]
fn a_kernel_that_fails_is_an_error() {
    let device = Device::open(0).unwrap();
    let (kernel, _) = Kernel::load(&device, &EMPTY.replace("ret;", "trap;")).unwrap();
    kernel.launch(1, 1, &Arguments::default()).unwrap();
    let error = loop {
        match kernel.is_done() {
            Ok(done) => assert!(!done, "it cannot end well"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CudaError::Lost(_)), "{error}");
    assert!(matches!(Device::open(0), Err(CudaError::Lost(_))));
}
