/* Start of a guest as a Linux program: argc and argv lie on the stack. */
        .text
        .global _start
_start:
        mov     x29, #0
        mov     x30, #0
        ldr     x0, [sp]                // argc
        add     x1, sp, #8              // argv
        b       linux_main
