//! `kvrm exec`, from outside.

use crate::folder::{Folder, code};

/// x0 = x0 * x0 + 1, stored at 0x20000
const SQUARE: [u32; 6] = [
    0x9b00_7c00, // mul x0, x0, x0
    0x9100_0400, // add x0, x0, #1
    0xd2a0_0041, // mov x1, #0x20000
    0xf900_0020, // str x0, [x1]
    0xd280_0001, // mov x1, #0
    0xd440_0000, // hlt #0
];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("square.bin", code(&SQUARE));
    folder.file("spin.bin", code(&[0x1400_0000])); // b .
    folder
}

#[test]
fn one_lane_for_people() {
    let text = folder().output("exec square.bin --set x0=7 --dump 0x20000:24");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "lane 0: HALT #0x0 at pc 0x10014 after 5 instructions");
    assert_eq!(lines[1], "   x0 0x0000000000000032");
    assert_eq!(
        lines[2],
        "  0x00020000  32 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  2..............."
    );
    assert_eq!(
        lines[3].trim_end(),
        format!("  0x00020010  {:47}  ........", "00 ".repeat(8).trim())
    );
    assert!(lines[4].starts_with("1 lane on "), "{}", lines[4]);
    assert!(lines[4].contains(": 1 HALT; 5 instructions in "));
    assert_eq!(lines.len(), 5);
}

#[test]
fn all_registers_are_printed_on_request() {
    let text = folder().output("exec square.bin --all-registers");
    for name in ["x0 ", "x30 ", "sp ", "nzcv ", "tpidr_el0 ", "v0 ", "v31 ", "fpcr ", "fpsr "] {
        assert!(text.contains(&format!(" {name}0x")), "{name} in {text}");
    }
}

#[test]
fn json_has_everything() {
    let result =
        folder().json("exec square.bin --lanes 3 --set x0=lane --dump 0x20000:2 --engine eval");
    assert_eq!(result["engine"], "eval");
    assert_eq!(result["memory"]["size"], 4 << 20);
    assert_eq!(result["memory"]["model"], "private");
    assert_eq!(result["lanes"].as_array().unwrap().len(), 3);
    let lane = &result["lanes"][2];
    assert_eq!(lane["lane"], 2);
    assert_eq!(lane["stop"]["name"], "HALT");
    assert_eq!(lane["stop"]["detail"]["imm"], 0);
    assert_eq!(lane["pc"], "0x10014");
    assert_eq!(lane["cycles"], 5);
    assert_eq!(lane["registers"]["x0"], "0x5");
    assert_eq!(lane["registers"].as_object().unwrap().len(), 68);
    assert_eq!(lane["dumps"][0]["address"], "0x20000");
    assert_eq!(lane["dumps"][0]["bytes"], "0500");
    assert_eq!(result["totals"]["lanes"], 3);
    assert_eq!(result["totals"]["stops"]["HALT"], 3);
    assert_eq!(result["totals"]["cycles"], 15);
    assert_eq!(result["totals"]["cancelled"], false);
}

#[test]
fn vectors_and_floating_point_numbers() {
    let folder = folder();
    let options = "--set d0=1.5 --set s1=-0.25 --set h2=0.5 --set v3.s=1,2,3,4 --set q31=-1 \
                   --set b4=7 --set fpcr=0xffffffff --set fpsr=1 --set x5=9";
    let text = folder.output(&format!("exec square.bin {options}"));
    let lines: Vec<_> = text.lines().collect();
    let expected = "   x0 0x0000000000000001   x5 0x0000000000000009 fpcr 0x0000000007c80000
 fpsr 0x0000000000000001
   v0 0x00000000000000003ff8000000000000  d 1.5  s 0, 1.9375
   v1 0x000000000000000000000000be800000  s -0.25
   v2 0x00000000000000000000000000003800  h 0.5
   v3 0x4080000040400000400000003f800000  d 2.000000473111868, 512.0001225471497  s 1, 2, 3, 4
   v4 0x00000000000000000000000000000007  h 4e-7
  v31 0xffffffffffffffffffffffffffffffff  d NaN, NaN  s NaN, NaN, NaN, NaN";
    assert_eq!(lines[1..9].join("\n"), expected);
    let result = folder.json(&format!("exec square.bin {options}"));
    let registers = &result["lanes"][0]["registers"];
    assert_eq!(registers["v3"], "0x4080000040400000400000003f800000");
    assert_eq!(registers["v30"], "0x00000000000000000000000000000000");
    assert_eq!((&registers["fpcr"], &registers["fpsr"]), (&"0x7c80000".into(), &"0x1".into()));
    let result = folder.json("exec square.bin --lanes 3 --set d0=lane --set s1=lane --set v2=lane");
    let registers = &result["lanes"][2]["registers"];
    let end = |name: &str, digits: &str| registers[name].as_str().unwrap().ends_with(digits);
    assert!(end("v0", "04000000000000000") && end("v1", "040000000") && end("v2", "02"));
}

#[test]
fn every_stop_has_its_detail() {
    let folder = Folder::new();
    let stop = |words: &[u32], options: &str| {
        folder.file("stop.bin", code(words));
        let result = folder.json(&format!("exec stop.bin {options}"));
        let stop = &result["lanes"][0]["stop"];
        (stop["name"].as_str().unwrap().to_string(), stop["detail"].clone())
    };
    let (name, detail) = stop(&[0xd400_00a1], ""); // svc #5
    assert_eq!((name.as_str(), &detail["imm"]), ("SYSCALL", &5.into()));
    let (name, detail) = stop(&[0xd420_0060], ""); // brk #3
    assert_eq!((name.as_str(), &detail["imm"]), ("BREAKPOINT", &3.into()));
    let (name, detail) = stop(&[0xffff_ffff], "");
    assert_eq!((name.as_str(), &detail["word"]), ("UNDEFINED", &"0xffffffff".into()));
    let (name, detail) = stop(&[0xf940_0020], "--set x1=-16"); // ldr x0, [x1]
    assert_eq!((name.as_str(), &detail["kind"]), ("FAULT", &"read".into()));
    assert_eq!(detail["address"], "0xfffffffffffffff0");
    let (name, detail) = stop(&[0x1400_0000], "--max-cycles 5K");
    assert_eq!((name.as_str(), detail.is_null()), ("MAX_CYCLES", true));
    let (name, detail) = stop(&[0xd503_201f, 0], "--break 0x10004"); // nop
    assert_eq!((name.as_str(), detail["imm"].is_null()), ("BREAKPOINT", true));
}

#[test]
fn registers_from_a_table() {
    let folder = folder();
    folder.file("rows.csv", "x0,w2\n3,1\n-4,2\n0x10,-1\n");
    let result = folder.json("exec square.bin --set-lanes rows.csv");
    let registers = |lane: usize, name| result["lanes"][lane]["registers"][name].clone();
    assert_eq!(result["totals"]["lanes"], 3);
    assert_eq!(
        [registers(0, "x0"), registers(1, "x0"), registers(2, "x0")],
        ["0xa", "0x11", "0x101"]
    );
    assert_eq!(registers(2, "x2"), "0xffffffff");

    folder.file("named.csv", "lane, x0\n4, 5\n");
    let result =
        folder.json("exec square.bin --lanes 6 --set x0=1 --set-lanes named.csv --lane 3..5");
    let shown = result["lanes"].as_array().unwrap();
    let x0: Vec<_> = shown.iter().map(|lane| &lane["registers"]["x0"]).collect();
    assert_eq!(x0, ["0x2", "0x1a"]);
}

#[test]
fn only_some_lanes_are_printed() {
    let folder = folder();
    let text = folder.output("exec square.bin --lanes 20");
    assert!(text.contains("lane 7: ") && !text.contains("lane 8: "));
    assert!(text.contains("(12 lanes not shown; "));
    let text = folder.output("exec square.bin --lanes 20 --lane 2..4,19");
    let lanes: Vec<_> = text.lines().filter(|line| line.starts_with("lane ")).collect();
    assert!(lanes[0].starts_with("lane 2:") && lanes[1].starts_with("lane 3:"));
    assert!(lanes[2].starts_with("lane 19:") && lanes.len() == 3);
}

#[test]
fn lanes_share_memory_on_request() {
    let folder = folder();
    let dumps = |options: &str| {
        let result = folder.json(&format!(
            "exec square.bin --lanes 2 --set x0=lane --dump 0x20000:1 --engine eval {options}"
        ));
        [0, 1].map(|lane: usize| result["lanes"][lane]["dumps"][0]["bytes"].clone())
    };
    assert_eq!(dumps("--private"), ["01", "02"]);
    assert_eq!(dumps("--shared"), ["02", "02"]);
    assert_eq!(dumps("--model private"), ["01", "02"]);
    assert_eq!(dumps("--model shared"), ["02", "02"]);
    assert_eq!(dumps("--model double-buffered"), ["02", "02"]);
    assert_eq!(dumps("--model read-only"), ["00", "00"]);
}

#[test]
fn stores_to_read_only_memory_are_told() {
    let folder = folder();
    let result = folder.json("exec square.bin --model read-only");
    assert_eq!(result["memory"]["model"], "read-only");
    let stop = &result["lanes"][0]["stop"];
    assert_eq!((&stop["name"], &stop["detail"]["kind"]), (&"FAULT".into(), &"write".into()));
    assert_eq!(result["totals"]["committed"], true);
}

#[test]
fn rolling_back_is_told() {
    let folder = folder();
    // The address is behind the memory's end.
    let options = "exec square.bin --model double-buffered --memory 0x20000 --set x0=3";
    let result = folder.json(options);
    assert_eq!(result["totals"]["committed"], false);
    assert_eq!(result["lanes"][0]["stop"]["name"], "FAULT");
    assert_eq!(result["lanes"][0]["registers"]["x0"], "0x3");
    assert!(folder.output(options).contains("rolled back: registers and memory are as they were"));
}

#[test]
fn code_goes_and_starts_where_it_is_told() {
    let folder = folder();
    let result =
        folder.json("exec square.bin --base 0x2000 --entry 0x2004 --set x0=7 --memory 0x30000");
    assert_eq!(result["lanes"][0]["registers"]["x0"], "0x8");
    assert_eq!(result["lanes"][0]["pc"], "0x2014");
}

#[test]
fn code_from_standard_input_need_not_be_whole_words() {
    let mut bytes = code(&SQUARE);
    bytes.push(1);
    let output = Folder::new().kvrm_with_input("exec - --set x0=3", &bytes);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert!(output.stdout.contains("x0 0x000000000000000a"));
}

#[test]
fn both_engines_print_the_same() {
    let folder = folder();
    let lanes = |engine| {
        let options = "--lanes 5 --set x0=lane --dump 0x20000:8";
        folder.json(&format!("exec square.bin {options} --engine {engine}"))["lanes"].clone()
    };
    assert_eq!(lanes("cpu"), lanes("eval"));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_run_and_prints_it() {
    use std::process::{Command, Stdio};
    let folder = folder();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kvrm"))
        .args(["exec", "spin.bin", "--max-cycles", "1000000T", "--json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Long enough to be running; were it too short, the signal would end the process without a code.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let mut text = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["totals"]["cancelled"], true);
    assert!(result["lanes"][0]["stop"].is_null());
}

#[test]
fn timing_is_printed_if_asked_for() {
    let folder = Folder::new();
    folder.file("a.bin", code(&[0xd440_0000]));
    let text = folder.output("exec a.bin --timing");
    assert!(text.lines().last().unwrap().starts_with("machine "), "{text}");
    let timing = &folder.json("exec a.bin --timing")["timing"];
    assert!(timing["machine_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(timing["kernels"], serde_json::json!([]));
    assert!(folder.json("exec a.bin")["timing"].is_null());
}

/// Timeouts end runs as Ctrl-C does, and say so.
#[test]
fn time_is_limited() {
    let folder = folder();
    let run = |arguments: &str| {
        let output = folder.kvrm(arguments);
        assert_eq!(output.code, 124, "{arguments}: {}", output.stderr);
        assert!(
            output.stderr.starts_with("error: the time of --timeout was over: "),
            "{}",
            output.stderr
        );
        output.stdout
    };
    let spin = "exec spin.bin --lanes 3 --threads 1 --max-cycles 1000T --timeout 200ms";
    let text = run(spin);
    assert!(text.starts_with("lane 0: CANCELLED at pc 0x10000 after "), "{text}");
    assert!(text.contains("3 CANCELLED; "), "{text}");
    let result: serde_json::Value = serde_json::from_str(&run(&format!("{spin} --json"))).unwrap();
    assert_eq!(result["totals"]["timed_out"], true);
    assert_eq!(result["totals"]["cancelled"], true);
    for lane in result["lanes"].as_array().unwrap() {
        assert_eq!(lane["stop"], serde_json::Value::Null);
        assert!(lane["cycles"].as_u64().unwrap() > 0, "every lane has a turn: {lane}");
    }
    run("verify spin.bin --engines cpu,eval --max-cycles 1000T --timeout 200ms");
    run("bench --only loop --seconds 60 --timeout 200ms");
    run("bench --only reset --seconds 60 --timeout 200ms");
    run("demo --width 4096 --height 4096 --max-iterations 65535 --timeout 200ms");
    assert!(!folder.path().join("mandelbrot.png").exists());
    // Those that end in time do not notice.
    let result = folder.json("exec square.bin --timeout 1h");
    assert_eq!(result["totals"]["timed_out"], false);
}

#[test]
fn an_all_zero_word_is_told_apart() {
    let folder = Folder::new();
    folder.file("nop.bin", code(&[0xd503_201f]));
    folder.file("halt.bin", code(&[0xd440_0000]));
    let first =
        |file: &str| folder.output(&format!("exec {file}")).lines().next().unwrap().to_string();
    assert_eq!(first("nop.bin"), "lane 0: HALT (all-zero word) at pc 0x10004 after 1 instruction");
    assert_eq!(first("halt.bin"), "lane 0: HALT #0x0 at pc 0x10000 after 0 instructions");
    let result = folder.json("exec nop.bin");
    let stop = &result["lanes"][0]["stop"];
    assert_eq!(stop, &serde_json::json!({ "name": "HALT", "detail": { "word": "0x0" } }));
    assert_eq!(result["totals"]["stops"], serde_json::json!({ "HALT": 1 }));
}

#[test]
fn sizes_are_binary_or_decimal() {
    let size = |text: &str| {
        let result = folder().json(&format!("exec square.bin --memory {text}"));
        result["memory"]["size"].as_u64().unwrap()
    };
    assert_eq!((size("4M"), size("4MiB")), (4 << 20, 4 << 20));
    assert_eq!(size("4MB"), 4_001_792);
}

/// Where the system refuses threads, those that there are do the work.
#[cfg(target_os = "linux")]
#[test]
fn fewer_threads_than_were_asked_for() {
    let folder = Folder::new();
    folder.file("halt.bin", code(&[0xd440_0000]));
    // A thousand stacks of 2 MiB are more than a GB, in KiB.
    let script = format!(
        "ulimit -v 1000000; exec '{}' exec halt.bin --engine cpu --lanes 1024 --threads 1024 --memory 128K --lane 0",
        env!("CARGO_BIN_EXE_kvrm")
    );
    let mut shell = std::process::Command::new("sh");
    // The C library would take 64 MiB of address space for each of its first threads, and fail where the last had none.
    shell.env("MALLOC_ARENA_MAX", "1");
    let output = shell.args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("1,024 lanes on cpu: 1024 HALT; "), "{text}");
}
