/*
 * Collatz: how many steps from a number down to 1, halving even numbers and
 * taking 3n + 1 of odd ones (modulo 2^64).
 *
 * x0 = first number, x1 = how many numbers in a row; result: the steps of all
 * of them together.  0 and 1 need no steps.
 */
#include "guest.inc"

        BEGIN
        mov     x2, #0                  // steps
        cbz     x1, 5f
1:      mov     x3, x0                  // n
2:      cmp     x3, #1
        b.ls    4f
        add     x2, x2, #1
        tbnz    x3, #0, 3f
        lsr     x3, x3, #1
        b       2b
3:      add     x3, x3, x3, lsl #1
        add     x3, x3, #1
        b       2b
4:      add     x0, x0, #1
        subs    x1, x1, #1
        b.ne    1b
5:      mov     x0, x2
        END
