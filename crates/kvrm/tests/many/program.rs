//! A program that answers, or attacks, as the first letter of its first argument says.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Where it is loaded; its code follows the headers.
const BASE: u64 = 0x40_0000;
const HEADERS: u64 = 64 + 56;
/// Zeros behind it, as a buffer.
const ZEROS: u64 = 8192;

const CODE: &str = "
        ldr     x1, [sp, #16]
        cbz     x1, unknown
        ldrb    w19, [x1]
        cmp     w19, #97                // a
        b.eq    answer
        cmp     w19, #99                // c
        b.eq    crash
        cmp     w19, #100               // d
        b.eq    disk
        cmp     w19, #101               // e
        b.eq    echo
        cmp     w19, #102               // f
        b.eq    forks
        cmp     w19, #108               // l
        b.eq    forever
        cmp     w19, #109               // m
        b.eq    memory
        cmp     w19, #111               // o
        b.eq    output
        cmp     w19, #115               // s
        b.eq    calls
        cmp     w19, #120               // x
        b.eq    changes
unknown:
        mov     x0, #99
exit:   mov     x8, #93
        svc     #0

answer: mov     x20, #0                 // copies its input; the exit code is the sum of its bytes
read:   mov     x0, #0
        adr     x1, buffer
        mov     x2, #1024
        mov     x8, #63
        svc     #0
        cbz     x0, answered
        mov     x2, x0
        mov     x3, #0
sum:    ldrb    w4, [x1, x3]
        add     x20, x20, x4
        add     x3, x3, #1
        cmp     x3, x2
        b.ne    sum
        mov     x0, #1
        mov     x8, #64
        svc     #0
        b       read
answered:
        and     x0, x20, #0x7f
        b       exit

crash:  mov     x0, #8
        ldr     x0, [x0]

echo:   add     x19, sp, #24            // prints further arguments and the environment, in lines
        mov     x20, #2                 // lists
next:   ldr     x1, [x19], #8
        cbz     x1, list
        mov     x2, #0
length: ldrb    w3, [x1, x2]
        add     x2, x2, #1
        cbnz    w3, length
        mov     w3, #10
        add     x4, x1, x2
        strb    w3, [x4, #-1]
        mov     x0, #1
        mov     x8, #64
        svc     #0
        b       next
list:   subs    x20, x20, #1
        b.ne    next
        mov     x0, #0
        b       exit

disk:   mov     x0, #-100               // a file that grows until there is no room
        adr     x1, path
        mov     x2, #0x41
        mov     x3, #0x1a4
        mov     x8, #56
        svc     #0
        mov     x19, x0
grow:   mov     x0, x19
        adr     x1, buffer
        mov     x2, #4096
        mov     x8, #64
        svc     #0
        cmn     x0, #4095
        b.lo    grow
refused:
        neg     x0, x0                  // the number of the error
        b       exit

forks:  mov     x0, #17
        mov     x1, #0
        mov     x2, #0
        mov     x3, #0
        mov     x4, #0
        mov     x8, #220
        svc     #0
        b       forks

forever:
        b       forever

memory: mov     x0, #0                  // a gibibyte after the other
        mov     x1, #0x40000000
        mov     x2, #3
        mov     x3, #0x22
        mov     x4, #-1
        mov     x5, #0
        mov     x8, #222
        svc     #0
        cmn     x0, #4095
        b.hs    refused
        str     x0, [x0]
        b       memory

output: mov     x0, #1
        adr     x1, buffer
        mov     x2, #4096
        mov     x8, #64
        svc     #0
        b       output

calls:  mov     x19, #0x4240            // a million
        movk    x19, #0xf, lsl #16
call:   mov     x8, #172
        svc     #0
        subs    x19, x19, #1
        b.ne    call
        mov     x0, #3
        b       exit

changes:                                // code that writes itself: 7, and then 9
        adr     x1, buffer
        ldr     w2, seven
        ldr     w3, return
        stp     w2, w3, [x1]
        bl      made
        mov     x20, x0
        ldr     w2, nine
        str     w2, [x1]
        bl      made
        add     x0, x0, x20
        b       exit
made:   dc      cvau, x1
        dsb     ish
        ic      ivau, x1
        dsb     ish
        isb
        br      x1
seven:  mov     x0, #7
nine:   mov     x0, #9
return: ret
path:   .asciz \"/tmp/x\"
        .balign 8
buffer: .word   0
";

/// Writes the program to a file.
pub(crate) fn write(path: &Path) {
    write_code(path, CODE);
}

/// Writes another program to a file.
pub(crate) fn write_code(path: &Path, code: &str) {
    std::fs::write(path, elf(code)).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A static program with one segment, which can be read, written and executed.
fn elf(code: &str) -> Vec<u8> {
    let code = kvrm::assemble(code, BASE + HEADERS).unwrap();
    let size = HEADERS + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let half = |file: &mut Vec<u8>, values: &[u16]| {
        values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    };
    let words = |file: &mut Vec<u8>, values: &[u32]| {
        values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    };
    let longs = |file: &mut Vec<u8>, values: &[u64]| {
        values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    };
    half(&mut file, &[2, 183]);
    words(&mut file, &[1]);
    longs(&mut file, &[BASE + HEADERS, 64, 0]);
    words(&mut file, &[0]);
    half(&mut file, &[64, 56, 1, 64, 0, 0]);
    words(&mut file, &[1, 7]);
    longs(&mut file, &[0, BASE, BASE, size, size + ZEROS, 4096]);
    file.extend(code);
    file
}
