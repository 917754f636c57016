/*
 * A short run to be repeated from a reset machine: exactly 1,000 instructions
 * before HLT (which is not counted), whatever the input.
 *
 *     6 to set up + 58 * 17 in the loop + 8 to finish = 1,000
 *
 * Both ways through the branch in the loop are equally long.  Writes only to
 * the page at 0x20000: its first 64 bytes in the loop, and the eight bytes
 * after them at the end.
 *
 * x0 = input; result: a hash of the input and of what the loop read back,
 * which takes for granted that the page was zero at the start.
 */
#include "guest.inc"

        BEGIN
        SCRATCH x3
        mov     x1, #58                 // rounds left
        mov     x2, #0x7f4b             // multiplier
        movk    x2, #0x9e37, lsl #16
        movk    x2, #0x79b9, lsl #32
        eor     x4, x0, x2              // hash

1:      mul     x5, x4, x2
        eor     x4, x5, x5, lsr #29
        and     x6, x4, #0x38           // add the hash to one of eight sums
        ldr     x7, [x3, x6]
        add     x7, x7, x4
        str     x7, [x3, x6]
        ror     x4, x4, #17
        ubfx    x8, x7, #5, #16
        tbz     x7, #3, 2f              // three instructions either way
        add     x4, x4, x8
        b       3f
2:      eor     x4, x4, x7
        sub     x4, x4, x8
3:      and     x9, x8, #0x3f           // spoil one byte of the sums
        strb    w1, [x3, x9]
        cmp     x4, x7
        cinc    x4, x4, hi
        subs    x1, x1, #1
        b.ne    1b

        ldr     x5, [x3]
        ldr     x6, [x3, #56]
        eor     x0, x4, x5
        add     x0, x0, x6
        eor     x0, x0, x0, lsr #32
        mul     x0, x0, x2
        eor     x0, x0, x0, lsr #31
        str     x0, [x3, #64]
        END
