/*
 * The same loop with a store in it, always to the same eight bytes (0x20000
 * in the bare machine).
 *
 * x0 = input, x1 = iterations; result: input + iterations, read back from
 * memory.  Executes 4 * iterations + 5 instructions before HLT.
 */
#include "guest.inc"

        BEGIN
        SCRATCH x3
        mov     x2, x0
        str     x2, [x3]
        cbz     x1, 2f
1:      add     x2, x2, #1
        str     x2, [x3]
        subs    x1, x1, #1
        b.ne    1b
2:      ldr     x0, [x3]
        END
