/*
 * The same loop with a store in it, always to the same eight bytes (0x20000
 * in the bare machine).
 *
 * Lanes that share memory would all write those.  So that each has its own,
 * x2 tells how far the words of neighbouring inputs lie apart; zero, where
 * memory is private.
 *
 * x0 = input, x1 = iterations, x2 = distance; result: input + iterations, read
 * back from memory.  Executes 4 * iterations + 6 instructions before HLT.
 */
#include "guest.inc"

        BEGIN
        SCRATCH x3
        madd    x3, x0, x2, x3
        mov     x2, x0
        str     x2, [x3]
        cbz     x1, 2f
1:      add     x2, x2, #1
        str     x2, [x3]
        subs    x1, x1, #1
        b.ne    1b
2:      ldr     x0, [x3]
        END
