//! `kvrm verify`, from outside.

use crate::folder::{Folder, code};

/// x0 = x0 * x0, stored at 0x20000; a system call
const SQUARE: [u32; 5] = [
    0x9b00_7c00, // mul x0, x0, x0
    0xd2a0_0041, // mov x1, #0x20000
    0xf900_0020, // str x0, [x1]
    0xd400_0001, // svc #0
    0x1400_0000, // b .
];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("square.bin", code(&SQUARE));
    folder
}

#[test]
fn engines_agree() {
    let text = folder().output("verify square.bin --engines cpu,eval --lanes 20 --set x0=lane");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "cpu, eval agree; 20 lanes: 20 SYSCALL; 80 instructions on each");
    assert_eq!(
        lines[1],
        "compared 2 times: stops, counts, registers and all of memory (20 pages read in the end)"
    );
}

#[test]
fn json_tells_the_same() {
    let result = folder().json("verify square.bin --engines eval,cpu --every 1");
    assert_eq!(result["engines"], serde_json::json!(["eval", "cpu"]));
    assert_eq!((&result["agree"], &result["lanes"]), (&true.into(), &1.into()));
    assert!(result["difference"].is_null() && result["seed"].is_null());
    let agreement = &result["agreement"];
    assert_eq!((&agreement["instructions"], &agreement["pages"]), (&4.into(), &1.into()));
    assert_eq!(agreement["comparisons"], 5);
    assert_eq!(agreement["stops"]["SYSCALL"], 1);
}

#[test]
fn engines_start_with_the_same_vectors() {
    let options = "--engines cpu,eval --lanes 3 --set d0=0.1 --set v1.b=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16";
    let result = folder().json(&format!("verify square.bin {options} --set s2=lane --set fpsr=1"));
    assert_eq!(result["agree"], true);
}

#[test]
fn random_programs() {
    let run = "verify --random 12 --seed 3 --lanes 5 --rows 60 --engines eval,cpu";
    let result = folder().json(run);
    assert_eq!((&result["agree"], &result["seed"]), (&true.into(), &3.into()));
    assert_eq!((&result["lanes"], &result["agreement"]["programs"]), (&5.into(), &12.into()));
    let stops = result["agreement"]["stops"].as_object().unwrap().values();
    assert_eq!(stops.map(|count| count.as_u64().unwrap()).sum::<u64>(), 12);
    // Three rounds, of which each is compared once before its ten pieces.
    assert_eq!(result["agreement"]["comparisons"], 33);
}

#[test]
fn what_cannot_be_compared() {
    let folder = folder();
    for (arguments, message) in [
        ("verify square.bin --engines cpu", "at least two engines"),
        ("verify square.bin --engines cpu,auto", "auto"),
        ("verify square.bin --engines cpu,eval --shared --lanes 2", "race"),
        ("verify square.bin --engines cpu,eval --entry 0x400000", "do not fit"),
        ("verify square.bin --random 5", "cannot be used with"),
        ("verify --random 5 --set x0=1", "cannot be used with"),
        ("verify square.bin --seed 5", "cannot be used with"),
        ("verify square.bin --engines cpu,eval,cpu", "names cpu twice"),
        ("verify square.bin --every 0", "at least 1"),
        ("verify --random 0", "at least 1"),
        ("verify --random 5 --rows 9999", "from 1 to"),
        ("verify", "<FILE|--random <N>>"),
    ] {
        let output = folder.kvrm(arguments);
        assert_eq!(output.code, 2, "kvrm {arguments}: {}", output.stderr);
        assert!(output.stderr.contains(message), "kvrm {arguments}: {}", output.stderr);
        assert_eq!(output.stdout, "");
    }
}
