//! A program that has a little of everything when it reads its standard input: files, one of them without a name, pipes, sockets,
//! memory that it shares, and a child that waits.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Where it is loaded; its code follows the headers.
const BASE: u64 = 0x40_0000;
const HEADERS: u64 = 64 + 56;
/// Zeros behind it, as a buffer.
const ZEROS: u64 = 8192;

const CODE: &str = "
        mov     x0, #-100               // a directory, and a file in it
        adr     x1, folder
        mov     x2, #0x1ed
        mov     x8, #34
        svc     #0
        adr     x1, file
        bl      create
        mov     x19, x0
        adr     x1, before
        mov     x2, #7
        bl      write
        adr     x1, nameless            // a file that is open, and gone
        bl      create
        mov     x20, x0
        adr     x1, before
        mov     x2, #7
        bl      write
        mov     x0, #-100
        adr     x1, nameless
        mov     x2, #0
        mov     x8, #35
        svc     #0
        adr     x0, file                // a link
        mov     x1, #-100
        adr     x2, link
        mov     x8, #36
        svc     #0
        mov     x0, #7                  // a counter, and a set of files that has it
        mov     x1, #0
        mov     x8, #19
        svc     #0
        mov     x21, x0
        mov     x0, #0
        mov     x8, #20
        svc     #0
        mov     x1, #1
        mov     x2, x21
        adr     x3, event
        mov     x8, #21
        svc     #0
        mov     x0, #1                  // sockets, with a message between them
        mov     x1, #2
        mov     x2, #0
        adr     x3, sockets
        mov     x8, #199
        svc     #0
        ldr     w0, sockets
        adr     x1, before
        mov     x2, #7
        bl      write
        mov     x0, #0                  // memory that is shared
        mov     x1, #8192
        mov     x2, #3
        mov     x3, #0x21
        mov     x4, #-1
        mov     x5, #0
        mov     x8, #222
        svc     #0
        mov     x22, x0
        adr     x0, ends                // a pipe
        mov     x1, #0
        mov     x8, #59
        svc     #0
        mov     x0, x20                 // a lock
        mov     x1, #2
        mov     x8, #32
        svc     #0
        mov     x0, #0                  // a timer
        adr     x1, interval
        mov     x2, #0
        mov     x8, #103
        svc     #0
        mov     x0, #1
        adr     x1, begin
        mov     x2, #6
        bl      write
        mov     x0, #17                 // a child
        mov     x1, #0
        mov     x2, #0
        mov     x3, #0
        mov     x4, #0
        mov     x8, #220
        svc     #0
        cbz     x0, child
        adr     x0, moment              // it waits for the pipe
        mov     x1, #0
        mov     x8, #101
        svc     #0
        bl      random
input:  mov     x0, #0
        adr     x1, buffer
        mov     x2, #100
        mov     x8, #63
        svc     #0
        mov     x2, x0                  // what was read goes through the child
        ldr     w0, ends + 4
        adr     x1, buffer
        bl      write
        mov     x0, #-1
        adr     x1, status
        mov     x2, #0
        mov     x3, #0
        mov     x8, #260
        svc     #0
        mov     x0, x19
        mov     x1, x22
        mov     x2, #8
        bl      write
        bl      random
        mov     x0, #-100
        adr     x1, link
        adr     x2, buffer
        mov     x3, #100
        mov     x8, #78
        svc     #0
        mov     x23, x0
        ldr     w0, sockets + 4
        adr     x1, buffer
        mov     x2, #100
        mov     x8, #63
        svc     #0
        add     x23, x23, x0
        ldr     w0, status
        add     x0, x23, x0, lsr #8
exit:   mov     x8, #94
        svc     #0

child:  ldr     w0, ends
        adr     x1, buffer
        mov     x2, #100
        mov     x8, #63
        svc     #0
        mov     x2, x0
        str     x0, [x22]
        mov     x0, #1
        adr     x1, buffer
        bl      write
        mov     x0, #3
        b       exit

create: mov     x0, #-100
        mov     x2, #0x42
        mov     x3, #0x1a4
        mov     x8, #56
        svc     #0
        ret
random: adr     x0, buffer              // random numbers and the time, in the file
        mov     x1, #16
        mov     x2, #0
        mov     x8, #278
        svc     #0
        mov     x0, #1
        adr     x1, buffer + 16
        mov     x8, #113
        svc     #0
        mov     x0, x19
        adr     x1, buffer
        mov     x2, #32
write:  mov     x8, #64
        svc     #0
        ret
folder: .asciz \"/tmp/d\"
file:   .asciz \"/tmp/d/x\"
nameless: .asciz \"/tmp/gone\"
link:   .asciz \"/tmp/link\"
before: .ascii \"before\\n\"
begin:  .ascii \"begin\\n\"
        .balign 8
moment: .dword 0, 1000000
interval: .dword 0, 0, 1000, 0
event:  .dword 1, 5
ends:   .dword 0
sockets: .dword 0
status: .dword 0
buffer: .word   0
";

/// Where the instruction is from which on it reads its input.
pub(crate) fn before_input() -> u64 {
    let code = kvrm::assemble(CODE, BASE + HEADERS).unwrap();
    let words: Vec<u32> =
        code.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    // The only `mov x2, #100` that comes after a `mov x0, #0` by two instructions.
    let [zero, hundred] = [0xd280_0000, 0xd280_0c82];
    let at = words.windows(3).position(|three| three[0] == zero && three[2] == hundred).unwrap();
    BASE + HEADERS + 4 * at as u64
}

/// Writes the program to a file.
pub(crate) fn write(path: &Path) {
    let code = kvrm::assemble(CODE, BASE + HEADERS).unwrap();
    let size = HEADERS + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    for half in [2u16, 183] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1u32.to_le_bytes());
    for long in [BASE + HEADERS, 64, 0] {
        file.extend(long.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for word in [1u32, 7] {
        file.extend(word.to_le_bytes());
    }
    for long in [0, BASE, BASE, size, size + ZEROS, 4096] {
        file.extend(long.to_le_bytes());
    }
    file.extend(code);
    std::fs::write(path, file).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
