//! Lanes on a GPU that serve most of their system calls themselves: nobody can tell the difference.

use std::path::Path;

use kvrm::EngineKind;
use kvrm::linux::{LaneOutcome, Limits, Many, Outcome, Process, Row};

use crate::program::write_code;
use crate::sorted;

/// Reads its input in pieces, and makes all kinds of calls for each. What they return, and whether registers, flags and the
/// counter are as they should be, is printed.
const CODE: &str = "
        .macro  call number
        mov     x8, #\\number
        mov     x16, #16
        mov     x17, #17
        mrs     x20, cntvct_el0
        cmp     x20, x20
        svc     #0
        mrs     x21, cntvct_el0
        b.ne    wrong
        sub     x16, x16, #16
        cbnz    x16, wrong
        sub     x17, x17, #17
        cbnz    x17, wrong
        sub     x21, x21, x20
        sub     x21, x21, #3
        cbnz    x21, wrong
        bl      keep
        .endm

        adr     x28, buffer
        mov     x27, #0
        mov     x0, #1                  // dup3(1, 5, 0)
        mov     x1, #5
        mov     x2, #0
        call    24

next:   add     x27, x27, #1
        mov     x0, #0                  // up to 280 bytes
        mov     x1, x28
        and     x2, x27, #7
        mov     x3, #40
        mul     x2, x2, x3
        call    63
        mov     x26, x0
        and     x3, x27, #7
        cbz     x3, 1f
        cbz     x0, ended
1:      mov     x0, #1
        mov     x1, x28
        mov     x2, x26
        call    64
        mov     x0, #2
        mov     x1, x28
        and     x2, x26, #3
        call    64
        mov     x0, #5
        mov     x1, x28
        mov     x2, #1
        call    64
        and     x0, x27, #15            // a clock, and the time if there is one
        add     x1, x28, #1024
        call    113
        mov     x0, #1
        add     x1, x28, #1024
        mov     x2, #16
        call    64
        mov     x0, #0                  // where nobody can write
        mov     x1, #16
        mov     x2, #4
        call    63
        mov     x0, #1
        mov     x1, #16
        mov     x2, #5
        call    64
        mov     x0, #1                  // the desk, and other places behind the program's memory
        mov     x1, #(1 << 39)
        add     x1, x1, #(1 << 20)
        mov     x2, #8
        call    64
        mov     x0, #0
        mov     x1, #(1 << 39)
        add     x1, x1, #(1 << 20)
        mov     x2, #8
        call    63
        mov     x0, #0
        mov     x1, #(1 << 39)
        sub     x1, x1, #2
        mov     x2, #8
        call    63
        mov     x0, #1                  // a tag
        add     x1, x28, #1024
        orr     x1, x1, #(0xff << 56)
        mov     x2, #3
        call    64
        mov     x0, #1                  // three buffers, one of them empty, and one that cannot be read
        adr     x1, vector
        mov     x2, #3
        call    66
        mov     x0, #2
        adr     x1, vector
        mov     x2, #4
        call    66
        mov     x0, #9                  // no such file
        mov     x1, x28
        mov     x2, #3
        call    64
        call    172
        call    173
        call    174
        call    178
        b       next

ended:  mov     x0, #1                  // more than the desk takes
        mov     x1, x28
        mov     x2, #6000
        call    64
        mov     x0, #0
        mov     x8, #94
        svc     #0

// Appends X0 to the results.
keep:   ldr     x22, [x28, #2040]
        ror     x22, x22, #7
        add     x22, x22, x0
        str     x22, [x28, #2040]
        ret

wrong:  mov     x0, #1
        mov     x8, #94
        svc     #0

        .balign 8
vector: .quad   next, 9, next, 0, ended, 30, 0x10, 5
        .balign 16
buffer: .word   0
";

/// Lanes have inputs of several lengths, some of which are longer than what fits a desk.
fn rows() -> Vec<Row> {
    let text = |lane: usize| (0..lane * lane * 13).map(move |byte| (byte * 7 + lane) as u8);
    (0..20).map(|lane| Row::new().stdin(text(lane).collect::<Vec<u8>>())).collect()
}

fn told(ran: LaneOutcome) -> String {
    let Outcome { ending, status, stdout, stderr, instructions, system_calls, .. } =
        ran.result.unwrap();
    format!("{ending:?} {status:?} {instructions} {system_calls:?}\n{stdout:?}\n{stderr:?}")
}

fn check(engine: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    write_code(&path, CODE);
    check_with(engine, &path, Limits::default());
    for instructions in [900, 901, 1003] {
        check_with(engine, &path, Limits { instructions, ..Limits::default() });
    }
    for output in [10, 1000] {
        check_with(engine, &path, Limits { output, ..Limits::default() });
    }
}

/// Rows have the same results as on the CPU.
fn check_with(engine: EngineKind, path: &Path, limits: Limits) {
    let [expected, found] = [EngineKind::Cpu, engine].map(|engine| {
        let many = Many::new(Process::new(path).engine(engine).limits(limits.clone())).lanes(16);
        let mut runs = many.run(rows()).unwrap();
        let all = sorted(runs.by_ref()).into_iter().map(told).collect::<Vec<_>>();
        let is_long = limits.instructions == u64::MAX && limits.output == u64::MAX;
        if let Some(times) = runs.watch().placement().gpu.filter(|_| is_long) {
            assert!(times.calls_in_lanes > 500, "{times}");
        }
        all
    });
    for (lane, (expected, found)) in expected.iter().zip(&found).enumerate() {
        assert!(!expected.contains("Exited(1)"), "lane {lane}: {expected}");
        assert_eq!(expected, found, "lane {lane} with {limits:?}");
    }
    assert_eq!(expected.len(), found.len());
}

#[test]
fn calls_that_lanes_serve_are_those_that_the_host_serves() {
    check(EngineKind::Wgpu);
}

#[test]
#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]
fn calls_that_lanes_serve_are_those_that_the_host_serves_on_cuda() {
    check(EngineKind::Cuda);
}
