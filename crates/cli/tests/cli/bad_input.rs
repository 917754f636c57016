//! Mistakes are answered with a sentence that says what is wrong, and an exit code.

use crate::folder::{Folder, code};

const USAGE: i32 = 2;
const HOST: i32 = 1;

/// Checks the exit code, that nothing was printed, and that the first line of the message has this text.
#[track_caller]
fn fails(folder: &Folder, arguments: &str, code: i32, message: &str) {
    let output = folder.kvrm(arguments);
    let first = output.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with("error: ") && first.contains(message), "{}", output.stderr);
    assert_eq!((output.code, output.stdout.as_str()), (code, ""), "{first}");
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("halt.bin", code(&[0xd440_0000]));
    folder.file("empty.bin", "");
    folder
}

#[test]
fn files() {
    let folder = folder();
    fails(&folder, "exec none.bin", HOST, "cannot read none.bin: ");
    fails(&folder, "exec empty.bin", HOST, "empty.bin is empty");
    folder.file("elf", b"\x7fELF\x02\x01\x01");
    folder.file("text.s", "nop // naïve\n");
    folder.file("short.bin", [0, 0, 0x40]);
    fails(&folder, "exec elf", HOST, "elf is an ELF file, which kvrm does not load");
    fails(&folder, "verify text.s", HOST, "text.s is text, and not machine code");
    fails(&folder, "disasm short.bin", HOST, "short.bin is shorter than an instruction");
    fails(&folder, "exec .", HOST, "cannot read .: ");
    fails(&folder, "disasm none.bin", HOST, "cannot read none.bin: ");
    fails(&folder, "disasm empty.bin", HOST, "empty.bin is empty");
    let demo = "demo --width 4 --height 2 --max-iterations 4";
    fails(&folder, &format!("{demo} --out none/x.png"), HOST, "cannot write none/x.png: ");
}

#[test]
fn assembly() {
    let folder = folder();
    folder.file("a.s", "nop\n\tadd x0, x1, #5000\n");
    folder.file("b.s", "nop\n");
    folder.file("c.s", b"nop // \xff\n");
    let message = "a.s: line 2, column 15: 5000 does not fit: 0 to 4095, or a multiple of 4096 up to 16773120";
    fails(&folder, "asm a.s", HOST, message);
    let shown = folder.kvrm("asm a.s").stderr;
    assert!(shown.ends_with("\n    \tadd x0, x1, #5000\n    \t             ^\n"), "{shown}");
    assert!(!folder.path().join("a.bin").exists());
    folder.file("many.s", "nop\n\taddd x0, x1\n cmp x0, #-5000\nb there\n");
    let shown = folder.kvrm("asm many.s").stderr;
    let starts = "\
error: many.s: line 2, column 2: there is no instruction addd: did you mean add?
    \taddd x0, x1
    \t^
many.s: line 3, column 11: -5000 does not fit";
    assert!(shown.starts_with(starts), "{shown}");
    let ends = "line 4, column 3: there is not defined\n    b there\n      ^\n3 mistakes\n";
    assert!(shown.ends_with(ends), "{shown}");
    fails(&folder, "asm none.s", HOST, "cannot read none.s: ");
    fails(&folder, "asm c.s", HOST, "c.s is not text (UTF-8)");
    fails(&folder, "asm b.s -o none/x.bin", HOST, "cannot write none/x.bin: ");
    fails(&folder, "asm halt.bin", USAGE, "halt.bin would be overwritten: name another with -o");
    fails(&folder, "asm -", USAGE, "name a file for the code with -o");
    fails(&folder, "asm b.s -o - --list", USAGE, "cannot both go to standard output");
    fails(&folder, "asm b.s --json --list", USAGE, "cannot be used with");
    fails(&folder, "asm b.s --base x", USAGE, "not an address");
    fails(&folder, "asm b.s --base 3", USAGE, "instructions are at multiples of 4");
}

#[test]
fn addresses() {
    let folder = folder();
    let fails = |options: &str, message| {
        fails(&folder, &format!("exec halt.bin {options}"), USAGE, message)
    };
    fails("--base 0x400000", "4 bytes at 0x400000 do not fit: memory ends at 0x400000");
    fails("--memory 4K", "4 bytes at 0x10000 do not fit: memory ends at 0x1000");
    fails("--base 0xfffffffffffffffe", "do not fit");
    fails("--entry 0x10002", "0x10002 is not an instruction address");
    fails("--base 0x10001", "0x10001 is not an instruction address");
    fails("--entry 0x500000", "4 bytes at 0x500000 do not fit");
    fails("--break 0x10001", "0x10001 is not an instruction address");
    fails("--break 0x500000", "4 bytes at 0x500000 do not fit");
    fails("--dump 0x3fffff:2", "2 bytes at 0x3fffff do not fit");
    fails("--dump 0xffffffffffffffff:4", "do not fit");
    fails("--dump 0x1000", "not a range of memory");
    fails("--dump 0x1000:0", "a length of zero");
    fails("--base 0xzz", "not an address");
    fails("--base -1", "not an address");
}

#[test]
fn sizes_and_counts() {
    let folder = folder();
    let fails = |options: &str, message| {
        fails(&folder, &format!("exec halt.bin {options}"), USAGE, message)
    };
    fails("--memory 1e30", "not a size");
    fails("--memory=-4M", "not a size");
    fails("--memory 0", "a memory of 0 bytes cannot be built");
    fails("--memory 5000", "a memory of 5000 bytes cannot be built");
    fails("--memory 2T", "cannot be built");
    fails("--memory 99999999T", "not a size");
    fails("--code-memory much", "not a size");
    fails("--code-memory 3K", "3072 bytes for translated code are too few: give at least 4K");
    fails("--lanes 0", "at least one lane");
    fails("--lanes 1e30", "not a count");
    fails("--lanes=-1", "it cannot be negative");
    fails("--lanes 99999999999999999999", "too large");
    fails("--lanes 17000000", "17000000 lanes are too many");
    fails("--max-cycles ten", "not a count");
    fails("--threads 99999", "99999");
    fails("--lanes 4 --lane 2..9", "lane 8 does not exist: the machine has 4");
    fails("--lane 3..1", "not a choice of lanes");
}

#[test]
fn names() {
    let folder = folder();
    let fails = |arguments: &str, message| fails(&folder, arguments, USAGE, message);
    fails("exec halt.bin --engine warp", "invalid value 'warp' for '--engine <NAME>'");
    fails("exec halt.bin --set x31=1", "there is no register \"x31\"");
    fails("exec halt.bin --set x0", "not an assignment");
    fails("exec halt.bin --set x0=1e3", "\"1e3\" is not a 64-bit number");
    fails("exec halt.bin --set w0=0x100000000", "does not fit in the 32 bits of w0");
    fails("exec halt.bin --set d0=one", "\"one\" is not a number: write 1.5");
    fails("exec halt.bin --set h0=1e5", "1e5 is too large for h0: the most is 65504");
    fails("exec halt.bin --set s0=0x100000000", "does not fit in the 32 bits of s0");
    fails("exec halt.bin --set v0.s=1,2", "v0.s has 4 elements, not 2");
    fails("exec halt.bin --set b0=lane", "b0 cannot be the lane's number");
    fails("exec halt.bin --set pc=2", "0x2 is not an instruction address");
    fails("exec halt.bin --device first", "not the number of a GPU");
    fails("exec halt.bin --private --shared", "cannot be used with");
    fails("exec halt.bin --model shared --private", "cannot be used with");
    fails("exec halt.bin --model own", "invalid value 'own'");
    fails("disasm --word 123456789", "not an instruction word");
    fails("bench --only chess", "invalid value 'chess'");
    fails("bench --seconds=-1", "not a time");
    fails("bench --only sha256 --shared", "sha256 keeps its data where every lane would write it");
    fails("bench --only loop_store --model read-only", "loop_store writes memory");
    fails("demo --out x.jpg", "the picture is a PNG");
    fails("demo --width 0", "0");
    fails("demo --width 5000", "5000");
    fails("completions ksh", "invalid value 'ksh'");
    fails("frobnicate", "unrecognized subcommand 'frobnicate'");
}

#[test]
fn devices() {
    let folder = folder();
    for engine in ["cpu", "eval"] {
        let options = format!("--engine {engine} --device 0");
        let message =
            format!("the {engine} engine has no devices to choose from: only cuda and wgpu have");
        fails(&folder, &format!("exec halt.bin {options}"), USAGE, &message);
        fails(&folder, &format!("bench --only loop {options}"), USAGE, &message);
        fails(&folder, &format!("demo {options}"), USAGE, &message);
    }
    fails(&folder, "exec halt.bin --device one", USAGE, "invalid value 'one' for '--device");
    fails(&folder, "exec halt.bin --device 0,1000", HOST, "no CUDA device");
    let shared = "exec halt.bin --lanes 100 --shared --engine cuda --device 0,0";
    fails(&folder, shared, HOST, "lanes that share memory cannot be split over devices");
    fails(&folder, "devices --memory much", USAGE, "not a size");
}

#[test]
fn tables() {
    let folder = folder();
    let fails = |table: &str, options: &str, message: &str| {
        folder.file("t.csv", table);
        fails(&folder, &format!("exec halt.bin --set-lanes t.csv {options}"), HOST, message);
    };
    fails("", "", "t.csv: the table is empty");
    fails("x0\n", "", "t.csv: the table has a header but no lanes");
    fails("x0,y1\n1,2\n", "", "t.csv: line 1, column 2: there is no register \"y1\"");
    fails("x0,x1\n1,2\n3\n", "", "t.csv: line 3: 1 fields where the header has 2");
    fails("x0,x1\n1,2\n\n3,4x\n", "", "t.csv: line 4, column 2: \"4x\" is not a 64-bit number");
    fails("x0\n1\n2\n", "--lanes 1", "t.csv, line 3: lane 1 does not exist: the machine has 1");
    fails("x0,pc\n1,3\n", "", "t.csv, line 2: 0x3 is not an instruction address");
    let missing = "exec halt.bin --set-lanes none.csv";
    self::fails(&folder, missing, HOST, "cannot read none.csv: ");
}

/// Nothing is read for ever.
#[cfg(unix)]
#[test]
fn files_without_an_end() {
    let folder = folder();
    for command in
        ["exec /dev/zero", "verify /dev/zero", "disasm /dev/zero", "asm /dev/zero --list"]
    {
        fails(&folder, command, HOST, "/dev/zero is a device, and not a file");
    }
    fails(&folder, "exec halt.bin --set-lanes /dev/zero", HOST, "/dev/zero is a device");
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("link.bin")).unwrap();
    fails(&folder, "exec link.bin", HOST, "link.bin is a device");
    let endless = folder.kvrm_with_input("exec - --memory 128K", &[0xd5; 1 << 20]);
    assert_eq!(endless.code, HOST, "{}", endless.stderr);
    assert!(
        endless.stderr.contains("does not fit between 0x10000 and the end of memory at 0x20000")
    );
}

/// A disk that is full, and that nothing is half written, is also tested beside the writing of files.
#[cfg(target_os = "linux")]
#[test]
fn full_disks() {
    let folder = folder();
    let picture = "demo --width 8 --height 8 --max-iterations 9 --no-draw --out /dev/full";
    fails(&folder, picture, HOST, "cannot write /dev/full: No space left");
    folder.file("one.s", "hlt #0");
    fails(&folder, "asm one.s -o /dev/full", HOST, "cannot write /dev/full: No space left");
    fails(&folder, "asm one.s -o none/one.bin", HOST, "cannot write none/one.bin: ");
}

#[test]
fn negative_numbers() {
    let folder = folder();
    for option in ["--max-cycles", "--lanes"] {
        fails(&folder, &format!("exec halt.bin {option} -1"), USAGE, "it cannot be negative");
    }
    fails(&folder, "exec halt.bin --memory -1", USAGE, "\"-1\" is not a size");
    fails(&folder, "bench --seconds -1", USAGE, "not a time");
    fails(&folder, "verify --random -1", USAGE, "it cannot be negative");
}
