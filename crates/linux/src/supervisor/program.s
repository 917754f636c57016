// The supervisor of a lane: what serves simple system calls in the lane itself.
//
// It begins with the program's registers, apart from X17, which is the counter after the call. What it finds on the desk, it
// may use; what it cannot do, it leaves to the host, which then does the whole call. So it counts on the desk last, when
// nothing can go wrong any more. It leaves flags alone.
//
// The host defines the names of what is on the desk.

        movz    x16, #(DESK >> 32), lsl #32
        movk    x16, #(DESK >> 16 & 0xffff), lsl #16
        stp     x0, x1, [x16, #SAVED]
        stp     x2, x3, [x16, #SAVED + 16]
        stp     x4, x5, [x16, #SAVED + 32]
        stp     x6, x7, [x16, #SAVED + 48]

        sub     x3, x8, #WRITE_CALL
        cbz     x3, write
        sub     x3, x8, #READ_CALL
        cbz     x3, read
        sub     x3, x8, #WRITEV_CALL
        cbz     x3, write
        sub     x3, x8, #CLOCK_CALL
        cbz     x3, clock

// What is always the same: seven calls with numbers in a row.
        sub     x3, x8, #FIRST_NUMBER_CALL
        lsr     x4, x3, #3
        cbnz    x4, host
        sub     x4, x3, #NUMBER_CALLS
        cbz     x4, host
        add     x4, x16, x3, lsl #3
        ldr     x0, [x4, #NUMBERS]
        ldr     x5, [x4, #NUMBERS_ASKED]
        add     x5, x5, #1
        str     x5, [x4, #NUMBERS_ASKED]
        b       done

// write(descriptor, buffer, length) and writev(descriptor, buffers, count): appends to one of two buffers on the desk.
write:  lsr     x3, x0, #DESCRIPTOR_BITS
        cbnz    x3, host
        add     x3, x16, x0
        ldrb    w3, [x3, #DESCRIPTORS]
        cbz     x3, host
        sub     x4, x3, #IS_INPUT
        cbz     x4, host
        sub     x3, x3, #1
        add     x7, x16, x3, lsl #2
        ldr     w7, [x7, #ROOM]
        add     x4, x16, x3, lsl #3
        ldr     w6, [x4, #MOVED]
        sub     x3, x8, #WRITE_CALL
        cbnz    x3, 1f
        mov     x3, x1
        mov     x5, x2
        movz    x2, #1
        b       append
1:      cbz     x2, host
        lsr     x3, x2, #MOST_BUFFERS_BITS
        cbnz    x3, host
        add     x3, x1, x2, lsl #4
        lsr     x3, x3, #ADDRESS_BITS
        cbnz    x3, host
        lsr     x3, x1, #ADDRESS_BITS
        cbnz    x3, host
buffer: ldr     x3, [x1], #8
        ldr     x5, [x1], #8
append: lsr     x0, x5, #31
        cbnz    x0, host
        lsr     x0, x3, #ADDRESS_BITS
        cbnz    x0, host
        add     x0, x3, x5
        lsr     x0, x0, #ADDRESS_BITS
        cbnz    x0, host
        add     x0, x6, x5
        sub     x0, x7, x0
        tbnz    x0, #63, host
        ldr     x0, [x4, #BUFFERS]
        add     x0, x0, x6
        add     x6, x6, x5
        b       copy

// read(descriptor, buffer, length): takes what there is of the input, unless there is more that is not on the desk.
read:   lsr     x3, x0, #DESCRIPTOR_BITS
        cbnz    x3, host
        add     x3, x16, x0
        ldrb    w3, [x3, #DESCRIPTORS]
        sub     x3, x3, #IS_INPUT
        cbnz    x3, host
        lsr     x4, x2, #31
        cbnz    x4, host
        lsr     x4, x1, #ADDRESS_BITS
        cbnz    x4, host
        add     x4, x1, x2
        lsr     x4, x4, #ADDRESS_BITS
        cbnz    x4, host
        add     x4, x16, #INPUT_MOVED
        ldr     w6, [x4, #MOVED]
        ldr     w5, [x16, #INPUT]
        sub     x5, x5, x6
        sub     x7, x5, x2
        tbnz    x7, #63, 1f
        mov     x5, x2
        b       2f
1:      ldr     w7, [x16, #INPUT_ENDS]
        cbz     x7, host
2:      ldr     x3, [x16, #INPUT_BUFFER]
        add     x3, x3, x6
        add     x6, x6, x5
        mov     x0, x1
        movz    x2, #1

// Moves X5 bytes from X3 to X0, and goes on with the next of X2 buffers, which is at X1. After the last, X6 bytes have been
// moved for what is counted at X4.
copy:   sub     x17, x5, #8
        tbnz    x17, #63, 1f
        mov     x5, x17
        ldr     x17, [x3], #8
        str     x17, [x0], #8
        b       copy
1:      cbz     x5, 2f
        ldrb    w17, [x3], #1
        strb    w17, [x0], #1
        sub     x5, x5, #1
        b       1b
2:      sub     x2, x2, #1
        cbnz    x2, buffer
        ldr     w5, [x4, #MOVED]
        sub     x0, x6, x5
        cbz     x0, host
        sub     x3, x8, #WRITEV_CALL
        cbz     x3, 3f
        ldr     w5, [x4, #MOVED + 4]
        add     x5, x5, #1
        str     w5, [x4, #MOVED + 4]
        str     w6, [x4, #MOVED]
        b       done
3:      ldr     x5, [x16, #VECTORS]
        add     x5, x5, #1
        str     x5, [x16, #VECTORS]
        str     w6, [x4, #MOVED]
        b       done

// clock_gettime(clock, time)
clock:  lsr     x3, x0, #CLOCK_BITS
        cbnz    x3, host
        add     x3, x16, x0, lsl #3
        ldr     x3, [x3, #CLOCKS]
        cbz     x3, host
        lsr     x4, x1, #ADDRESS_BITS
        cbnz    x4, host
        add     x4, x1, #16
        lsr     x4, x4, #ADDRESS_BITS
        cbnz    x4, host
        add     x3, x3, x17
        movz    x4, #(SECOND & 0xffff)
        movk    x4, #(SECOND >> 16), lsl #16
        udiv    x5, x3, x4
        msub    x6, x5, x4, x3
        stp     x5, x6, [x1]
        ldr     x5, [x16, #CLOCKS_ASKED]
        add     x5, x5, #1
        str     x5, [x16, #CLOCKS_ASKED]
        movz    x0, #0

done:   ldr     x1, [x16, #SAVED + 8]
        ldp     x2, x3, [x16, #SAVED + 16]
        ldp     x4, x5, [x16, #SAVED + 32]
        ldp     x6, x7, [x16, #SAVED + 48]
        svc     #RETURN

host:   svc     #0
