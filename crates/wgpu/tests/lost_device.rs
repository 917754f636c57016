#![cfg(target_os = "linux")]
//! A device that its driver says is lost.
//!
//! Drivers are chosen when a process starts, so a test starts this program once more, with `losing_driver.c`
//! compiled and between Vulkan and the driver that `VK_DRIVER_FILES` names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kvrm_engine::{Config, Engine, EngineError, MemoryModel, RunControl, RunRequest, Stop};
use kvrm_wgpu::{WgpuEngine, build};

/// The library of the driver that tests use.
fn real_driver() -> String {
    let file = std::env::var("VK_DRIVER_FILES").expect("the driver, as `cargo xtask test` sets it");
    let text = fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once("\"library_path\"").expect("where the driver is");
    rest.split('"').nth(1).unwrap().into()
}

#[test]
fn with_a_driver_that_loses_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/losing_driver.c");
    let library = folder.path().join("liblosing.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
    assert!(compiler.arg(&library).arg(source).status().expect("a C compiler").success());
    let driver = folder.path().join("driver.json");
    let path = library.display();
    let text = format!(
        r#"{{"file_format_version": "1.0.0", "ICD": {{"library_path": "{path}", "api_version": "1.3.0"}}}}"#
    );
    fs::write(&driver, text).unwrap();
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(["--ignored", "--test-threads", "1"]).env("VK_DRIVER_FILES", driver);
    tests.env("REAL_DRIVER", real_driver()).env("LOST", folder.path().join("lost"));
    tests.env("KILLED", folder.path().join("killed"));
    let output = tests.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(" 3 passed"), "{text}");
}

/// What the driver does to devices while this lives.
struct Mischief(PathBuf);

impl Mischief {
    fn begin(variable: &str) -> Mischief {
        let file = PathBuf::from(std::env::var_os(variable).expect("the losing driver"));
        fs::write(&file, "").unwrap();
        Mischief(file)
    }
}

impl Drop for Mischief {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

/// A machine whose program adds one, and stops.
fn engine() -> WgpuEngine {
    let config = Config {
        lanes: 5,
        memory_size: 1 << 16,
        model: MemoryModel::Private,
        read_only: false,
        mapped: false,
        supervisor_bytes: 0,
        threads: 1,
        translate_after: 0,
        code_memory: 1 << 20,
        profile: false,
    };
    let mut engine = build(config, None).unwrap();
    engine.write_image(0, &kvrm_asm::assemble("add x0, x0, #1; hlt #0", 0).unwrap()).unwrap();
    engine
}

fn run(engine: &mut WgpuEngine) -> Result<(), EngineError> {
    let control = RunControl::new();
    let request = RunRequest {
        max_cycles: 100,
        breakpoints: &[],
        single_launch: false,
        continues: false,
        control: &control,
    };
    engine.run(&request)
}

fn check(error: &EngineError) {
    let text = error.to_string();
    assert!(text.contains(&kvrm_wgpu::devices()[0].name), "{text}");
    assert!(text.contains("was lost") && text.contains("build the machine again"), "{text}");
}

#[test]
#[ignore = "for the driver that loses the device"]
fn in_a_run() {
    let mut before = engine();
    run(&mut before).unwrap();
    let mut lost = engine();
    {
        let _lost = Mischief::begin("LOST");
        check(&run(&mut lost).unwrap_err());
    }
    // What was there is gone, and says so.
    check(&run(&mut lost).unwrap_err());
    drop(lost);
    let mut after = engine();
    run(&mut after).unwrap();
    assert_eq!(after.status(4).unwrap().stop, Some(Stop::Halt { imm: 0 }));
    assert_eq!(before.state(4).unwrap().x[0], 1);
}

#[test]
#[ignore = "for the driver that loses the device"]
fn while_memory_is_read() {
    let mut engine = engine();
    engine.write_memory(3, 0x100, &[7]).unwrap();
    let _lost = Mischief::begin("LOST");
    let mut byte = [0];
    check(&engine.read_memory(3, 0x100, &mut byte).unwrap_err());
}

/// As where an operating system ends kernels that take long, and the driver keeps silent.
#[test]
#[ignore = "for the driver that loses the device"]
fn a_kernel_that_does_not_end() {
    let mut engine = engine();
    run(&mut engine).unwrap();
    let _killed = Mischief::begin("KILLED");
    let error = run(&mut engine).unwrap_err();
    check(&error);
    assert!(error.to_string().contains("did not execute a kernel to the end"), "{error}");
}
