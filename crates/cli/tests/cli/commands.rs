//! Every command but `exec`, from outside.

use crate::folder::{Folder, code};

#[test]
fn disasm_shows_words_and_rows() {
    let folder = Folder::new();
    folder.file("a.bin", code(&[0x9100_0420, 0x17ff_ffff, 0xffff_ffff]));
    assert_eq!(
        folder.output("disasm a.bin --base 0x2000"),
        "    0x2000  91000420  add x0, x1, #0x1
    0x2004  17ffffff  b 0x2000
    0x2008  ffffffff  .inst 0xffffffff  // undefined
"
    );
    let text = folder.output("disasm --word d65f03c0 0xd4400000 --rows");
    assert!(text.lines().next().unwrap().ends_with("// RET"), "{text}");
    assert!(text.contains("hlt #0x0") && text.contains("0x10004"));
    let lines = folder.json("disasm a.bin");
    assert_eq!(lines[0]["address"], "0x10000");
    assert_eq!(lines[0]["word"], "91000420");
    assert_eq!(lines[0]["row"], "ADD_imm_X");
    assert!(lines[2]["row"].is_null());
}

#[test]
fn devices_are_listed() {
    let folder = Folder::new();
    let engines = folder.json("devices");
    let names: Vec<_> = engines.as_array().unwrap().iter().map(|e| &e["engine"]).collect();
    assert!(names.len() >= 2 && names.contains(&&"eval".into()));
    // Lines about a GPU are indented below it.
    let text = folder.output("devices --memory 1M --written 4K");
    assert_eq!(text.lines().filter(|line| !line.starts_with(' ')).count(), names.len());
    for engine in engines.as_array().unwrap() {
        assert_eq!(engine["gpu"].is_null(), engine["engine"] != "cuda");
    }
}

#[test]
fn isa_lists_the_table() {
    let folder = Folder::new();
    let rows = folder.json("isa");
    let rows = rows.as_array().unwrap();
    let add = rows.iter().find(|row| row["name"] == "ADD_imm_X").unwrap();
    assert_eq!(add["group"], "Add/subtract (immediate)");
    assert_eq!(add["encoding"], "1 0 0 100010 sh:1 imm12:12 Rn:5 Rd:5");
    assert_eq!(add["engines"], serde_json::json!(["cpu", "cuda", "wgpu", "eval"]));
    let text = folder.output("isa");
    assert!(text.contains(&format!("{} encodings", rows.len())));
}

/// docs/isa.md is what `kvrm isa --markdown` prints.
#[test]
fn the_page_of_instructions_is_current() {
    let page = Folder::new().output("isa --markdown");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/isa.md");
    if std::env::var_os("KVRM_BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    // Not assert_eq: nobody wants to read two whole pages.
    let current = kept.replace("\r\n", "\n") == page;
    assert!(current, "docs/isa.md is out of date; write it anew with KVRM_BLESS=1 cargo test");
}

#[test]
fn demo_computes_the_same_picture_on_every_engine() {
    let folder = Folder::new();
    let picture = |engine: &str| {
        let options = "--width 24 --height 16 --max-iterations 30";
        let file = format!("{engine}.png");
        let mut summary = folder.json(&format!("demo {options} --engine {engine} --out {file}"));
        for changing in ["seconds", "instructions_per_second", "instructions_per_second_per_lane"] {
            assert!(summary[changing].take().as_f64().unwrap() > 0.0);
        }
        assert_eq!(summary["file"].take(), file);
        assert_eq!(summary["lanes"], 16);
        summary["engine"].take();
        (summary, std::fs::read(folder.path().join(file)).unwrap())
    };
    let first = picture("eval");
    assert!(first.1.starts_with(b"\x89PNG"));
    assert_eq!(picture("eval"), first);
    assert_eq!(picture("cpu"), first);
}

#[test]
fn demo_draws_shades_where_there_is_no_terminal() {
    let folder = Folder::new();
    let demo = "demo --width 60 --height 40 --max-iterations 20";
    let text = folder.output(demo);
    assert!(folder.path().join("mandelbrot.png").exists());
    assert!(text.is_ascii() && text.lines().count() == 22, "{text}");
    assert!(text.contains("60 x 40 pixels, written to mandelbrot.png\n40 lanes on "));
    assert_eq!(folder.output(&format!("{demo} --no-draw")).lines().count(), 2);
}

#[test]
fn bench_measures_and_checks() {
    let folder = Folder::new();
    let result = folder.json("bench --only loop --only reset --seconds 0.01 --lanes 2");
    let speed = &result["guests"][0];
    assert_eq!((&speed["guest"], &speed["lanes"]), (&"loop".into(), &2.into()));
    let iterations = speed["iterations"].as_u64().unwrap();
    // Two lanes, three instructions an iteration, three more before HLT.
    assert_eq!(speed["instructions"], 2 * (3 * iterations + 3));
    assert!(speed["instructions_per_second"].as_f64().unwrap() > 0.0);
    assert!(result["reset"]["executions_per_second"].as_f64().unwrap() > 0.0);

    let result = folder.json("bench --only loop --seconds 0.001 --engine eval --mega");
    assert_eq!(result["engine"], "eval");

    let text = folder.output("bench --only loop_store --shared --seconds 0.001 --engine eval");
    assert!(text.starts_with("engine eval, shared memory\n"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("loop_store "));
}

#[test]
fn bench_measures_starts() {
    let folder = Folder::new();
    let result = folder.json("bench --only start --lanes 2 --shared");
    let starts = result["starts"].as_array().unwrap();
    let programs: Vec<_> = starts.iter().map(|start| start["program"].as_str().unwrap()).collect();
    assert_eq!(programs, ["loop", "every_row"]);
    for start in starts {
        // The cpu engine has neither driver nor kernels, so cold and warm are the same.
        assert!(start["cache"].is_null() && start["timing"]["driver_seconds"].is_null());
        let run = start["timing"]["run_seconds"].as_f64().unwrap();
        assert!(start["process_seconds"].as_f64().unwrap() > run && run > 0.0);
    }
    let text = folder.output("bench --only start --engine eval --lanes 1");
    assert!(text.lines().last().unwrap().starts_with("start every_row: machine "), "{text}");
}

#[test]
fn completions_and_manual_know_the_commands() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.output(&format!("completions {shell}"));
        assert!(script.contains("max-cycles"), "{shell}");
    }
    assert!(folder.output("man").contains(".TH kvrm 1"));
    folder.output("man pages");
    for page in ["kvrm.1", "kvrm-exec.1", "kvrm-demo.1", "kvrm-bench.1"] {
        assert!(folder.path().join("pages").join(page).exists(), "{page}");
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let folder = Folder::new();
    let commands = ["demo", "exec", "bench", "disasm", "devices", "isa", "completions", "man"];
    for command in commands {
        let help = folder.output(&format!("{command} --help"));
        assert!(help.contains(&format!("  kvrm {command}")), "{command}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_kvrm"))
        .arg("isa")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn demo_draws_pictures_of_any_shape() {
    let folder = Folder::new();
    for (width, height) in [(1, 1), (4096, 1), (1, 400), (3, 200)] {
        let size = format!("--width {width} --height {height} --max-iterations 3");
        folder.output(&format!("demo {size}"));
    }
}
