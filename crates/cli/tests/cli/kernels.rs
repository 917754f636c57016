//! What kernels a run has to wait for, on llvmpipe.

use serde_json::Value;

use crate::folder::Folder;

/// The kernels of a run with a cache of the folder's own: how many handlers and translated instructions each has, and whether
/// it was in the cache.
fn kernels(folder: &Folder, program: &str, lanes: usize) -> Vec<(u64, u64, bool)> {
    let arguments = format!("exec {program} --engine wgpu --lanes {lanes} --timing --json");
    let mut command = folder.command(&arguments);
    let output = command.env("KVRM_CACHE_DIR", folder.path().join("cache")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernels = report["timing"]["kernels"].as_array().unwrap();
    let number = |kernel: &Value, what| kernel[what].as_u64().unwrap();
    let kernel = |kernel: &Value| {
        (number(kernel, "handlers"), number(kernel, "translated"), kernel["cached"] == true)
    };
    kernels.iter().map(kernel).collect()
}

/// Assembles a program.
fn program(folder: &Folder, name: &str, text: &str) {
    let words = kvrm::assemble(text, 0x10000).unwrap();
    folder.file(name, words);
}

/// The statements again and again, as code that a program may well have.
fn often(statements: &str) -> String {
    statements.repeat(10)
}

#[test]
fn a_program_waits_for_one_kernel_at_the_most_and_another_time_for_none() {
    let folder = Folder::new();
    // Code that is only reached through addresses in registers.
    let first = often("add x1, x1, #1\n mul x2, x1, x1\n eor x3, x3, x2\n");
    let second = often("clz x4, x3\n udiv x5, x3, x4\n lsl x6, x5, #3\n");
    let many = format!(
        "adr x0, first\n br x0\n .word 0\n first: {first} adr x0, second\n br x0\n .word 0\n second: {second} hlt #0"
    );
    program(&folder, "many.bin", &many);
    assert_eq!(kernels(&folder, "many.bin", 16), [(9, 0, false)]);
    assert_eq!(kernels(&folder, "many.bin", 16), [(9, 0, true)]);
    // Another program, which wants some of them.
    program(&folder, "few.bin", "clz x4, x3\n add x1, x1, #1\n hlt #0");
    assert_eq!(kernels(&folder, "few.bin", 16), [(9, 0, true)]);
}

#[test]
fn a_second_run_finds_its_translation_compiled() {
    let folder = Folder::new();
    // Long enough for the driver to compile the loop meanwhile, on whatever computer this is.
    for turns in [0x8_0000, 0x20_0000, 0x80_0000, 0x200_0000] {
        let text = format!(
            "mov x9, #{turns}\n again: add x1, x1, #3\n eor x2, x2, x1\n subs x9, x9, #1\n b.ne again\n hlt #0"
        );
        program(&folder, "loop.bin", &text);
        let loaded = kernels(&folder, "loop.bin", 64);
        if loaded.iter().any(|(_, translated, _)| *translated > 0) {
            let again = kernels(&folder, "loop.bin", 64);
            let has_all = again.iter().all(|(_, _, cached)| *cached);
            if has_all && again.iter().any(|(_, translated, _)| *translated > 0) {
                return;
            }
        }
    }
    panic!("no run has found its translation");
}
