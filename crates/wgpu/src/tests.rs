//! What can be tested without a GPU: kernels are sound, and translate to every target's language.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use kvrm_engine::MemoryModel;
use kvrm_engine::kernel::{Handlers, Record};
use kvrm_engine::translation::{Translated, Translation};
use kvrm_translate::{GuestCode, Region};
use naga::back::{hlsl, msl, spv};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{Module, front, proc};

use crate::kernel::{Atomics, KernelTarget, kernel};
use crate::lanes::MEANS;
use crate::windows::Windows;

const MODELS: [MemoryModel; 2] = [MemoryModel::Shared, MemoryModel::Private];

fn memory(model: MemoryModel) -> KernelTarget {
    let windows = Windows { bytes: 1 << 30, flat: 1, frames_each: 1 << 13, frames: 1 };
    KernelTarget {
        model,
        size: 1 << 20,
        group: 32,
        subgroup: 32,
        read_only: false,
        mapped: false,
        program: 1 << 20,
        windows,
        atomics: Atomics::Wide,
    }
}

/// Mapped memory.
fn mapped() -> KernelTarget {
    KernelTarget {
        size: 1 << 39,
        program: (1 << 39) - (2 << 20),
        group: 1,
        mapped: true,
        ..memory(MemoryModel::Private)
    }
}

/// All kinds of memory that lanes can write.
fn targets() -> [KernelTarget; 3] {
    [memory(MemoryModel::Shared), memory(MemoryModel::Private), mapped()]
}

/// Parses and validates a kernel.
fn checked(text: &str) -> (Module, ModuleInfo) {
    let module = front::wgsl::parse_str(text)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string(text)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .validate(&module)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string(text)));
    (module, info)
}

/// Handlers of all rows, in parts, with every choice. Only the first part, which has the most kinds of instructions, is
/// with each of them; the others take turns.
fn all_rows<T: Copy>(choices: &[T]) -> Vec<(Handlers, T)> {
    let first = choices.iter().map(|choice| (first_rows(), *choice));
    let others = Handlers::of_all_rows().into_iter().skip(1).zip(choices.iter().cycle().copied());
    first.chain(others).collect()
}

/// Handlers of the first rows.
fn first_rows() -> Handlers {
    Handlers::of_all_rows().swap_remove(0)
}

#[test]
fn kernels_of_all_rows_are_sound() {
    for (handlers, memory) in all_rows(&targets()) {
        checked(&kernel(&handlers, None, &memory));
    }
}

/// Whatever numbers handlers have that load and store, their names are no words of the language.
#[test]
fn handlers_have_names_of_their_own() {
    let mut handlers = Handlers::new();
    for row in kvrm_a64::table().iter().filter(|row| row.name.starts_with(['L', 'S'])) {
        handlers.record(0x1000, row.pattern.value);
    }
    assert!(handlers.len() > 128, "u8 to u64 and more are among them");
    checked(&kernel(&handlers, None, &memory(MemoryModel::Private)));
}

/// No checks are added: the kernel makes its own.
const UNCHECKED: proc::BoundsCheckPolicies = proc::BoundsCheckPolicies {
    index: proc::BoundsCheckPolicy::Unchecked,
    buffer: proc::BoundsCheckPolicy::Unchecked,
    image_load: proc::BoundsCheckPolicy::Unchecked,
    binding_array: proc::BoundsCheckPolicy::Unchecked,
};

fn to_msl(module: &Module, info: &ModuleInfo) -> String {
    let options = msl::Options {
        // The first that knows memory which is coherent.
        lang_version: (3, 2),
        fake_missing_bindings: true,
        bounds_check_policies: UNCHECKED,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..msl::Options::default()
    };
    msl::write_string(module, info, &options, &msl::PipelineOptions::default()).unwrap().0
}

fn to_hlsl(module: &Module, info: &ModuleInfo) -> String {
    let options = hlsl::Options {
        shader_model: hlsl::ShaderModel::V6_6,
        restrict_indexing: false,
        force_loop_bounding: false,
        ..hlsl::Options::default()
    };
    let pipeline = hlsl::PipelineOptions::default();
    let mut text = String::new();
    hlsl::Writer::new(&mut text, &options, &pipeline).write(module, info, None).unwrap();
    text
}

fn to_spirv(module: &Module, info: &ModuleInfo) -> Vec<u32> {
    let options = spv::Options {
        lang_version: (1, 3),
        bounds_check_policies: UNCHECKED,
        force_loop_bounding: false,
        ..spv::Options::default()
    };
    spv::write_vec(module, info, &options, None).unwrap()
}

/// Runs one of the Khronos Group's own tools on a module. What it prints.
fn spirv_tool(tool: &mut Command, words: &[u32]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel.spv");
    std::fs::write(&path, bytemuck::cast_slice(words)).unwrap();
    let output = tool.arg(&path).output().expect("`cargo xtask test` brings SPIR-V's tools");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn validate_spirv(words: &[u32]) {
    spirv_tool(Command::new("spirv-val").args(["--target-env", "vulkan1.2"]), words);
}

fn disassembled(words: &[u32]) -> String {
    spirv_tool(Command::new("spirv-dis").args(["--no-indent", "--raw-id"]), words)
}

#[test]
fn kernels_of_all_rows_translate() {
    for (handlers, memory) in all_rows(&targets()) {
        let (module, info) = checked(&kernel(&handlers, None, &memory));
        validate_spirv(&to_spirv(&module, &info));
        assert!(to_hlsl(&module, &info).contains("uint64_t"));
    }
}

/// Metal has no 64-bit compare-and-exchange.
fn metal_memory(model: MemoryModel, coherent: bool) -> KernelTarget {
    KernelTarget { atomics: Atomics::Locks { coherent }, ..memory(model) }
}

#[test]
fn kernels_of_all_rows_translate_to_metal() {
    let choices =
        [(MemoryModel::Private, false), (MemoryModel::Shared, false), (MemoryModel::Shared, true)];
    for (handlers, (model, coherent)) in all_rows(&choices) {
        let (module, info) = checked(&kernel(&handlers, None, &metal_memory(model, coherent)));
        validate_spirv(&to_spirv(&module, &info));
        let text = to_msl(&module, &info);
        assert!(text.contains("ulong"));
        assert_eq!(text.contains("coherent device"), coherent);
        // The last two are how naga would keep accesses within bounds.
        let bounds = ["metal::min(unsigned(", "DefaultConstructible"];
        for unwanted in ["double", "float", "loop_bound", "naga_div"].into_iter().chain(bounds) {
            assert!(!text.contains(unwanted), "{unwanted}");
        }
    }
}

/// They need no atomics, so that Metal has them, too.
#[test]
fn kernels_without_atomics_translate() {
    let read_only = KernelTarget { read_only: true, ..memory(MemoryModel::Shared) };
    for memory in [read_only, mapped()] {
        let (module, info) = checked(&kernel(&first_rows(), None, &memory));
        validate_spirv(&to_spirv(&module, &info));
        assert!(to_hlsl(&module, &info).contains("uint64_t"));
        assert!(to_msl(&module, &info).contains("ulong"));
    }
}

/// Subgroups of 64 lanes, as AMD's GPUs have them, vote with more than one word.
#[test]
fn kernels_of_wide_subgroups_translate() {
    let memory = KernelTarget { subgroup: 64, ..memory(MemoryModel::Private) };
    let (module, info) = checked(&kernel(&first_rows(), None, &memory));
    validate_spirv(&to_spirv(&module, &info));
    assert!(to_hlsl(&module, &info).contains("uint4"));
    assert!(to_msl(&module, &info).contains("uint4"));
}

/// Instructions whose kernel is recorded.
const GOLDEN: &[u32] = &[
    0x9100_0420, // add x0, x1, #1
    0xf100_0421, // subs x1, x1, #1
    0x54ff_ffa1, // b.ne -12
    0xb940_0420, // ldr w0, [x1, #4]
    0xf900_0062, // str x2, [x3]
    0xf8e2_0020, // ldaddal x2, x0, [x1]
    0xdac0_1020, // clz x0, x1
];

/// The same with functions: one that is shared by two handlers, called once and for each element, and a small one.
const GOLDEN_CALLS: &[u32] = &[
    0x9100_0420, // add x0, x1, #1
    0x1e22_2820, // fadd s0, s1, s2
    0x4e22_d420, // fadd v0.4s, v1.4s, v2.4s
    0x1e22_3820, // fsub s0, s1, s2
    0x1e22_c020, // fcvt d0, s1
    0x1e22_2000, // fcmp s0, s2
];

fn check_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/golden").join(name);
    if std::env::var_os("KVRM_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(recorded == text, "{} is out of date: see the comment on this test", path.display());
}

/// A loop that is translated: address, word.
const LOOP: &[(u64, u32)] = &[
    (0x1000, 0xb940_0420), // ldr w0, [x1, #4]
    (0x1004, 0xf900_0062), // str x2, [x3]
    (0x1008, 0xb400_0040), // cbz x0, over the next
    (0x100c, 0x9100_0442), // add x2, x2, #1
    (0x1010, 0xf100_0421), // subs x1, x1, #1
    (0x1014, 0x54ff_ff61), // b.ne, back to the first
];

/// A kernel that has some words translated, which begin at the given addresses.
fn translated(words: &[(u64, u32)], entries: &[u64], memory: &KernelTarget) -> String {
    let word = |pc: u64| words.iter().find(|(at, _)| *at == pc).map(|(_, word)| *word);
    let region =
        |entry: &u64| Region::new(&GuestCode::find(*entry, word, |_, _| true), MEANS.lacks);
    let translation = Translation::new(entries.iter().map(region).collect());
    let mut handlers = Handlers::new();
    let records: HashMap<u64, Record> =
        words.iter().map(|(pc, word)| (*pc, handlers.record(*pc, *word))).collect();
    let record = |pc: u64| records[&pc];
    kernel(&handlers, Some(Translated { translation: &translation, record: &record }), memory)
}

/// Every row whose instructions can be translated, a block for each shape.
#[test]
fn translated_code_of_all_rows_is_sound() {
    let mut words = Vec::new();
    for row in kvrm_a64::table() {
        let word = row.pattern.value | row.pattern.preferred;
        let shapes = (0..row.shapes()).map(|shape| row.with_shape(word, shape));
        words.extend(shapes.filter(|word| row.matches(*word)));
    }
    let mut handlers = Handlers::new();
    words.retain(|word| {
        let record = handlers.record(0x1000, *word);
        handlers.is_translatable(record, MEANS)
    });
    assert!(words.len() > 1000, "{}", words.len());
    let targets = [memory(MemoryModel::Private), memory(MemoryModel::Shared)];
    for (words, memory) in words.chunks(MEANS.most).zip(targets.iter().cycle()) {
        let placed: Vec<(u64, u32)> = (0x1000..).step_by(8).zip(words.iter().copied()).collect();
        let entries: Vec<u64> = placed.iter().map(|(pc, _)| *pc).collect();
        let (module, info) = checked(&translated(&placed, &entries, memory));
        validate_spirv(&to_spirv(&module, &info));
    }
}

fn handlers_of(words: &[u32]) -> Handlers {
    let mut handlers = Handlers::new();
    for word in words {
        handlers.record(0x1000, *word);
    }
    handlers
}

/// After a deliberate change: `KVRM_BLESS=1 cargo test -p kvrm-wgpu golden`.
#[test]
fn kernels_are_as_recorded_in_golden_files() {
    let calls = kernel(&handlers_of(GOLDEN_CALLS), None, &memory(MemoryModel::Private));
    checked(&calls);
    check_golden("calls.wgsl", &calls);
    let handlers = handlers_of(GOLDEN);
    for model in MODELS {
        let text = kernel(&handlers, None, &memory(model));
        let (module, info) = checked(&text);
        let name = format!("{model:?}").to_lowercase();
        check_golden(&format!("{name}.wgsl"), &text);
        check_golden(&format!("{name}.hlsl"), &to_hlsl(&module, &info));
        check_golden(&format!("{name}.spvasm"), &disassembled(&to_spirv(&module, &info)));
        let (module, info) = checked(&kernel(&handlers, None, &metal_memory(model, true)));
        check_golden(&format!("{name}.metal"), &to_msl(&module, &info));
    }
    let text = kernel(&handlers, None, &mapped());
    let (module, info) = checked(&text);
    check_golden("mapped.wgsl", &text);
    check_golden("mapped.metal", &to_msl(&module, &info));
    let text = translated(LOOP, &[0x1000], &memory(MemoryModel::Private));
    let (module, info) = checked(&text);
    check_golden("translated.wgsl", &text);
    check_golden("translated.hlsl", &to_hlsl(&module, &info));
    check_golden("translated.spvasm", &disassembled(&to_spirv(&module, &info)));
    let metal = metal_memory(MemoryModel::Private, true);
    let (module, info) = checked(&translated(LOOP, &[0x1000], &metal));
    check_golden("translated.metal", &to_msl(&module, &info));
}

/// With memory of every kind, in several windows, and with subgroups of 64 lanes.
#[test]
fn translated_code_translates() {
    let private = memory(MemoryModel::Private);
    let windows = KernelTarget {
        windows: Windows { bytes: 1 << 18, flat: 4, frames_each: 1 << 10, frames: 3 },
        ..private
    };
    let shared = memory(MemoryModel::Shared);
    let read_only = KernelTarget { read_only: true, ..shared };
    let wide = KernelTarget { subgroup: 64, ..private };
    for memory in
        [private, windows, shared, read_only, wide, metal_memory(MemoryModel::Shared, false)]
    {
        let (module, info) = checked(&translated(LOOP, &[0x1000], &memory));
        validate_spirv(&to_spirv(&module, &info));
        let [hlsl, msl] = [to_hlsl(&module, &info), to_msl(&module, &info)];
        assert!(hlsl.contains("uint64_t") && msl.contains("ulong"));
    }
}
