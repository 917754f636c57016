"""Linux programs of a few instructions, which need no compiler."""

from __future__ import annotations

import struct

import kvrm

#: Where a program is loaded; its code follows the headers.
BASE = 0x400000
HEADERS = 64 + 56

#: Ends with the exit code in x0.
EXIT = "exit: mov x8, #93\n svc #0\n"
#: Writes x2 bytes at x1.
WRITE = "mov x0, #1\n mov x8, #64\n svc #0\n"


def elf(text: str, function: str | None = None) -> bytes:
    """A static program; if a name is given, all of its code is in a function of that name."""
    code = kvrm.assemble(text, BASE + HEADERS)
    names = b"\0" + (function or "").encode() + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 2, 0, 0xFFF1, BASE + HEADERS, len(code))
    end = HEADERS + len(code)
    sections = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, end, len(symbols), 2, 1, 8, 24),
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, end + len(symbols), len(names), 0, 0, 1, 0),
    ]
    table = end + len(symbols) + len(names)
    count = len(sections) if function else 0
    header = b"\x7fELF\2\1\1" + bytes(9)
    counts = (64, 56, 1, 64, count, 2 if count else 0)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 183, 1, BASE + HEADERS, 64, table, 0, *counts)
    # Readable, writable and executable, with a page of zeros behind it.
    segment = struct.pack("<IIQQQQQQ", 1, 7, 0, BASE, BASE, end, end + 8192, 4096)
    return header + segment + code + symbols + names + b"".join(sections)


HELLO = elf(f"adr x1, text\n mov x2, #6\n {WRITE} mov x0, #7\n {EXIT} text: .ascii \"hello\\n\"")

FOREVER = elf("loop: add x0, x0, #1\n b loop")

#: Reads address 8.
BROKEN = elf("mov x1, #8\n ldr x0, [x1]", function="broken")

#: Copies standard input to standard output, and standard error.
COPY = elf(f"""
loop:   mov x0, #0
        adr x1, buffer
        mov x2, #4096
        mov x8, #63                 // read
        svc #0
        cbz x0, exit
        mov x2, x0
        {WRITE}
        mov x0, #2
        mov x8, #64
        svc #0
        b loop
        {EXIT}
buffer: .word 0
""")

#: Prints its arguments and its environment, in lines.
ARGUMENTS = elf(f"""
        add x19, sp, #8
        mov x20, #2                 // lists
next:   ldr x1, [x19], #8
        cbz x1, end
        mov x2, #0
length: ldrb w3, [x1, x2]
        add x2, x2, #1
        cbnz w3, length
        sub x2, x2, #1
        mov w3, #10
        strb w3, [x1, x2]
        add x2, x2, #1
        {WRITE}
        b next
end:    subs x20, x20, #1
        b.ne next
        mov x0, #0
        {EXIT}
""")

#: Copies the file in, which is in the folder that it begins in, to /out/new; its exit code is the number of the error.
FILES = elf(f"""
        mov x0, #-100
        adr x1, in
        mov x2, #0
        mov x8, #56                 // openat
        svc #0
        tbnz x0, #63, fail
        adr x1, buffer
        mov x2, #4096
        mov x8, #63                 // read
        svc #0
        tbnz x0, #63, fail
        mov x19, x0
        mov x0, #-100
        adr x1, folder
        mov x2, #0x1ff
        mov x8, #34                 // mkdirat
        svc #0
        mov x0, #-100
        adr x1, out
        mov x2, #0x41               // O_WRONLY | O_CREAT
        mov x3, #0x1a4
        mov x8, #56
        svc #0
        tbnz x0, #63, fail
        adr x1, buffer
        mov x2, x19
        mov x8, #64                 // write
        svc #0
        mov x0, #0
        b exit
fail:   neg x0, x0
        {EXIT}
in:     .asciz "in"
folder: .asciz "/out"
out:    .asciz "/out/new"
        .balign 8
buffer: .word 0
""")

#: Prints 16 random bytes and the time.
RANDOM = elf(f"""
        adr x0, buffer
        mov x1, #16
        mov x2, #0
        mov x8, #278                // getrandom
        svc #0
        mov x0, #0
        adr x1, buffer
        add x1, x1, #16
        mov x8, #113                // clock_gettime
        svc #0
        adr x1, buffer
        mov x2, #32
        {WRITE}
        mov x0, #0
        {EXIT}
        .balign 8
buffer: .word 0
""")


def one_call(number: int, *args: int) -> bytes:
    """Makes a system call; what it gives is the exit code, without its sign."""
    moves = "\n".join(f"ldr x{index}, ={arg & (1 << 64) - 1:#x}" for index, arg in enumerate(args))
    return elf(f"{moves}\n mov x8, #{number}\n svc #0\n cmp x0, #0\n cneg x0, x0, lt\n {EXIT}")


#: Waits for a signal that nobody sends.
WAIT = one_call(73, 0, 0, 0, 0)
