/*
 * Start of a C guest in the bare machine.  The arguments in x0 to x7 go to
 * run() as they are; its result is in x0 when the machine halts.
 */
        .section .text.start, "ax", %progbits
        .global _start
_start:
        movz    x16, #:abs_g1:__stack_top
        movk    x16, #:abs_g0_nc:__stack_top
        mov     sp, x16
        bl      run
        hlt     #0
