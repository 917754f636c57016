"""Small programs that several tests run."""

import kvrm


def store_loop(iterations: int) -> bytes:
    """Counts in x0, storing every count at 0x1000: four instructions a turn, three before, then HLT."""
    return kvrm.assemble(f"""
        movz x2, #0x1000
        movz x1, #{iterations & 0xFFFF}
        movk x1, #{iterations >> 16}, lsl #16
    loop:
        add x0, x0, #1
        str x0, [x2]
        subs x1, x1, #1
        b.ne loop
        hlt #0
    """)


def endless_store_loop() -> bytes:
    """The same without an end: three instructions a turn, one before."""
    return kvrm.assemble("""
        movz x2, #0x1000
    loop:
        add x0, x0, #1
        str x0, [x2]
        b loop
    """)
