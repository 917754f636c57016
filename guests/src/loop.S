/*
 * The shortest useful loop: three instructions, registers only.
 *
 * x0 = input, x1 = iterations; result: input + iterations.
 * Executes 3 * iterations + 3 instructions before HLT.
 */
#include "guest.inc"

        BEGIN
        mov     x2, x0
        cbz     x1, 2f
1:      add     x2, x2, #1
        subs    x1, x1, #1
        b.ne    1b
2:      mov     x0, x2
        END
