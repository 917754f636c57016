//! Every command but `exec`, from outside.

use crate::folder::{Folder, code};

#[test]
fn disasm_shows_words_and_rows() {
    let folder = Folder::new();
    folder.file("a.bin", code(&[0x9100_0420, 0x17ff_ffff, 0xffff_ffff]));
    assert_eq!(
        folder.output("disasm a.bin --base 0x2000"),
        "    0x2000  91000420  add x0, x1, #1
    0x2004  17ffffff  b 0x2000
    0x2008  ffffffff  .inst 0xffffffff  // undefined
"
    );
    let text = folder.output("disasm --word d65f03c0 0xd4400000 --rows");
    assert!(text.lines().next().unwrap().ends_with("// RET"), "{text}");
    assert!(text.contains("hlt #0") && text.contains("0x10004"));
    let lines = folder.json("disasm a.bin");
    assert_eq!(lines[0]["address"], "0x10000");
    assert_eq!(lines[0]["word"], "91000420");
    assert_eq!(lines[0]["row"], "ADD_imm_X");
    assert!(lines[2]["row"].is_null());
}

#[test]
fn asm_writes_code_that_runs() {
    let folder = Folder::new();
    folder.file(
        "count.s",
        "        mov x0, #10\nloop:   subs x0, x0, #1\n        b.ne loop\n        hlt #0\n",
    );
    let said = folder.output("asm count.s --base 0x20000");
    assert_eq!(said, "16 bytes for 0x20000, written to count.bin\n");
    let expected = code(&[0xd280_0140, 0xf100_0400, 0x54ff_ffe1, 0xd440_0000]);
    assert_eq!(std::fs::read(folder.path().join("count.bin")).unwrap(), expected);
    let run = folder.json("exec count.bin --base 0x20000");
    assert_eq!(run["totals"]["cycles"], 21);

    let piped = folder.kvrm_with_input("asm - -o add.bin", b"add x0, x0, #1; hlt #0");
    assert_eq!((piped.code, piped.stderr.as_str()), (0, ""));
    assert_eq!(
        std::fs::read(folder.path().join("add.bin")).unwrap(),
        code(&[0x9100_0400, 0xd440_0000])
    );
}

#[test]
fn asm_lists_statements() {
    let folder = Folder::new();
    folder.file(
        "a.s",
        "start: adr x0, text // where\n hlt #1\ntext: .asciz \"hello, world\"\n .byte 1, 2\n",
    );
    let expected = "   0x10000  10000040          start: adr x0, text // where
   0x10004  d4400020          hlt #1
   0x10008  68656c6c6f2c2077  text: .asciz \"hello, world\"  // 13 bytes
   0x10015  0102              .byte 1, 2
";
    assert_eq!(folder.output("asm a.s --list"), expected);
    assert!(!folder.path().join("a.bin").exists());
    let said = folder.output("asm a.s --list -o b.bin");
    assert_eq!(said, format!("{expected}23 bytes for 0x10000, written to b.bin\n"));

    let listing = folder.json("asm a.s");
    assert_eq!(listing["labels"]["text"], "0x10008");
    assert_eq!((&listing["bytes"], &listing["file"]), (&23.into(), &serde_json::Value::Null));
    assert_eq!(listing["statements"][1]["bytes"], "200040d4");
    assert_eq!(listing["statements"][1]["text"], "hlt #1");
}

#[test]
fn devices_are_listed() {
    let folder = Folder::new();
    let engines = folder.json("devices");
    let names: Vec<_> = engines.as_array().unwrap().iter().map(|e| &e["engine"]).collect();
    assert!(names.len() >= 2 && names.contains(&&"eval".into()));
    // Lines about a GPU are indented below it; engines that are not here come last.
    let text = folder.output("devices --memory 1M --written 4K");
    let here = |line: &&str| !line.starts_with(' ') && !line.contains("none here: needs");
    assert_eq!(text.lines().filter(here).count(), names.len());
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
    is_current("docs/isa.md", "isa --markdown");
}

#[cfg(unix)]
#[test]
fn syscalls_lists_the_table() {
    let folder = Folder::new();
    let calls = folder.json("syscalls");
    let calls = calls.as_array().unwrap();
    let write = calls.iter().find(|call| call["name"] == "write").unwrap();
    assert_eq!(write["number"], 64);
    assert_eq!(write["arguments"], serde_json::json!(["descriptor", "bytes", "size"]));
    let text = folder.output("syscalls");
    assert!(text.contains("\n  64  write(descriptor, bytes, size)\n"));
    assert!(text.contains("\n  90  capget(pointer, pointer): the guest has all\n"));
    assert!(text.contains(&format!("{} system calls", calls.len())));
}

/// docs/syscalls.md is what `kvrm syscalls --markdown` prints.
#[cfg(unix)]
#[test]
fn the_page_of_system_calls_is_current() {
    is_current("docs/syscalls.md", "syscalls --markdown");
}

/// Checks that a page of the guide is what a command prints.
fn is_current(page: &str, command: &str) {
    let printed = Folder::new().output(command);
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("KVRM_BLESS").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    // Not assert_eq: nobody wants to read two whole pages.
    let current = kept.replace("\r\n", "\n") == printed;
    assert!(current, "{page} is out of date; write it anew with KVRM_BLESS=1 cargo test");
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
    assert_eq!(text.lines().count(), 22, "{text}");
    // The time below the picture may be in µs.
    assert!(text.lines().take(20).all(str::is_ascii), "{text}");
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
    assert_eq!(programs, ["loop", "loop", "many_rows", "many_rows"]);
    let caches: Vec<_> = starts.iter().map(|start| start["cache"].as_str().unwrap()).collect();
    assert_eq!(caches, ["cold", "warm", "cold", "warm"]);
    for start in starts {
        // The cpu engine has no driver.
        assert!(start["timing"]["driver_seconds"].is_null());
        let run = start["timing"]["run_seconds"].as_f64().unwrap();
        assert!(start["process_seconds"].as_f64().unwrap() > run && run > 0.0);
    }
    let text = folder.output("bench --only start --engine eval --lanes 1");
    assert!(text.lines().last().unwrap().starts_with("start many_rows: machine "), "{text}");
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
    let commands =
        ["demo", "exec", "bench", "asm", "disasm", "devices", "isa", "completions", "man"];
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
