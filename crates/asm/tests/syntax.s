// Every way to write an instruction, a number or a directive. GNU as gives the bytes in syntax.hex; so must we.
// Bare numbers as addresses (`b 0x10000`) are left out: GNU as takes them for distances.
        .arch   armv8.6-a+crypto+fp16+fp16fml+sha3+sm4
        .text
        .global start
start:

// Data processing, immediate
        adr     x0, start
        adr     x1, end
        adr     x2, .
        adr     x3, .-1
        adr     x4, #5
        adrp    x5, start
        adrp    x6, far
        adrp    x7, :pg_hi21:far
        add     x7, x7, #:lo12:far
        add     x7, x7, :lo12:far+1
        ldr     x8, [x7, #:lo12:far]
        ldr     w8, [x7, :lo12:far + 4]
        ldrb    w8, [x7, :lo12:far + 1]
        add     w0, w1, #0
        add     wsp, w1, 4095
        add     w0, wsp, #4096
        add     w0, w30, #0xfff000
        add     w0, w1, #1, lsl #12
        add     w0, w1, #1, lsl 0
        add     w0, w1, #-1
        add     w0, w1, #-4096
        adds    wzr, wsp, #7
        adds    w0, w1, #-7
        sub     w0, w1, #0
        sub     wsp, w1, 4095
        sub     w0, wsp, #4096
        sub     w0, w30, #0xfff000
        sub     w0, w1, #1, lsl #12
        sub     w0, w1, #1, lsl 0
        sub     w0, w1, #-1
        sub     w0, w1, #-4096
        subs    wzr, wsp, #7
        subs    w0, w1, #-7
        cmp     wsp, #1
        cmp     w3, #1, lsl #12
        cmp     w3, #-1
        cmn     wsp, #1
        cmn     w3, #1, lsl #12
        cmn     w3, #-1
        and     wsp, w1, #1
        and     w2, wzr, #0x7ffffffe
        and     w2, w3, #-2
        orr     wsp, w1, #1
        orr     w2, wzr, #0x7ffffffe
        orr     w2, w3, #-2
        eor     wsp, w1, #1
        eor     w2, wzr, #0x7ffffffe
        eor     w2, w3, #-2
        ands    wzr, w1, #0xf0f0f0f0
        and     w1, w2, #~0xff
        tst     w1, #0xff00
        bic     w1, w2, #0xff
        movz    w0, #0xffff
        movz    w0, #1, lsl #16
        movn    w0, #0xffff
        movn    w0, #1, lsl #16
        movk    w0, #0xffff
        movk    w0, #1, lsl #16
        mov     w0, #0
        mov     w0, #0xffff
        mov     w0, #0x12340000
        mov     w0, #-1
        mov     w0, #-65536
        mov     w0, #-0x1235
        mov     w0, #0x55555555
        mov     wsp, #0xff0
        mov     w0, 'a'
        sbfm    w0, w1, #3, #31
        bfm    w0, w1, #3, #31
        ubfm    w0, w1, #3, #31
        lsl     w0, w1, #0
        lsl     w0, w1, #31
        lsl     w0, wzr, 5
        lsl     w0, w1, w2
        lslv    w0, w1, w2
        lsr     w0, w1, #0
        lsr     w0, w1, #31
        lsr     w0, wzr, 5
        lsr     w0, w1, w2
        lsrv    w0, w1, w2
        asr     w0, w1, #0
        asr     w0, w1, #31
        asr     w0, wzr, 5
        asr     w0, w1, w2
        asrv    w0, w1, w2
        ror     w0, w1, #0
        ror     w0, w1, #31
        ror     w0, wzr, 5
        ror     w0, w1, w2
        rorv    w0, w1, w2
        sbfx    w0, w1, #3, #7
        sbfx    w0, w1, #0, #1
        sbfx    w0, w1, #31, #1
        ubfx    w0, w1, #3, #7
        ubfx    w0, w1, #0, #1
        ubfx    w0, w1, #31, #1
        bfxil    w0, w1, #3, #7
        bfxil    w0, w1, #0, #1
        bfxil    w0, w1, #31, #1
        sbfiz    w0, w1, #3, #7
        sbfiz    w0, w1, #0, #1
        sbfiz    w0, w1, #31, #1
        ubfiz    w0, w1, #3, #7
        ubfiz    w0, w1, #0, #1
        ubfiz    w0, w1, #31, #1
        bfi    w0, w1, #3, #7
        bfi    w0, w1, #0, #1
        bfi    w0, w1, #31, #1
        bfc     w0, #4, #8
        sxtb    w0, w1
        sxth    w0, w1
        uxtb    w0, w1
        uxth    w0, w1
        uxtw    w0, w1
        extr    w0, w1, w2, #3
        add     x0, x1, #0
        add     sp, x1, 4095
        add     x0, sp, #4096
        add     x0, x30, #0xfff000
        add     x0, x1, #1, lsl #12
        add     x0, x1, #1, lsl 0
        add     x0, x1, #-1
        add     x0, x1, #-4096
        adds    xzr, sp, #7
        adds    x0, x1, #-7
        sub     x0, x1, #0
        sub     sp, x1, 4095
        sub     x0, sp, #4096
        sub     x0, x30, #0xfff000
        sub     x0, x1, #1, lsl #12
        sub     x0, x1, #1, lsl 0
        sub     x0, x1, #-1
        sub     x0, x1, #-4096
        subs    xzr, sp, #7
        subs    x0, x1, #-7
        cmp     sp, #1
        cmp     x3, #1, lsl #12
        cmp     x3, #-1
        cmn     sp, #1
        cmn     x3, #1, lsl #12
        cmn     x3, #-1
        and     sp, x1, #1
        and     x2, xzr, #0x7ffffffe
        and     x2, x3, #-2
        orr     sp, x1, #1
        orr     x2, xzr, #0x7ffffffe
        orr     x2, x3, #-2
        eor     sp, x1, #1
        eor     x2, xzr, #0x7ffffffe
        eor     x2, x3, #-2
        ands    xzr, x1, #0xf0f0f0f0f0f0f0f0
        and     x1, x2, #~0xff
        tst     x1, #0xff00
        bic     x1, x2, #0xff
        movz    x0, #0xffff
        movz    x0, #1, lsl #16
        movn    x0, #0xffff
        movn    x0, #1, lsl #16
        movk    x0, #0xffff
        movk    x0, #1, lsl #16
        mov     x0, #0
        mov     x0, #0xffff
        mov     x0, #0x12340000
        mov     x0, #-1
        mov     x0, #-65536
        mov     x0, #-0x1235
        mov     x0, #0x5555555555555555
        mov     sp, #0xff0
        mov     x0, 'a'
        sbfm    x0, x1, #3, #31
        bfm    x0, x1, #3, #31
        ubfm    x0, x1, #3, #31
        lsl     x0, x1, #0
        lsl     x0, x1, #63
        lsl     x0, xzr, 5
        lsl     x0, x1, x2
        lslv    x0, x1, x2
        lsr     x0, x1, #0
        lsr     x0, x1, #63
        lsr     x0, xzr, 5
        lsr     x0, x1, x2
        lsrv    x0, x1, x2
        asr     x0, x1, #0
        asr     x0, x1, #63
        asr     x0, xzr, 5
        asr     x0, x1, x2
        asrv    x0, x1, x2
        ror     x0, x1, #0
        ror     x0, x1, #63
        ror     x0, xzr, 5
        ror     x0, x1, x2
        rorv    x0, x1, x2
        sbfx    x0, x1, #3, #7
        sbfx    x0, x1, #0, #1
        sbfx    x0, x1, #63, #1
        ubfx    x0, x1, #3, #7
        ubfx    x0, x1, #0, #1
        ubfx    x0, x1, #63, #1
        bfxil    x0, x1, #3, #7
        bfxil    x0, x1, #0, #1
        bfxil    x0, x1, #63, #1
        sbfiz    x0, x1, #3, #7
        sbfiz    x0, x1, #0, #1
        sbfiz    x0, x1, #63, #1
        ubfiz    x0, x1, #3, #7
        ubfiz    x0, x1, #0, #1
        ubfiz    x0, x1, #63, #1
        bfi    x0, x1, #3, #7
        bfi    x0, x1, #0, #1
        bfi    x0, x1, #63, #1
        bfc     x0, #4, #8
        sxtb    x0, w1
        sxth    x0, w1
        uxtb    x0, w1
        uxth    x0, w1
        uxtw    x0, w1
        extr    x0, x1, x2, #3
        sxtw    x0, w1
        movz    x0, #2, lsl #32
        movk    x0, #2, lsl #48
        mov     x0, #0x123400000000
        mov     x0, #0xffffffffffff1234
        mov     x0, #0xffff1234ffffffff
        movz    x0, #:abs_g1:far
        movk    x0, #:abs_g0_nc:far
        movz    x0, #:abs_g3:far
        movk    w0, #:abs_g0_nc:far

// Data processing, register
        udiv    w0, w1, wzr
        sdiv    w0, w1, wzr
        adc     w0, w1, wzr
        adcs    w0, w1, wzr
        sbc     w0, w1, wzr
        sbcs    w0, w1, wzr
        mul     w0, w1, wzr
        mneg    w0, w1, wzr
        rbit    w0, wzr
        rev16   w0, wzr
        rev     w0, wzr
        clz     w0, wzr
        cls     w0, wzr
        and     w0, w1, wzr
        and     wzr, w1, w2, lsl #1
        and     w0, w1, w2, ror #31
        bic     w0, w1, wzr
        bic     wzr, w1, w2, lsl #1
        bic     w0, w1, w2, ror #31
        orr     w0, w1, wzr
        orr     wzr, w1, w2, lsl #1
        orr     w0, w1, w2, ror #31
        orn     w0, w1, wzr
        orn     wzr, w1, w2, lsl #1
        orn     w0, w1, w2, ror #31
        eor     w0, w1, wzr
        eor     wzr, w1, w2, lsl #1
        eor     w0, w1, w2, ror #31
        eon     w0, w1, wzr
        eon     wzr, w1, w2, lsl #1
        eon     w0, w1, w2, ror #31
        ands    w0, w1, wzr
        ands    wzr, w1, w2, lsl #1
        ands    w0, w1, w2, ror #31
        bics    w0, w1, wzr
        bics    wzr, w1, w2, lsl #1
        bics    w0, w1, w2, ror #31
        add     w0, w1, wzr
        add     w0, w1, w2, lsr #2
        add     w0, w1, w2, asr 3
        add     w0, w1, w2, uxtb
        add     w0, wsp, w2, uxtb #4
        add     w0, w1, w2, uxth
        add     w0, wsp, w2, uxth #4
        add     w0, w1, w2, uxtw
        add     w0, wsp, w2, uxtw #4
        add     w0, w1, w2, sxtb
        add     w0, wsp, w2, sxtb #4
        add     w0, w1, w2, sxth
        add     w0, wsp, w2, sxth #4
        add     w0, w1, w2, sxtw
        add     w0, wsp, w2, sxtw #4
        add     w0, wsp, w2
        add     w0, wsp, w2, lsl #3
        add     w0, w1, w2, uxtx #1
        add     w0, w1, w2, sxtx #1
        sub     w0, w1, wzr
        sub     w0, w1, w2, lsr #2
        sub     w0, w1, w2, asr 3
        sub     w0, w1, w2, uxtb
        sub     w0, wsp, w2, uxtb #4
        sub     w0, w1, w2, uxth
        sub     w0, wsp, w2, uxth #4
        sub     w0, w1, w2, uxtw
        sub     w0, wsp, w2, uxtw #4
        sub     w0, w1, w2, sxtb
        sub     w0, wsp, w2, sxtb #4
        sub     w0, w1, w2, sxth
        sub     w0, wsp, w2, sxth #4
        sub     w0, w1, w2, sxtw
        sub     w0, wsp, w2, sxtw #4
        sub     w0, wsp, w2
        sub     w0, wsp, w2, lsl #3
        sub     w0, w1, w2, uxtx #1
        sub     w0, w1, w2, sxtx #1
        adds    w0, w1, wzr
        adds    w0, w1, w2, lsr #2
        adds    w0, w1, w2, asr 3
        adds    w0, w1, w2, uxtb
        adds    w0, wsp, w2, uxtb #4
        adds    w0, w1, w2, uxth
        adds    w0, wsp, w2, uxth #4
        adds    w0, w1, w2, uxtw
        adds    w0, wsp, w2, uxtw #4
        adds    w0, w1, w2, sxtb
        adds    w0, wsp, w2, sxtb #4
        adds    w0, w1, w2, sxth
        adds    w0, wsp, w2, sxth #4
        adds    w0, w1, w2, sxtw
        adds    w0, wsp, w2, sxtw #4
        adds    w0, wsp, w2
        adds    w0, wsp, w2, lsl #3
        adds    w0, w1, w2, uxtx #1
        adds    w0, w1, w2, sxtx #1
        subs    w0, w1, wzr
        subs    w0, w1, w2, lsr #2
        subs    w0, w1, w2, asr 3
        subs    w0, w1, w2, uxtb
        subs    w0, wsp, w2, uxtb #4
        subs    w0, w1, w2, uxth
        subs    w0, wsp, w2, uxth #4
        subs    w0, w1, w2, uxtw
        subs    w0, wsp, w2, uxtw #4
        subs    w0, w1, w2, sxtb
        subs    w0, wsp, w2, sxtb #4
        subs    w0, w1, w2, sxth
        subs    w0, wsp, w2, sxth #4
        subs    w0, w1, w2, sxtw
        subs    w0, wsp, w2, sxtw #4
        subs    w0, wsp, w2
        subs    w0, wsp, w2, lsl #3
        subs    w0, w1, w2, uxtx #1
        subs    w0, w1, w2, sxtx #1
        add     wsp, wsp, w2
        sub     wsp, w1, w2, lsl #1
        cmp     w0, w1
        cmp     w0, w1, asr #7
        cmn     w0, w1
        cmn     w0, w1, asr #7
        tst     w0, w1
        tst     w0, w1, asr #7
        neg     w0, w1
        neg     w0, w1, asr #7
        negs    w0, w1
        negs    w0, w1, asr #7
        mvn     w0, w1
        mvn     w0, w1, asr #7
        mov     w0, w1
        ngc     w0, w1
        ngcs    w0, w1
        cmp     wsp, w1
        cmp     w0, w1, sxtb
        cmp     wsp, w1, uxth #2
        cmn     wsp, w1
        cmn     w0, w1, sxtb
        cmn     wsp, w1, uxth #2
        mov     wsp, w1
        mov     w1, wsp
        mov     wsp, wsp
        mov     w1, wzr
        ccmn    w0, w1, #15, eq
        ccmn    w0, #31, #0, al
        ccmp    w0, w1, #15, eq
        ccmp    w0, #31, #0, al
        csel    w0, w1, wzr, nv
        csinc   w0, w1, wzr, nv
        csinv   w0, w1, wzr, nv
        csneg   w0, w1, wzr, nv
        cset    w0, lo
        csetm   w0, lo
        cinc    w0, w1, ne
        cinv    w0, w1, ne
        cneg    w0, w1, ne
        madd    w0, w1, w2, w3
        msub    w0, w1, w2, w3
        udiv    x0, x1, xzr
        sdiv    x0, x1, xzr
        adc     x0, x1, xzr
        adcs    x0, x1, xzr
        sbc     x0, x1, xzr
        sbcs    x0, x1, xzr
        mul     x0, x1, xzr
        mneg    x0, x1, xzr
        rbit    x0, xzr
        rev16   x0, xzr
        rev     x0, xzr
        clz     x0, xzr
        cls     x0, xzr
        and     x0, x1, xzr
        and     xzr, x1, x2, lsl #1
        and     x0, x1, x2, ror #31
        bic     x0, x1, xzr
        bic     xzr, x1, x2, lsl #1
        bic     x0, x1, x2, ror #31
        orr     x0, x1, xzr
        orr     xzr, x1, x2, lsl #1
        orr     x0, x1, x2, ror #31
        orn     x0, x1, xzr
        orn     xzr, x1, x2, lsl #1
        orn     x0, x1, x2, ror #31
        eor     x0, x1, xzr
        eor     xzr, x1, x2, lsl #1
        eor     x0, x1, x2, ror #31
        eon     x0, x1, xzr
        eon     xzr, x1, x2, lsl #1
        eon     x0, x1, x2, ror #31
        ands    x0, x1, xzr
        ands    xzr, x1, x2, lsl #1
        ands    x0, x1, x2, ror #31
        bics    x0, x1, xzr
        bics    xzr, x1, x2, lsl #1
        bics    x0, x1, x2, ror #31
        add     x0, x1, xzr
        add     x0, x1, x2, lsr #2
        add     x0, x1, x2, asr 3
        add     x0, x1, w2, uxtb
        add     x0, sp, w2, uxtb #4
        add     x0, x1, w2, uxth
        add     x0, sp, w2, uxth #4
        add     x0, x1, w2, uxtw
        add     x0, sp, w2, uxtw #4
        add     x0, x1, w2, sxtb
        add     x0, sp, w2, sxtb #4
        add     x0, x1, w2, sxth
        add     x0, sp, w2, sxth #4
        add     x0, x1, w2, sxtw
        add     x0, sp, w2, sxtw #4
        add     x0, sp, x2
        add     x0, sp, x2, lsl #3
        add     x0, x1, x2, uxtx #1
        add     x0, x1, x2, sxtx #1
        sub     x0, x1, xzr
        sub     x0, x1, x2, lsr #2
        sub     x0, x1, x2, asr 3
        sub     x0, x1, w2, uxtb
        sub     x0, sp, w2, uxtb #4
        sub     x0, x1, w2, uxth
        sub     x0, sp, w2, uxth #4
        sub     x0, x1, w2, uxtw
        sub     x0, sp, w2, uxtw #4
        sub     x0, x1, w2, sxtb
        sub     x0, sp, w2, sxtb #4
        sub     x0, x1, w2, sxth
        sub     x0, sp, w2, sxth #4
        sub     x0, x1, w2, sxtw
        sub     x0, sp, w2, sxtw #4
        sub     x0, sp, x2
        sub     x0, sp, x2, lsl #3
        sub     x0, x1, x2, uxtx #1
        sub     x0, x1, x2, sxtx #1
        adds    x0, x1, xzr
        adds    x0, x1, x2, lsr #2
        adds    x0, x1, x2, asr 3
        adds    x0, x1, w2, uxtb
        adds    x0, sp, w2, uxtb #4
        adds    x0, x1, w2, uxth
        adds    x0, sp, w2, uxth #4
        adds    x0, x1, w2, uxtw
        adds    x0, sp, w2, uxtw #4
        adds    x0, x1, w2, sxtb
        adds    x0, sp, w2, sxtb #4
        adds    x0, x1, w2, sxth
        adds    x0, sp, w2, sxth #4
        adds    x0, x1, w2, sxtw
        adds    x0, sp, w2, sxtw #4
        adds    x0, sp, x2
        adds    x0, sp, x2, lsl #3
        adds    x0, x1, x2, uxtx #1
        adds    x0, x1, x2, sxtx #1
        subs    x0, x1, xzr
        subs    x0, x1, x2, lsr #2
        subs    x0, x1, x2, asr 3
        subs    x0, x1, w2, uxtb
        subs    x0, sp, w2, uxtb #4
        subs    x0, x1, w2, uxth
        subs    x0, sp, w2, uxth #4
        subs    x0, x1, w2, uxtw
        subs    x0, sp, w2, uxtw #4
        subs    x0, x1, w2, sxtb
        subs    x0, sp, w2, sxtb #4
        subs    x0, x1, w2, sxth
        subs    x0, sp, w2, sxth #4
        subs    x0, x1, w2, sxtw
        subs    x0, sp, w2, sxtw #4
        subs    x0, sp, x2
        subs    x0, sp, x2, lsl #3
        subs    x0, x1, x2, uxtx #1
        subs    x0, x1, x2, sxtx #1
        add     sp, sp, x2
        sub     sp, x1, x2, lsl #1
        cmp     x0, x1
        cmp     x0, x1, asr #7
        cmn     x0, x1
        cmn     x0, x1, asr #7
        tst     x0, x1
        tst     x0, x1, asr #7
        neg     x0, x1
        neg     x0, x1, asr #7
        negs    x0, x1
        negs    x0, x1, asr #7
        mvn     x0, x1
        mvn     x0, x1, asr #7
        mov     x0, x1
        ngc     x0, x1
        ngcs    x0, x1
        cmp     sp, x1
        cmp     x0, w1, sxtb
        cmp     sp, w1, uxth #2
        cmn     sp, x1
        cmn     x0, w1, sxtb
        cmn     sp, w1, uxth #2
        mov     sp, x1
        mov     x1, sp
        mov     sp, sp
        mov     x1, xzr
        ccmn    x0, x1, #15, eq
        ccmn    x0, #31, #0, al
        ccmp    x0, x1, #15, eq
        ccmp    x0, #31, #0, al
        csel    x0, x1, xzr, nv
        csinc   x0, x1, xzr, nv
        csinv   x0, x1, xzr, nv
        csneg   x0, x1, xzr, nv
        cset    x0, lo
        csetm   x0, lo
        cinc    x0, x1, ne
        cinv    x0, x1, ne
        cneg    x0, x1, ne
        madd    x0, x1, x2, x3
        msub    x0, x1, x2, x3
        crc32b  w0, w1, w2
        crc32h  w0, w1, w2
        crc32w  w0, w1, w2
        crc32cb w0, w1, w2
        crc32ch w0, w1, w2
        crc32cw w0, w1, w2
        crc32x  w0, w1, x2
        crc32cx w0, w1, x2
        rev32   x0, x1
        rev64   x0, x1
        rmif    x1, #63, #15
        setf8   w1
        setf16  wzr
        smaddl  x0, w1, w2, x3
        smsubl  x0, w1, w2, x3
        umaddl  x0, w1, w2, x3
        umsubl  x0, w1, w2, x3
        smull   x0, w1, w2
        umull   x0, w1, w2
        smnegl  x0, w1, w2
        umnegl  x0, w1, w2
        smulh   x0, x1, x2
        umulh   x0, x1, x2
        csel    x0, x1, x2, eq
        csel    x0, x1, x2, ne
        csel    x0, x1, x2, cs
        csel    x0, x1, x2, hs
        csel    x0, x1, x2, cc
        csel    x0, x1, x2, lo
        csel    x0, x1, x2, ul
        csel    x0, x1, x2, mi
        csel    x0, x1, x2, pl
        csel    x0, x1, x2, vs
        csel    x0, x1, x2, vc
        csel    x0, x1, x2, hi
        csel    x0, x1, x2, ls
        csel    x0, x1, x2, ge
        csel    x0, x1, x2, lt
        csel    x0, x1, x2, gt
        csel    x0, x1, x2, le
        csel    x0, x1, x2, al
        csel    x0, x1, x2, nv
        csel    x0, x1, x2, none
        csel    x0, x1, x2, any
        csel    x0, x1, x2, nlast
        csel    x0, x1, x2, last
        csel    x0, x1, x2, first
        csel    x0, x1, x2, nfrst
        csel    x0, x1, x2, pmore
        csel    x0, x1, x2, plast
        csel    x0, x1, x2, tcont
        csel    x0, x1, x2, tstop

// Branches and labels
1:      b       1b
        b       1f
        bl      start
        b       end - 4
        b       .
        b       .+8
        b       #8
        b       #-4
        b       #2*(3+1)
1:      b       1b
        cbz     w0, 1b
        cbz     x0, 1f
        cbnz    wzr, 1f
        cbnz    xzr, #16
        tbz     w0, #31, 1b
        tbz     x0, #0, 1b
        tbz     x0, #63, 1f
        tbnz    w0, #5, 1f
        tbnz    x0, #33, 1f
1:
2: 3:   br      x0
        blr     x30
        ret
        ret     x1
        b       2b; b 3b; nop
        BR      X5
        Add     X0, x1, W2, UXTW #1
        mov     lr, fp
        mov     ip0, ip1
        b.eq    3b
        b.ne    3b
        b.cs    3b
        b.hs    3b
        b.cc    3b
        b.lo    3b
        b.mi    3b
        b.pl    3b
        b.vs    3b
        b.vc    3b
        b.hi    3b
        b.ls    3b
        b.ge    3b
        b.lt    3b
        b.gt    3b
        b.le    3b
        b.al    3b
        b.nv    3b
        b.none  3b
        b.any   3b
        b.nlast 3b
        b.ul    3b
        b.last  3b
        b.first 3b
        b.nfrst 3b
        b.pmore 3b
        b.plast 3b
        b.tcont 3b
        b.tstop 3b
        beq     3b
        bne     3b
        bcs     3b
        bhs     3b
        bcc     3b
        blo     3b
        bmi     3b
        bpl     3b
        bvs     3b
        bvc     3b
        bhi     3b
        bls     3b
        bge     3b
        blt     3b
        bgt     3b
        ble     3b

// Loads and stores
        strb    w0, [x1]
        strb    w0, [sp, #0]
        strb    w0, [x1, #4095]
        strb    w0, [x1, 1]
        strb    w0, [x1, #-1]
        strb    w0, [x1, #-256]
        strb    w0, [sp], #255
        strb    w0, [x1], -256
        strb    w0, [sp, #-16]!
        strb    w0, [x1, 1]!
        strb    w0, [x1, x2]
        strb    w0, [sp, x2, lsl #0]
        strb    w0, [x1, w2, uxtw]
        strb    w0, [x1, w2, sxtw #0]
        strb    w0, [x1, x2, sxtx]
        strb    w0, [x1, xzr, sxtx #0]
        sturb   w0, [sp]
        sturb   w0, [x1, #-256]
        sttrb   w0, [sp]
        sttrb   w0, [x1, #-256]
        stlurb  w0, [sp]
        stlurb  w0, [x1, #-256]
        ldrb    w0, [x1]
        ldrb    w0, [sp, #0]
        ldrb    w0, [x1, #4095]
        ldrb    w0, [x1, 1]
        ldrb    w0, [x1, #-1]
        ldrb    w0, [x1, #-256]
        ldrb    w0, [sp], #255
        ldrb    w0, [x1], -256
        ldrb    w0, [sp, #-16]!
        ldrb    w0, [x1, 1]!
        ldrb    w0, [x1, x2]
        ldrb    w0, [sp, x2, lsl #0]
        ldrb    w0, [x1, w2, uxtw]
        ldrb    w0, [x1, w2, sxtw #0]
        ldrb    w0, [x1, x2, sxtx]
        ldrb    w0, [x1, xzr, sxtx #0]
        ldurb   w0, [sp]
        ldurb   w0, [x1, #-256]
        ldtrb   w0, [sp]
        ldtrb   w0, [x1, #-256]
        ldapurb w0, [sp]
        ldapurb w0, [x1, #-256]
        ldrsb   w0, [x1]
        ldrsb   w0, [sp, #0]
        ldrsb   w0, [x1, #4095]
        ldrsb   w0, [x1, 1]
        ldrsb   w0, [x1, #-1]
        ldrsb   w0, [x1, #-256]
        ldrsb   w0, [sp], #255
        ldrsb   w0, [x1], -256
        ldrsb   w0, [sp, #-16]!
        ldrsb   w0, [x1, 1]!
        ldrsb   w0, [x1, x2]
        ldrsb   w0, [sp, x2, lsl #0]
        ldrsb   w0, [x1, w2, uxtw]
        ldrsb   w0, [x1, w2, sxtw #0]
        ldrsb   w0, [x1, x2, sxtx]
        ldrsb   w0, [x1, xzr, sxtx #0]
        ldursb  w0, [sp]
        ldursb  w0, [x1, #-256]
        ldtrsb  w0, [sp]
        ldtrsb  w0, [x1, #-256]
        ldapursb w0, [sp]
        ldapursb w0, [x1, #-256]
        ldrsb   x0, [x1]
        ldrsb   x0, [sp, #0]
        ldrsb   x0, [x1, #4095]
        ldrsb   x0, [x1, 1]
        ldrsb   x0, [x1, #-1]
        ldrsb   x0, [x1, #-256]
        ldrsb   x0, [sp], #255
        ldrsb   x0, [x1], -256
        ldrsb   x0, [sp, #-16]!
        ldrsb   x0, [x1, 1]!
        ldrsb   x0, [x1, x2]
        ldrsb   x0, [sp, x2, lsl #0]
        ldrsb   x0, [x1, w2, uxtw]
        ldrsb   x0, [x1, w2, sxtw #0]
        ldrsb   x0, [x1, x2, sxtx]
        ldrsb   x0, [x1, xzr, sxtx #0]
        ldursb  x0, [sp]
        ldursb  x0, [x1, #-256]
        ldtrsb  x0, [sp]
        ldtrsb  x0, [x1, #-256]
        ldapursb x0, [sp]
        ldapursb x0, [x1, #-256]
        strh    w0, [x1]
        strh    w0, [sp, #0]
        strh    w0, [x1, #8190]
        strh    w0, [x1, 2]
        strh    w0, [x1, #-1]
        strh    w0, [x1, #-256]
        strh    w0, [x1, #1]
        strh    w0, [sp], #255
        strh    w0, [x1], -256
        strh    w0, [sp, #-16]!
        strh    w0, [x1, 1]!
        strh    w0, [x1, x2]
        strh    w0, [sp, x2, lsl #1]
        strh    w0, [x1, w2, uxtw]
        strh    w0, [x1, w2, sxtw #1]
        strh    w0, [x1, x2, sxtx]
        strh    w0, [x1, xzr, sxtx #1]
        strh    w0, [x1, x2, lsl #0]
        strh    w0, [x1, w2, uxtw #0]
        sturh   w0, [sp]
        sturh   w0, [x1, #-256]
        sttrh   w0, [sp]
        sttrh   w0, [x1, #-256]
        stlurh  w0, [sp]
        stlurh  w0, [x1, #-256]
        ldrh    w0, [x1]
        ldrh    w0, [sp, #0]
        ldrh    w0, [x1, #8190]
        ldrh    w0, [x1, 2]
        ldrh    w0, [x1, #-1]
        ldrh    w0, [x1, #-256]
        ldrh    w0, [x1, #1]
        ldrh    w0, [sp], #255
        ldrh    w0, [x1], -256
        ldrh    w0, [sp, #-16]!
        ldrh    w0, [x1, 1]!
        ldrh    w0, [x1, x2]
        ldrh    w0, [sp, x2, lsl #1]
        ldrh    w0, [x1, w2, uxtw]
        ldrh    w0, [x1, w2, sxtw #1]
        ldrh    w0, [x1, x2, sxtx]
        ldrh    w0, [x1, xzr, sxtx #1]
        ldrh    w0, [x1, x2, lsl #0]
        ldrh    w0, [x1, w2, uxtw #0]
        ldurh   w0, [sp]
        ldurh   w0, [x1, #-256]
        ldtrh   w0, [sp]
        ldtrh   w0, [x1, #-256]
        ldapurh w0, [sp]
        ldapurh w0, [x1, #-256]
        ldrsh   w0, [x1]
        ldrsh   w0, [sp, #0]
        ldrsh   w0, [x1, #8190]
        ldrsh   w0, [x1, 2]
        ldrsh   w0, [x1, #-1]
        ldrsh   w0, [x1, #-256]
        ldrsh   w0, [x1, #1]
        ldrsh   w0, [sp], #255
        ldrsh   w0, [x1], -256
        ldrsh   w0, [sp, #-16]!
        ldrsh   w0, [x1, 1]!
        ldrsh   w0, [x1, x2]
        ldrsh   w0, [sp, x2, lsl #1]
        ldrsh   w0, [x1, w2, uxtw]
        ldrsh   w0, [x1, w2, sxtw #1]
        ldrsh   w0, [x1, x2, sxtx]
        ldrsh   w0, [x1, xzr, sxtx #1]
        ldrsh   w0, [x1, x2, lsl #0]
        ldrsh   w0, [x1, w2, uxtw #0]
        ldursh  w0, [sp]
        ldursh  w0, [x1, #-256]
        ldtrsh  w0, [sp]
        ldtrsh  w0, [x1, #-256]
        ldapursh w0, [sp]
        ldapursh w0, [x1, #-256]
        ldrsh   x0, [x1]
        ldrsh   x0, [sp, #0]
        ldrsh   x0, [x1, #8190]
        ldrsh   x0, [x1, 2]
        ldrsh   x0, [x1, #-1]
        ldrsh   x0, [x1, #-256]
        ldrsh   x0, [x1, #1]
        ldrsh   x0, [sp], #255
        ldrsh   x0, [x1], -256
        ldrsh   x0, [sp, #-16]!
        ldrsh   x0, [x1, 1]!
        ldrsh   x0, [x1, x2]
        ldrsh   x0, [sp, x2, lsl #1]
        ldrsh   x0, [x1, w2, uxtw]
        ldrsh   x0, [x1, w2, sxtw #1]
        ldrsh   x0, [x1, x2, sxtx]
        ldrsh   x0, [x1, xzr, sxtx #1]
        ldrsh   x0, [x1, x2, lsl #0]
        ldrsh   x0, [x1, w2, uxtw #0]
        ldursh  x0, [sp]
        ldursh  x0, [x1, #-256]
        ldtrsh  x0, [sp]
        ldtrsh  x0, [x1, #-256]
        ldapursh x0, [sp]
        ldapursh x0, [x1, #-256]
        str     w0, [x1]
        str     w0, [sp, #0]
        str     w0, [x1, #16380]
        str     w0, [x1, 4]
        str     w0, [x1, #-1]
        str     w0, [x1, #-256]
        str     w0, [x1, #2]
        str     w0, [sp], #255
        str     w0, [x1], -256
        str     w0, [sp, #-16]!
        str     w0, [x1, 1]!
        str     w0, [x1, x2]
        str     w0, [sp, x2, lsl #2]
        str     w0, [x1, w2, uxtw]
        str     w0, [x1, w2, sxtw #2]
        str     w0, [x1, x2, sxtx]
        str     w0, [x1, xzr, sxtx #2]
        str     w0, [x1, x2, lsl #0]
        str     w0, [x1, w2, uxtw #0]
        stur    w0, [sp]
        stur    w0, [x1, #-256]
        sttr    w0, [sp]
        sttr    w0, [x1, #-256]
        stlur   w0, [sp]
        stlur   w0, [x1, #-256]
        ldr     w0, [x1]
        ldr     w0, [sp, #0]
        ldr     w0, [x1, #16380]
        ldr     w0, [x1, 4]
        ldr     w0, [x1, #-1]
        ldr     w0, [x1, #-256]
        ldr     w0, [x1, #2]
        ldr     w0, [sp], #255
        ldr     w0, [x1], -256
        ldr     w0, [sp, #-16]!
        ldr     w0, [x1, 1]!
        ldr     w0, [x1, x2]
        ldr     w0, [sp, x2, lsl #2]
        ldr     w0, [x1, w2, uxtw]
        ldr     w0, [x1, w2, sxtw #2]
        ldr     w0, [x1, x2, sxtx]
        ldr     w0, [x1, xzr, sxtx #2]
        ldr     w0, [x1, x2, lsl #0]
        ldr     w0, [x1, w2, uxtw #0]
        ldur    w0, [sp]
        ldur    w0, [x1, #-256]
        ldtr    w0, [sp]
        ldtr    w0, [x1, #-256]
        ldapur  w0, [sp]
        ldapur  w0, [x1, #-256]
        ldrsw   x0, [x1]
        ldrsw   x0, [sp, #0]
        ldrsw   x0, [x1, #16380]
        ldrsw   x0, [x1, 4]
        ldrsw   x0, [x1, #-1]
        ldrsw   x0, [x1, #-256]
        ldrsw   x0, [x1, #2]
        ldrsw   x0, [sp], #255
        ldrsw   x0, [x1], -256
        ldrsw   x0, [sp, #-16]!
        ldrsw   x0, [x1, 1]!
        ldrsw   x0, [x1, x2]
        ldrsw   x0, [sp, x2, lsl #2]
        ldrsw   x0, [x1, w2, uxtw]
        ldrsw   x0, [x1, w2, sxtw #2]
        ldrsw   x0, [x1, x2, sxtx]
        ldrsw   x0, [x1, xzr, sxtx #2]
        ldrsw   x0, [x1, x2, lsl #0]
        ldrsw   x0, [x1, w2, uxtw #0]
        ldursw  x0, [sp]
        ldursw  x0, [x1, #-256]
        ldtrsw  x0, [sp]
        ldtrsw  x0, [x1, #-256]
        ldapursw x0, [sp]
        ldapursw x0, [x1, #-256]
        str     x0, [x1]
        str     x0, [sp, #0]
        str     x0, [x1, #32760]
        str     x0, [x1, 8]
        str     x0, [x1, #-1]
        str     x0, [x1, #-256]
        str     x0, [x1, #4]
        str     x0, [sp], #255
        str     x0, [x1], -256
        str     x0, [sp, #-16]!
        str     x0, [x1, 1]!
        str     x0, [x1, x2]
        str     x0, [sp, x2, lsl #3]
        str     x0, [x1, w2, uxtw]
        str     x0, [x1, w2, sxtw #3]
        str     x0, [x1, x2, sxtx]
        str     x0, [x1, xzr, sxtx #3]
        str     x0, [x1, x2, lsl #0]
        str     x0, [x1, w2, uxtw #0]
        stur    x0, [sp]
        stur    x0, [x1, #-256]
        sttr    x0, [sp]
        sttr    x0, [x1, #-256]
        stlur   x0, [sp]
        stlur   x0, [x1, #-256]
        ldr     x0, [x1]
        ldr     x0, [sp, #0]
        ldr     x0, [x1, #32760]
        ldr     x0, [x1, 8]
        ldr     x0, [x1, #-1]
        ldr     x0, [x1, #-256]
        ldr     x0, [x1, #4]
        ldr     x0, [sp], #255
        ldr     x0, [x1], -256
        ldr     x0, [sp, #-16]!
        ldr     x0, [x1, 1]!
        ldr     x0, [x1, x2]
        ldr     x0, [sp, x2, lsl #3]
        ldr     x0, [x1, w2, uxtw]
        ldr     x0, [x1, w2, sxtw #3]
        ldr     x0, [x1, x2, sxtx]
        ldr     x0, [x1, xzr, sxtx #3]
        ldr     x0, [x1, x2, lsl #0]
        ldr     x0, [x1, w2, uxtw #0]
        ldur    x0, [sp]
        ldur    x0, [x1, #-256]
        ldtr    x0, [sp]
        ldtr    x0, [x1, #-256]
        ldapur  x0, [sp]
        ldapur  x0, [x1, #-256]
        ldr     w0, start
        ldr     w0, #-8
        ldr     w0, 3b
        ldr     x0, start
        ldr     x0, #-8
        ldr     x0, 3b
        ldrsw   x0, end
        prfm    pldl1keep, [x1]
        prfm    pldl1strm, [x1]
        prfm    pldl2keep, [x1]
        prfm    pldl2strm, [x1]
        prfm    pldl3keep, [x1]
        prfm    pldl3strm, [x1]
        prfm    plil1keep, [x1]
        prfm    plil2strm, [x1]
        prfm    pstl1keep, [x1]
        prfm    pstl3strm, [x1]
        prfm    #6, [x1, #32760]
        prfm    pldl1keep, [x1, #-8]
        prfm    pldl1keep, [x1, x2]
        prfm    pstl1keep, [x1, w2, uxtw #3]
        prfm    pldl1keep, start
        prfum   pldl1keep, [x1, #255]
        stp     w0, w1, [sp]
        stp     w0, wzr, [x1, #-256]
        stp     w0, w2, [x1, #252]
        ldp     w0, w1, [sp]
        ldp     w0, wzr, [x1, #-256]
        ldp     w0, w2, [x1, #252]
        stnp    w0, w1, [sp]
        stnp    w0, wzr, [x1, #-256]
        stnp    w0, w2, [x1, #252]
        ldnp    w0, w1, [sp]
        ldnp    w0, wzr, [x1, #-256]
        ldnp    w0, w2, [x1, #252]
        stp     w0, w2, [sp, #-16]!
        stp     w0, w2, [sp], #16
        ldp     w0, w2, [sp, #-16]!
        ldp     w0, w2, [sp], #16
        stp     x0, x1, [sp]
        stp     x0, xzr, [x1, #-512]
        stp     x0, x2, [x1, #504]
        ldp     x0, x1, [sp]
        ldp     x0, xzr, [x1, #-512]
        ldp     x0, x2, [x1, #504]
        stnp    x0, x1, [sp]
        stnp    x0, xzr, [x1, #-512]
        stnp    x0, x2, [x1, #504]
        ldnp    x0, x1, [sp]
        ldnp    x0, xzr, [x1, #-512]
        ldnp    x0, x2, [x1, #504]
        stp     x0, x2, [sp, #-16]!
        stp     x0, x2, [sp], #16
        ldp     x0, x2, [sp, #-16]!
        ldp     x0, x2, [sp], #16
        ldpsw   x0, x2, [x1]
        ldpsw   x0, x2, [x1, #-4]
        ldpsw   x0, x2, [x1, #4]!
        ldpsw   x0, x2, [x1], #4

// Exclusive, ordered, atomic
        stxrb   w5, w0, [sp]
        stxrh   w5, w0, [sp]
        stxr    w5, w0, [sp]
        stxr    w5, x0, [sp]
        stxp   w5, w0, w2, [x3]
        stxp   w5, x0, x2, [x3]
        stlxrb   w5, w0, [sp]
        stlxrh   w5, w0, [sp]
        stlxr    w5, w0, [sp]
        stlxr    w5, x0, [sp]
        stlxp   w5, w0, w2, [x3]
        stlxp   w5, x0, x2, [x3]
        ldxrb   w0, [sp, #0]
        ldxrh   w0, [sp, #0]
        ldxr    w0, [sp, #0]
        ldxr    x0, [sp, #0]
        ldxp   w0, w2, [x3]
        ldxp   x0, x2, [x3]
        ldaxrb   w0, [sp, #0]
        ldaxrh   w0, [sp, #0]
        ldaxr    w0, [sp, #0]
        ldaxr    x0, [sp, #0]
        ldaxp   w0, w2, [x3]
        ldaxp   x0, x2, [x3]
        stlrb   w0, [sp]
        stlrh   w0, [sp]
        stlr    w0, [sp]
        stlr    x0, [sp]
        stllrb  w0, [sp]
        stllrh  w0, [sp]
        stllr   w0, [sp]
        stllr   x0, [sp]
        ldarb   w0, [sp]
        ldarh   w0, [sp]
        ldar    w0, [sp]
        ldar    x0, [sp]
        ldlarb  w0, [sp]
        ldlarh  w0, [sp]
        ldlar   w0, [sp]
        ldlar   x0, [sp]
        ldaprb  w0, [sp]
        ldaprh  w0, [sp]
        ldapr   w0, [sp]
        ldapr   x0, [sp]
        casb     w0, w1, [sp]
        swpb     w0, wzr, [x2]
        cash     w0, w1, [sp]
        swph     w0, wzr, [x2]
        cas      w0, w1, [sp]
        swp      w0, wzr, [x2]
        cas      x0, x1, [sp]
        swp      x0, xzr, [x2]
        casp    w0, w1, w2, w3, [sp]
        casp    x0, x1, x2, x3, [sp]
        ldaddb    w0, w1, [sp]
        ldaddh    w0, w1, [sp]
        ldadd     w0, w1, [sp]
        ldadd     x0, x1, [sp]
        staddb    w0, [x1]
        staddh    w0, [x1]
        stadd     w0, [x1]
        stadd     x0, [x1]
        ldclrb    w0, w1, [sp]
        ldclrh    w0, w1, [sp]
        ldclr     w0, w1, [sp]
        ldclr     x0, x1, [sp]
        stclrb    w0, [x1]
        stclrh    w0, [x1]
        stclr     w0, [x1]
        stclr     x0, [x1]
        ldeorb    w0, w1, [sp]
        ldeorh    w0, w1, [sp]
        ldeor     w0, w1, [sp]
        ldeor     x0, x1, [sp]
        steorb    w0, [x1]
        steorh    w0, [x1]
        steor     w0, [x1]
        steor     x0, [x1]
        ldsetb    w0, w1, [sp]
        ldseth    w0, w1, [sp]
        ldset     w0, w1, [sp]
        ldset     x0, x1, [sp]
        stsetb    w0, [x1]
        stseth    w0, [x1]
        stset     w0, [x1]
        stset     x0, [x1]
        ldsmaxb   w0, w1, [sp]
        ldsmaxh   w0, w1, [sp]
        ldsmax    w0, w1, [sp]
        ldsmax    x0, x1, [sp]
        stsmaxb   w0, [x1]
        stsmaxh   w0, [x1]
        stsmax    w0, [x1]
        stsmax    x0, [x1]
        ldsminb   w0, w1, [sp]
        ldsminh   w0, w1, [sp]
        ldsmin    w0, w1, [sp]
        ldsmin    x0, x1, [sp]
        stsminb   w0, [x1]
        stsminh   w0, [x1]
        stsmin    w0, [x1]
        stsmin    x0, [x1]
        ldumaxb   w0, w1, [sp]
        ldumaxh   w0, w1, [sp]
        ldumax    w0, w1, [sp]
        ldumax    x0, x1, [sp]
        stumaxb   w0, [x1]
        stumaxh   w0, [x1]
        stumax    w0, [x1]
        stumax    x0, [x1]
        lduminb   w0, w1, [sp]
        lduminh   w0, w1, [sp]
        ldumin    w0, w1, [sp]
        ldumin    x0, x1, [sp]
        stuminb   w0, [x1]
        stuminh   w0, [x1]
        stumin    w0, [x1]
        stumin    x0, [x1]
        casab    w0, w1, [sp]
        swpab    w0, wzr, [x2]
        casah    w0, w1, [sp]
        swpah    w0, wzr, [x2]
        casa     w0, w1, [sp]
        swpa     w0, wzr, [x2]
        casa     x0, x1, [sp]
        swpa     x0, xzr, [x2]
        caspa   w0, w1, w2, w3, [sp]
        caspa   x0, x1, x2, x3, [sp]
        ldaddab   w0, w1, [sp]
        ldaddah   w0, w1, [sp]
        ldadda    w0, w1, [sp]
        ldadda    x0, x1, [sp]
        ldclrab   w0, w1, [sp]
        ldclrah   w0, w1, [sp]
        ldclra    w0, w1, [sp]
        ldclra    x0, x1, [sp]
        ldeorab   w0, w1, [sp]
        ldeorah   w0, w1, [sp]
        ldeora    w0, w1, [sp]
        ldeora    x0, x1, [sp]
        ldsetab   w0, w1, [sp]
        ldsetah   w0, w1, [sp]
        ldseta    w0, w1, [sp]
        ldseta    x0, x1, [sp]
        ldsmaxab  w0, w1, [sp]
        ldsmaxah  w0, w1, [sp]
        ldsmaxa   w0, w1, [sp]
        ldsmaxa   x0, x1, [sp]
        ldsminab  w0, w1, [sp]
        ldsminah  w0, w1, [sp]
        ldsmina   w0, w1, [sp]
        ldsmina   x0, x1, [sp]
        ldumaxab  w0, w1, [sp]
        ldumaxah  w0, w1, [sp]
        ldumaxa   w0, w1, [sp]
        ldumaxa   x0, x1, [sp]
        lduminab  w0, w1, [sp]
        lduminah  w0, w1, [sp]
        ldumina   w0, w1, [sp]
        ldumina   x0, x1, [sp]
        caslb    w0, w1, [sp]
        swplb    w0, wzr, [x2]
        caslh    w0, w1, [sp]
        swplh    w0, wzr, [x2]
        casl     w0, w1, [sp]
        swpl     w0, wzr, [x2]
        casl     x0, x1, [sp]
        swpl     x0, xzr, [x2]
        caspl   w0, w1, w2, w3, [sp]
        caspl   x0, x1, x2, x3, [sp]
        ldaddlb   w0, w1, [sp]
        ldaddlh   w0, w1, [sp]
        ldaddl    w0, w1, [sp]
        ldaddl    x0, x1, [sp]
        staddlb   w0, [x1]
        staddlh   w0, [x1]
        staddl    w0, [x1]
        staddl    x0, [x1]
        ldclrlb   w0, w1, [sp]
        ldclrlh   w0, w1, [sp]
        ldclrl    w0, w1, [sp]
        ldclrl    x0, x1, [sp]
        stclrlb   w0, [x1]
        stclrlh   w0, [x1]
        stclrl    w0, [x1]
        stclrl    x0, [x1]
        ldeorlb   w0, w1, [sp]
        ldeorlh   w0, w1, [sp]
        ldeorl    w0, w1, [sp]
        ldeorl    x0, x1, [sp]
        steorlb   w0, [x1]
        steorlh   w0, [x1]
        steorl    w0, [x1]
        steorl    x0, [x1]
        ldsetlb   w0, w1, [sp]
        ldsetlh   w0, w1, [sp]
        ldsetl    w0, w1, [sp]
        ldsetl    x0, x1, [sp]
        stsetlb   w0, [x1]
        stsetlh   w0, [x1]
        stsetl    w0, [x1]
        stsetl    x0, [x1]
        ldsmaxlb  w0, w1, [sp]
        ldsmaxlh  w0, w1, [sp]
        ldsmaxl   w0, w1, [sp]
        ldsmaxl   x0, x1, [sp]
        stsmaxlb  w0, [x1]
        stsmaxlh  w0, [x1]
        stsmaxl   w0, [x1]
        stsmaxl   x0, [x1]
        ldsminlb  w0, w1, [sp]
        ldsminlh  w0, w1, [sp]
        ldsminl   w0, w1, [sp]
        ldsminl   x0, x1, [sp]
        stsminlb  w0, [x1]
        stsminlh  w0, [x1]
        stsminl   w0, [x1]
        stsminl   x0, [x1]
        ldumaxlb  w0, w1, [sp]
        ldumaxlh  w0, w1, [sp]
        ldumaxl   w0, w1, [sp]
        ldumaxl   x0, x1, [sp]
        stumaxlb  w0, [x1]
        stumaxlh  w0, [x1]
        stumaxl   w0, [x1]
        stumaxl   x0, [x1]
        lduminlb  w0, w1, [sp]
        lduminlh  w0, w1, [sp]
        lduminl   w0, w1, [sp]
        lduminl   x0, x1, [sp]
        stuminlb  w0, [x1]
        stuminlh  w0, [x1]
        stuminl   w0, [x1]
        stuminl   x0, [x1]
        casalb   w0, w1, [sp]
        swpalb   w0, wzr, [x2]
        casalh   w0, w1, [sp]
        swpalh   w0, wzr, [x2]
        casal    w0, w1, [sp]
        swpal    w0, wzr, [x2]
        casal    x0, x1, [sp]
        swpal    x0, xzr, [x2]
        caspal  w0, w1, w2, w3, [sp]
        caspal  x0, x1, x2, x3, [sp]
        ldaddalb  w0, w1, [sp]
        ldaddalh  w0, w1, [sp]
        ldaddal   w0, w1, [sp]
        ldaddal   x0, x1, [sp]
        ldclralb  w0, w1, [sp]
        ldclralh  w0, w1, [sp]
        ldclral   w0, w1, [sp]
        ldclral   x0, x1, [sp]
        ldeoralb  w0, w1, [sp]
        ldeoralh  w0, w1, [sp]
        ldeoral   w0, w1, [sp]
        ldeoral   x0, x1, [sp]
        ldsetalb  w0, w1, [sp]
        ldsetalh  w0, w1, [sp]
        ldsetal   w0, w1, [sp]
        ldsetal   x0, x1, [sp]
        ldsmaxalb w0, w1, [sp]
        ldsmaxalh w0, w1, [sp]
        ldsmaxal  w0, w1, [sp]
        ldsmaxal  x0, x1, [sp]
        ldsminalb w0, w1, [sp]
        ldsminalh w0, w1, [sp]
        ldsminal  w0, w1, [sp]
        ldsminal  x0, x1, [sp]
        ldumaxalb w0, w1, [sp]
        ldumaxalh w0, w1, [sp]
        ldumaxal  w0, w1, [sp]
        ldumaxal  x0, x1, [sp]
        lduminalb w0, w1, [sp]
        lduminalh w0, w1, [sp]
        lduminal  w0, w1, [sp]
        lduminal  x0, x1, [sp]

// System
        udf     #0
        udf     #65535
        svc     #0
        svc     1
        brk     #0xf000
        hlt     #0
        hint    #0
        hint    #127
        nop
        yield
        wfe
        wfi
        sev
        sevl
        dgh
        xpaclri
        pacia1716
        pacib1716
        autia1716
        autib1716
        esb
        csdb
        paciaz
        paciasp
        pacibz
        pacibsp
        autiaz
        autiasp
        autibz
        autibsp
        bti
        psb     csync
        tsb     csync
        bti     c
        bti     j
        bti     jc
        clrex
        clrex   #3
        isb
        isb     sy
        isb     #3
        ssbb
        pssbb
        sb
        cfinv
        xaflag
        axflag
        dmb     sy
        dsb     sy
        dmb     st
        dsb     st
        dmb     ld
        dsb     ld
        dmb     ish
        dsb     ish
        dmb     ishst
        dsb     ishst
        dmb     ishld
        dsb     ishld
        dmb     nsh
        dsb     nsh
        dmb     nshst
        dsb     nshst
        dmb     nshld
        dsb     nshld
        dmb     osh
        dsb     osh
        dmb     oshst
        dsb     oshst
        dmb     oshld
        dsb     oshld
        dmb     #12
        dsb     #8
        mrs     x0, nzcv
        mrs     x0, fpcr
        mrs     x0, fpsr
        mrs     x0, tpidr_el0
        mrs     x0, tpidrro_el0
        mrs     x0, ctr_el0
        mrs     x0, dczid_el0
        mrs     x0, cntfrq_el0
        mrs     x0, cntvct_el0
        mrs     x0, midr_el1
        mrs     x0, mpidr_el1
        mrs     x0, revidr_el1
        mrs     x1, id_isar0_el1
        mrs     x1, id_isar1_el1
        mrs     x1, id_isar2_el1
        mrs     x1, id_isar3_el1
        mrs     x1, id_isar4_el1
        mrs     x1, id_isar5_el1
        mrs     x1, id_mmfr4_el1
        mrs     x1, id_isar6_el1
        mrs     x1, mvfr0_el1
        mrs     x1, mvfr1_el1
        mrs     x1, mvfr2_el1
        mrs     x1, id_pfr2_el1
        mrs     x1, id_dfr1_el1
        mrs     x1, id_mmfr5_el1
        mrs     x1, id_aa64pfr0_el1
        mrs     x1, id_aa64pfr1_el1
        mrs     x1, id_aa64dfr0_el1
        mrs     x1, id_aa64dfr1_el1
        mrs     x1, id_aa64afr0_el1
        mrs     x1, id_aa64afr1_el1
        mrs     x1, id_aa64isar0_el1
        mrs     x1, id_aa64isar1_el1
        mrs     x1, id_aa64isar2_el1
        mrs     x1, id_aa64mmfr0_el1
        mrs     x1, id_aa64mmfr1_el1
        mrs     x1, id_aa64mmfr2_el1
        mrs     x2, s3_3_c4_c2_0
        mrs     x2, s3_3_c4_c4_0
        mrs     x2, s3_3_c13_c0_2
        mrs     x2, s3_3_c0_c0_1
        mrs     x2, s3_3_c14_c0_2
        mrs     x2, s3_0_c0_c0_0
        mrs     x2, s3_0_c0_c7_7
        msr     nzcv, xzr
        msr     dit, #1
        msr     ssbs, #0
        mrs     x3, dit
        msr     ssbs, x4
        msr     fpcr, xzr
        msr     fpsr, xzr
        msr     tpidr_el0, xzr
        msr     s3_3_c4_c2_0, xzr
        msr     S3_3_C13_C0_2, xzr
        dc      zva, x3
        dc      cvac, x3
        dc      cvau, x3
        dc      civac, x3
        ic      ivau, x3
        sys     #3, c7, c5, #1, x3
        sys     3, C7, C4, 1, x3

// Advanced SIMD: registers of the same arrangement, or single elements
        shadd   v19.8b, v29.8b, v21.8b
        uhadd   v24.4s, v31.4s, v31.4s
        srhadd  v18.2s, v0.2s, v31.2s
        urhadd  v29.8h, v31.8h, v19.8h
        shsub   v31.4h, v1.4h, v3.4h
        uhsub   v0.16b, v31.16b, v12.16b
        sabd    v20.8b, v2.8b, v30.8b
        uabd    v31.4s, v31.4s, v31.4s
        saba    v0.2s, v29.2s, v15.2s
        uaba    v16.8h, v0.8h, v23.8h
        sqadd   v5.16b, v0.16b, v23.16b
        uqadd   v7.2d, v0.2d, v3.2d
        sqsub   v18.2s, v31.2s, v1.2s
        uqsub   v29.4h, v0.4h, v10.4h
        sqadd   s4, s17, s8
        uqadd   d0, d14, d0
        sqsub   b24, b0, b0
        uqsub   h0, h24, h13
        cmgt    v20.2d, v1.2d, v11.2d
        cmge    v1.2s, v11.2s, v2.2s
        cmhi    v0.4h, v24.4h, v18.4h
        cmhs    v25.8b, v18.8b, v21.8b
        cmtst   v27.4s, v8.4s, v31.4s
        cmeq    v31.8h, v8.8h, v28.8h
        cmgt    d0, d0, d22
        cmge    d12, d1, d4
        cmhi    d4, d3, d18
        cmhs    d0, d16, d31
        cmtst   d31, d0, d31
        cmeq    d23, d2, d6
        sshl    v19.8h, v9.8h, v14.8h
        srshl   v14.16b, v13.16b, v0.16b
        sqshl   v5.2d, v25.2d, v1.2d
        sqrshl  v24.2s, v1.2s, v25.2s
        ushl    v30.4h, v29.4h, v11.4h
        urshl   v0.8b, v21.8b, v0.8b
        uqshl   v2.4s, v10.4s, v31.4s
        uqrshl  v31.8h, v27.8h, v24.8h
        sshl    d9, d31, d31
        srshl   d11, d14, d10
        ushl    d3, d14, d14
        urshl   d16, d27, d28
        sqshl   s0, s18, s3
        sqrshl  d0, d10, d1
        uqshl   b0, b3, b31
        uqrshl  h2, h15, h3
        smax    v0.4h, v24.4h, v0.4h
        smin    v5.16b, v0.16b, v23.16b
        umax    v2.8b, v5.8b, v0.8b
        umin    v0.4s, v0.4s, v31.4s
        smaxp   v0.2s, v31.2s, v2.2s
        sminp   v0.8h, v29.8h, v0.8h
        umaxp   v21.4h, v4.4h, v7.4h
        uminp   v27.16b, v1.16b, v0.16b
        add     v0.2s, v27.2s, v2.2s
        sub     v15.4h, v26.4h, v4.4h
        add     d0, d0, d26
        sub     d21, d14, d0
        mla     v26.4h, v0.4h, v2.4h
        mls     v8.16b, v1.16b, v28.16b
        mul     v3.8b, v11.8b, v0.8b
        pmul    v0.16b, v0.16b, v6.16b
        addp    v18.4h, v12.4h, v0.4h
        sqdmulh v21.4s, v17.4s, v0.4s
        sqrdmulh v31.4h, v0.4h, v30.4h
        sqdmulh s16, s5, s25
        sqrdmulh h18, h4, h24
        sqrdmlah v0.4h, v1.4h, v31.4h
        sqrdmlsh v0.4s, v1.4s, v31.4s
        sqrdmlah h0, h1, h31
        sqrdmlsh s0, s1, s31
        and     v31.16b, v8.16b, v17.16b
        bic     v1.8b, v20.8b, v0.8b
        orr     v2.16b, v2.16b, v5.16b
        orn     v28.8b, v0.8b, v24.8b
        eor     v31.16b, v26.16b, v0.16b
        bsl     v31.8b, v0.8b, v24.8b
        bit     v5.16b, v31.16b, v0.16b
        bif     v15.8b, v30.8b, v19.8b
        mov     v0.8b, v31.8b
        mov     v0.16b, v1.16b
        orr     v0.16b, v1.16b, v1.16b
        ADD     V0.16B, V1.16B, V31.16B
        add     V0.8b, v1.8B, v2.8b

// Advanced SIMD: arrangements that differ
        saddl   v9.8h, v1.8b, v3.8b
        saddl2  v31.2d, v31.4s, v31.4s
        ssubl   v13.4s, v11.4h, v12.4h
        ssubl2  v22.8h, v8.16b, v31.16b
        uaddl   v27.2d, v0.2s, v10.2s
        uaddl2  v14.4s, v0.8h, v0.8h
        usubl   v29.8h, v3.8b, v27.8b
        usubl2  v0.2d, v1.4s, v31.4s
        saddw   v29.4s, v1.4s, v15.4h
        saddw2  v23.8h, v31.8h, v21.16b
        ssubw   v3.2d, v18.2d, v19.2s
        ssubw2  v12.4s, v31.4s, v4.8h
        uaddw   v31.8h, v2.8h, v2.8b
        uaddw2  v31.2d, v0.2d, v11.4s
        usubw   v2.4s, v22.4s, v1.4h
        usubw2  v0.8h, v2.8h, v27.16b
        addhn   v0.2s, v14.2d, v31.2d
        addhn2  v1.8h, v9.4s, v31.4s
        subhn   v1.8b, v12.8h, v17.8h
        subhn2  v14.4s, v31.2d, v5.2d
        raddhn  v28.4h, v24.4s, v3.4s
        raddhn2 v0.16b, v5.8h, v14.8h
        rsubhn  v28.2s, v14.2d, v13.2d
        rsubhn2 v27.8h, v27.4s, v17.4s
        sabal   v31.8h, v2.8b, v0.8b
        sabal2  v5.2d, v12.4s, v22.4s
        uabal   v2.4s, v31.4h, v24.4h
        uabal2  v30.8h, v0.16b, v0.16b
        sabdl   v31.2d, v4.2s, v26.2s
        sabdl2  v24.4s, v4.8h, v3.8h
        uabdl   v31.8h, v0.8b, v3.8b
        uabdl2  v6.2d, v4.4s, v21.4s
        smlal   v31.4s, v11.4h, v25.4h
        smlal2  v26.8h, v29.16b, v26.16b
        smlsl   v31.2d, v20.2s, v0.2s
        smlsl2  v0.4s, v7.8h, v21.8h
        smull   v31.8h, v14.8b, v14.8b
        smull2  v0.2d, v7.4s, v2.4s
        umlal   v11.4s, v0.4h, v0.4h
        umlal2  v31.8h, v29.16b, v0.16b
        umlsl   v3.2d, v6.2s, v31.2s
        umlsl2  v31.4s, v2.8h, v11.8h
        umull   v0.8h, v0.8b, v1.8b
        umull2  v31.2d, v31.4s, v19.4s
        sqdmlal v6.2d, v0.2s, v21.2s
        sqdmlal2 v23.4s, v0.8h, v25.8h
        sqdmlsl v7.2d, v29.2s, v19.2s
        sqdmlsl2 v13.4s, v2.8h, v0.8h
        sqdmull v22.2d, v31.2s, v19.2s
        sqdmull2 v31.4s, v0.8h, v1.8h
        sqdmlal d12, s22, s26
        sqdmlsl s0, h3, h31
        sqdmull d31, s30, s26
        pmull   v18.8h, v11.8b, v0.8b
        pmull2  v21.8h, v29.16b, v6.16b
        pmull   v13.1q, v9.1d, v18.1d
        pmull2  v31.1q, v24.2d, v8.2d

// Advanced SIMD: one operand
        rev64   v22.8b, v7.8b
        rev32   v2.16b, v0.16b
        rev16   v24.8b, v31.8b
        saddlp  v4.4s, v31.8h
        uaddlp  v23.2s, v31.4h
        sadalp  v0.8h, v7.16b
        uadalp  v23.4h, v11.8b
        suqadd  v19.4h, v1.4h
        usqadd  v26.8b, v16.8b
        suqadd  h18, h25
        usqadd  s31, s31
        cls     v10.16b, v2.16b
        clz     v8.8b, v19.8b
        cnt     v13.16b, v1.16b
        mvn     v2.8b, v2.8b
        rbit    v11.16b, v0.16b
        sqabs   v31.4s, v7.4s
        sqneg   v23.8h, v10.8h
        abs     v31.16b, v13.16b
        neg     v1.2d, v2.2d
        sqabs   b29, b17
        sqneg   h0, h30
        abs     d9, d0
        neg     d0, d0
        cmgt    v5.8h, v22.8h, #0
        cmge    v31.16b, v31.16b, #0
        cmeq    v31.2d, v31.2d, #0
        cmle    v10.2s, v22.2s, #0
        cmlt    v5.4h, v11.4h, #0
        cmgt    d7, d2, #0
        cmge    d22, d14, #0
        cmeq    d13, d15, #0
        cmle    d0, d29, #0
        cmlt    d25, d5, #0
        xtn     v21.2s, v3.2d
        xtn2    v31.8h, v28.4s
        shll    v29.8h, v27.8b, #8
        shll2   v27.2d, v19.4s, #32
        sqxtn   v31.4h, v0.4s
        sqxtn2  v31.16b, v4.8h
        uqxtn   v1.2s, v0.2d
        uqxtn2  v0.8h, v7.4s
        sqxtun  v0.8b, v0.8h
        sqxtun2 v21.4s, v31.2d
        sqxtn   h31, s14
        uqxtn   b21, h2
        sqxtun  s21, d16
        not     v0.16b, v31.16b
        not     v0.8b, v1.8b
        cmgt    v0.2d, v1.2d, 0
        cmlt    d0, d1, 0
        shll    v0.4s, v1.4h, 16

// Advanced SIMD: all elements
        saddlv  h21, v15.8b
        uaddlv  h2, v16.8b
        smaxv   b25, v0.8b
        umaxv   b24, v16.8b
        sminv   b20, v10.8b
        uminv   b1, v2.8b
        addv    b0, v31.8b
        addp    d12, v2.2d
        addv    s0, v1.4s
        addv    h31, v1.8h
        smaxv   b0, v1.16b
        uaddlv  d0, v1.4s
        saddlv  s0, v1.4h
        saddlv  h0, v1.16b

// Advanced SIMD: copies
        dup     v28.2s, v31.s[0]
        mov     b22, v31.b[7]
        dup     v1.8b, w1
        mov     v3.s[2], w0
        mov     v5.d[1], v1.d[1]
        umov    w25, v31.b[0]
        mov     xzr, v2.d[0]
        smov    wzr, v30.b[0]
        dup     v0.16b, v1.b[15]
        dup     v0.8h, v1.h[3+4]
        dup     v0.4s, v1.4s[3]
        dup     v0.2d, v31.d[1]
        dup     v0.2d, xzr
        dup     v0.4s, wzr
        dup     v0.8h, w1
        dup     b0, v1.b[15]
        dup     d0, v1.d[1]
        mov     h0, v1.h[7]
        mov     s31, v1.s[3]
        ins     v0.b[15], w1
        ins     v0.d[1], xzr
        mov     v0.h[7], wzr
        mov     v0.d[0], x1
        ins     v0.b[15], v1.b[0]
        ins     v0.s[3], v31.s[2]
        mov     v0.h[1], v1.h[7]
        mov     v0.8b[1], v1.16b[7]
        umov    w0, v1.b[15]
        umov    w0, v1.h[7]
        umov    w0, v1.s[3]
        umov    x0, v1.d[1]
        mov     w0, v1.s[2]
        mov     x0, v1.d[1]
        smov    w0, v1.h[7]
        smov    x0, v1.b[15]
        smov    x0, v1.s[3]

// Advanced SIMD: permutations
        uzp1    v1.4h, v0.4h, v0.4h
        trn1    v3.8b, v23.8b, v1.8b
        zip1    v23.4s, v16.4s, v24.4s
        uzp2    v3.8h, v19.8h, v11.8h
        trn2    v20.16b, v6.16b, v18.16b
        zip2    v27.2d, v9.2d, v12.2d
        ext     v30.16b, v1.16b, v31.16b, #1
        tbl     v12.8b, {v29.16b, v30.16b}, v10.8b
        tbl     v8.16b, {v3.16b-v6.16b}, v31.16b
        tbx     v1.8b, {v5.16b}, v31.8b
        tbx     v0.16b, {v3.16b-v5.16b}, v3.16b
        ext     v0.8b, v1.8b, v2.8b, 7
        ext     v0.16b, v1.16b, v2.16b, #15
        tbl     v0.8b, {v31.16b, v0.16b}, v2.8b
        tbl     v0.16b, {v30.16b, v31.16b, v0.16b, v1.16b}, v2.16b
        tbl     v0.16b, {v1.16b - v2.16b}, v2.16b
        tbx     v0.16b, {v1.16b-v1.16b}, v2.16b

// Advanced SIMD: modified immediates
        movi    v30.8b, #51
        movi    v7.4s, #32, lsl #8
        mvni    v3.2s, #39
        mvni    v3.8h, #191, lsl #8
        movi    v0.2s, #220, msl #16
        mvni    v12.4s, #250, msl #8
        orr     v14.4s, #33, lsl #8
        bic     v0.4s, #59, lsl #8
        orr     v31.4h, #12
        movi    d28, #0xffff00ff000000
        movi    v21.2d, #0xff000000ffff
        fmov    v22.2s, #0.484375
        movi    v0.16b, #-1
        movi    v0.8b, 255
        movi    v0.4h, #1
        movi    v0.8h, #0x12, lsl 8
        movi    v0.2s, #1, lsl #0
        movi    v0.4s, #-128, lsl #24
        movi    v0.2d, #0
        movi    v0.2d, #-1
        movi    v0.2d, 0xff00ff00ff00ff00
        movi    d0, #~0xff
        bic     v0.8h, #255, lsl #8
        orr     v0.2s, #'a', lsl #16
        fmov    v0.4s, #1.0
        fmov    v0.4s, 1
        fmov    v0.4s, #0x3f800000
        fmov    v0.2s, #-0.125
        fmov    v0.4s, #-.125
        fmov    v0.4s, #1.25e+1
        fmov    v0.2d, #31
        fmov    v0.2d, #0x3ff0000000000000
        fmov    v0.2d, #-3.1e1
        fmov    v0.4h, #1.9375
        fmov    v0.8h, #0.5

// Advanced SIMD: shifts by a number
        sshr    v11.4s, v25.4s, #1
        ssra    v31.8h, v0.8h, #11
        srshr   v21.16b, v8.16b, #6
        srsra   v31.2d, v4.2d, #32
        ushr    v9.2s, v31.2s, #28
        usra    v0.4h, v0.4h, #8
        urshr   v1.8b, v3.8b, #2
        ursra   v22.4s, v0.4s, #31
        sshr    d31, d21, #64
        ssra    d3, d31, #19
        srshr   d18, d30, #64
        srsra   d13, d31, #61
        ushr    d22, d14, #1
        usra    d29, d28, #14
        urshr   d31, d0, #1
        ursra   d27, d31, #7
        shl     v27.16b, v30.16b, #4
        sli     v13.2d, v31.2d, #0
        sri     v0.2s, v25.2s, #16
        shl     d6, d30, #63
        sli     d28, d31, #37
        sri     d12, d9, #64
        sqshl   v22.8h, v31.8h, #15
        uqshl   v0.16b, v0.16b, #5
        sqshlu  v9.2d, v0.2d, #11
        sqshl   d2, d3, #33
        uqshl   b14, b27, #3
        sqshlu  h29, h1, #2
        shrn    v4.8b, v31.8h, #8
        shrn2   v8.4s, v28.2d, #32
        rshrn   v17.4h, v20.4s, #12
        rshrn2  v28.16b, v5.8h, #8
        sqshrn  v3.2s, v5.2d, #31
        sqshrn2 v16.8h, v1.4s, #7
        sqrshrn v0.8b, v0.8h, #7
        sqrshrn2 v0.4s, v8.2d, #27
        uqshrn  v29.4h, v31.4s, #16
        uqshrn2 v0.16b, v2.8h, #7
        uqrshrn v1.2s, v1.2d, #17
        uqrshrn2 v1.8h, v3.4s, #2
        sqshrun v3.8b, v31.8h, #8
        sqshrun2 v1.4s, v10.2d, #28
        sqrshrun v22.4h, v31.4s, #10
        sqrshrun2 v31.16b, v25.8h, #1
        sqshrn  s0, d16, #8
        sqrshrn h1, s13, #1
        uqshrn  b3, h31, #6
        uqrshrn s0, d28, #31
        sqshrun h1, s20, #15
        sqrshrun b6, h23, #5
        sshll   v2.8h, v31.8b, #7
        sshll2  v12.4s, v31.8h, #7
        sxtl    v21.4s, v31.4h
        ushll   v31.2d, v12.2s, #14
        uxtl2   v24.8h, v31.16b
        ushll2  v3.2d, v1.4s, #19
        sshr    v0.16b, v1.16b, #8
        sshr    v0.16b, v1.16b, 1
        shl     v0.4h, v1.4h, 0
        shl     v0.8b, v1.8b, #7
        ushr    v0.2d, v1.2d, #64
        shrn    v0.2s, v1.2d, #1
        sxtl    v0.8h, v1.8b
        sxtl2   v0.2d, v1.4s
        uxtl    v0.4s, v1.4h
        uxtl2   v0.8h, v31.16b
        sshll   v0.8h, v1.8b, #0

// Advanced SIMD: by one element
        mla     v25.2s, v6.2s, v31.s[2]
        mls     v0.4s, v3.4s, v8.s[3]
        mul     v25.4h, v23.4h, v15.h[2]
        smlal   v0.2d, v8.2s, v31.s[0]
        smlal2  v11.4s, v10.8h, v10.h[3]
        smlsl   v8.2d, v14.2s, v30.s[1]
        smlsl2  v27.4s, v0.8h, v3.h[2]
        smull   v16.2d, v0.2s, v31.s[1]
        smull2  v31.4s, v1.8h, v1.h[3]
        umlal   v0.2d, v17.2s, v0.s[0]
        umlal2  v14.4s, v0.8h, v0.h[4]
        umlsl   v17.2d, v0.2s, v13.s[0]
        umlsl2  v5.4s, v31.8h, v15.h[7]
        umull   v10.2d, v0.2s, v21.s[2]
        umull2  v25.4s, v11.8h, v14.h[2]
        sqdmlal v11.2d, v19.2s, v0.s[2]
        sqdmlal2 v1.4s, v16.8h, v9.h[5]
        sqdmlsl v31.2d, v1.2s, v23.s[2]
        sqdmlsl2 v25.4s, v11.8h, v6.h[0]
        sqdmull v2.2d, v21.2s, v0.s[3]
        sqdmull2 v3.4s, v31.8h, v3.h[0]
        sqdmlal d20, s0, v31.s[1]
        sqdmlsl s19, h31, v9.h[3]
        sqdmull d26, s31, v3.s[2]
        sqdmulh v31.2s, v22.2s, v27.s[2]
        sqrdmulh v14.4s, v16.4s, v31.s[1]
        sqdmulh h25, h16, v15.h[6]
        sqrdmulh s31, s31, v15.s[2]
        sqrdmlah v0.8h, v1.8h, v15.h[7]
        sqrdmlsh v0.2s, v1.2s, v31.s[3]
        sqrdmlah s0, s1, v31.s[0]
        sqrdmlsh h0, h1, v15.h[1]
        mul     v0.8h, v1.8h, v15.h[7]
        mul     v0.2s, v1.2s, v31.s[3]
        mul     v0.4h, v1.4h, v15.4h[7]

// Loads and stores of vector registers
        ldr     s0, start
        ldr     d31, end
        ldr     q0, start
        ldr     b0, [x1]
        ldr     b0, [x1, #4095]
        ldr     h0, [sp, 2]
        ldr     h0, [x1, #8190]
        ldr     s31, [x1, #16380]
        ldr     d0, [x1, #0x7ff8]
        ldr     q0, [sp, #65520]
        ldr     Q0, [X1, 16]
        str     b0, [x1, #1]
        str     h0, [x1, #2]
        str     s0, [x1, #4]
        str     d0, [x1, #8]
        str     q31, [sp]
        ldr     q0, [x1, #1]
        ldr     q0, [x1, #-256]
        str     h0, [x1, #255]
        ldur    b0, [x1]
        ldur    q0, [x1, #-256]
        stur    h0, [sp, 255]
        stur    s0, [x1, #1]
        stur    d0, [x1, #1]
        ldr     b0, [x1], #1
        ldr     q0, [sp], #-256
        str     d0, [x1], 255
        str     s0, [x1, #255]!
        ldr     h0, [x1, #-256]!
        ldr     q0, [sp, 16]!
        ldr     b0, [x1, x2]
        ldr     b0, [x1, x2, lsl #0]
        ldr     b0, [x1, w2, uxtw]
        ldr     b0, [x1, w2, sxtw #0]
        ldr     h0, [x1, x2, lsl #1]
        str     s0, [x1, w2, uxtw #2]
        str     d0, [sp, x2, sxtx #3]
        ldr     q0, [x1, x2, lsl #4]
        ldr     q0, [x1, xzr]
        str     q0, [x1, w2, sxtw #4]
        ldnp    s0, s1, [x2]
        ldnp    d0, d1, [x2, #-512]
        stnp    q0, q31, [sp, #1008]
        ldp     s0, s1, [x2]
        ldp     d0, d1, [x2, #504]
        ldp     q0, q1, [sp, #-1024]
        stp     q30, q31, [x2, 16]
        stp     s0, s1, [x2], #252
        ldp     q0, q1, [x2], #1008
        stp     d8, d9, [sp, #-16]!
        ldp     q0, q1, [x2, 32]!

// Structures
        ld1     {v0.8b}, [x1], #8
        ld1     {v5.16b}, [sp]
        ld1     {v31.4h}, [x30], 8
        ld1     {v30.8h}, [x2], x5
        ld1     {v0.2s}, [x1], #8
        ld1     {v5.4s}, [sp]
        ld1     {v31.1d}, [x30], 8
        ld1     {v30.2d}, [x2], x5
        ld1     {v0.8b-v1.8b}, [x1], x5
        ld1     {v5.16b, v6.16b}, [sp], #32
        ld1     {v31.4h,v0.4h}, [x30]
        ld1     {v30.8h, v31.8h}, [x2], 32
        ld1     {v0.2s-v1.2s}, [x1], x5
        ld1     {v5.4s, v6.4s}, [sp], #32
        ld1     {v31.1d,v0.1d}, [x30]
        ld1     {v30.2d, v31.2d}, [x2], 32
        ld1     {v0.8b-v2.8b}, [x1], 24
        ld1     {v5.16b, v6.16b, v7.16b}, [sp], x5
        ld1     {v31.4h,v0.4h,v1.4h}, [x30], #24
        ld1     {v30.8h, v31.8h, v0.8h}, [x2]
        ld1     {v0.2s-v2.2s}, [x1], 24
        ld1     {v5.4s, v6.4s, v7.4s}, [sp], x5
        ld1     {v31.1d,v0.1d,v1.1d}, [x30], #24
        ld1     {v30.2d, v31.2d, v0.2d}, [x2]
        ld1     {v0.8b-v3.8b}, [x1]
        ld1     {v5.16b, v6.16b, v7.16b, v8.16b}, [sp], 64
        ld1     {v31.4h,v0.4h,v1.4h,v2.4h}, [x30], x5
        ld1     {v30.8h, v31.8h, v0.8h, v1.8h}, [x2], #64
        ld1     {v0.2s-v3.2s}, [x1]
        ld1     {v5.4s, v6.4s, v7.4s, v8.4s}, [sp], 64
        ld1     {v31.1d,v0.1d,v1.1d,v2.1d}, [x30], x5
        ld1     {v30.2d, v31.2d, v0.2d, v1.2d}, [x2], #64
        ld2     {v0.8b-v1.8b}, [x1], x5
        ld2     {v5.16b, v6.16b}, [sp], #32
        ld2     {v31.4h,v0.4h}, [x30]
        ld2     {v30.8h, v31.8h}, [x2], 32
        ld2     {v0.2s-v1.2s}, [x1], x5
        ld2     {v5.4s, v6.4s}, [sp], #32
        ld2     {v31.2d,v0.2d}, [x30]
        ld3     {v30.8b, v31.8b, v0.8b}, [x2]
        ld3     {v0.16b-v2.16b}, [x1], 48
        ld3     {v5.4h, v6.4h, v7.4h}, [sp], x5
        ld3     {v31.8h,v0.8h,v1.8h}, [x30], #48
        ld3     {v30.2s, v31.2s, v0.2s}, [x2]
        ld3     {v0.4s-v2.4s}, [x1], 48
        ld3     {v5.2d, v6.2d, v7.2d}, [sp], x5
        ld4     {v31.8b,v0.8b,v1.8b,v2.8b}, [x30], x5
        ld4     {v30.16b, v31.16b, v0.16b, v1.16b}, [x2], #64
        ld4     {v0.4h-v3.4h}, [x1]
        ld4     {v5.8h, v6.8h, v7.8h, v8.8h}, [sp], 64
        ld4     {v31.2s,v0.2s,v1.2s,v2.2s}, [x30], x5
        ld4     {v30.4s, v31.4s, v0.4s, v1.4s}, [x2], #64
        ld4     {v0.2d-v3.2d}, [x1]
        ld1     {v5.b}[15], [sp]
        ld1     {v31.h}[7], [x30], 2
        ld1     {v30.s}[3], [x2], x5
        ld1     {v0.d}[1], [x1], #8
        ld2     {v5.b, v6.b}[15], [sp], #2
        ld2     {v31.h,v0.h}[7], [x30]
        ld2     {v30.s, v31.s}[3], [x2], 8
        ld2     {v0.d-v1.d}[1], [x1], x5
        ld3     {v5.b, v6.b, v7.b}[15], [sp], x5
        ld3     {v31.h,v0.h,v1.h}[7], [x30], #6
        ld3     {v30.s, v31.s, v0.s}[3], [x2]
        ld3     {v0.d-v2.d}[1], [x1], 24
        ld4     {v5.b, v6.b, v7.b, v8.b}[15], [sp], 4
        ld4     {v31.h,v0.h,v1.h,v2.h}[7], [x30], x5
        ld4     {v30.s, v31.s, v0.s, v1.s}[3], [x2], #16
        ld4     {v0.d-v3.d}[1], [x1]
        st1     {v5.8b}, [sp]
        st1     {v31.16b}, [x30], 16
        st1     {v30.4h}, [x2], x5
        st1     {v0.8h}, [x1], #16
        st1     {v5.2s}, [sp]
        st1     {v31.4s}, [x30], 16
        st1     {v30.1d}, [x2], x5
        st1     {v0.2d}, [x1], #16
        st1     {v5.8b, v6.8b}, [sp], #16
        st1     {v31.16b,v0.16b}, [x30]
        st1     {v30.4h, v31.4h}, [x2], 16
        st1     {v0.8h-v1.8h}, [x1], x5
        st1     {v5.2s, v6.2s}, [sp], #16
        st1     {v31.4s,v0.4s}, [x30]
        st1     {v30.1d, v31.1d}, [x2], 16
        st1     {v0.2d-v1.2d}, [x1], x5
        st1     {v5.8b, v6.8b, v7.8b}, [sp], x5
        st1     {v31.16b,v0.16b,v1.16b}, [x30], #48
        st1     {v30.4h, v31.4h, v0.4h}, [x2]
        st1     {v0.8h-v2.8h}, [x1], 48
        st1     {v5.2s, v6.2s, v7.2s}, [sp], x5
        st1     {v31.4s,v0.4s,v1.4s}, [x30], #48
        st1     {v30.1d, v31.1d, v0.1d}, [x2]
        st1     {v0.2d-v2.2d}, [x1], 48
        st1     {v5.8b, v6.8b, v7.8b, v8.8b}, [sp], 32
        st1     {v31.16b,v0.16b,v1.16b,v2.16b}, [x30], x5
        st1     {v30.4h, v31.4h, v0.4h, v1.4h}, [x2], #32
        st1     {v0.8h-v3.8h}, [x1]
        st1     {v5.2s, v6.2s, v7.2s, v8.2s}, [sp], 32
        st1     {v31.4s,v0.4s,v1.4s,v2.4s}, [x30], x5
        st1     {v30.1d, v31.1d, v0.1d, v1.1d}, [x2], #32
        st1     {v0.2d-v3.2d}, [x1]
        st2     {v5.8b, v6.8b}, [sp], #16
        st2     {v31.16b,v0.16b}, [x30]
        st2     {v30.4h, v31.4h}, [x2], 16
        st2     {v0.8h-v1.8h}, [x1], x5
        st2     {v5.2s, v6.2s}, [sp], #16
        st2     {v31.4s,v0.4s}, [x30]
        st2     {v30.2d, v31.2d}, [x2], 32
        st3     {v0.8b-v2.8b}, [x1], 24
        st3     {v5.16b, v6.16b, v7.16b}, [sp], x5
        st3     {v31.4h,v0.4h,v1.4h}, [x30], #24
        st3     {v30.8h, v31.8h, v0.8h}, [x2]
        st3     {v0.2s-v2.2s}, [x1], 24
        st3     {v5.4s, v6.4s, v7.4s}, [sp], x5
        st3     {v31.2d,v0.2d,v1.2d}, [x30], #48
        st4     {v30.8b, v31.8b, v0.8b, v1.8b}, [x2], #32
        st4     {v0.16b-v3.16b}, [x1]
        st4     {v5.4h, v6.4h, v7.4h, v8.4h}, [sp], 32
        st4     {v31.8h,v0.8h,v1.8h,v2.8h}, [x30], x5
        st4     {v30.2s, v31.2s, v0.2s, v1.2s}, [x2], #32
        st4     {v0.4s-v3.4s}, [x1]
        st4     {v5.2d, v6.2d, v7.2d, v8.2d}, [sp], 64
        st1     {v31.b}[15], [x30], 1
        st1     {v30.h}[7], [x2], x5
        st1     {v0.s}[3], [x1], #4
        st1     {v5.d}[1], [sp]
        st2     {v31.b,v0.b}[15], [x30]
        st2     {v30.h, v31.h}[7], [x2], 4
        st2     {v0.s-v1.s}[3], [x1], x5
        st2     {v5.d, v6.d}[1], [sp], #16
        st3     {v31.b,v0.b,v1.b}[15], [x30], #3
        st3     {v30.h, v31.h, v0.h}[7], [x2]
        st3     {v0.s-v2.s}[3], [x1], 12
        st3     {v5.d, v6.d, v7.d}[1], [sp], x5
        st4     {v31.b,v0.b,v1.b,v2.b}[15], [x30], x5
        st4     {v30.h, v31.h, v0.h, v1.h}[7], [x2], #8
        st4     {v0.s-v3.s}[3], [x1]
        st4     {v5.d, v6.d, v7.d, v8.d}[1], [sp], 32
        ld1r    {v31.8b}, [x30], 1
        ld1r    {v30.16b}, [x2], x5
        ld1r    {v0.4h}, [x1], #2
        ld1r    {v5.8h}, [sp]
        ld1r    {v31.2s}, [x30], 4
        ld1r    {v30.4s}, [x2], x5
        ld1r    {v0.1d}, [x1], #8
        ld1r    {v5.2d}, [sp]
        ld2r    {v31.8b,v0.8b}, [x30]
        ld2r    {v30.16b, v31.16b}, [x2], 2
        ld2r    {v0.4h-v1.4h}, [x1], x5
        ld2r    {v5.8h, v6.8h}, [sp], #4
        ld2r    {v31.2s,v0.2s}, [x30]
        ld2r    {v30.4s, v31.4s}, [x2], 8
        ld2r    {v0.1d-v1.1d}, [x1], x5
        ld2r    {v5.2d, v6.2d}, [sp], #16
        ld3r    {v31.8b,v0.8b,v1.8b}, [x30], #3
        ld3r    {v30.16b, v31.16b, v0.16b}, [x2]
        ld3r    {v0.4h-v2.4h}, [x1], 6
        ld3r    {v5.8h, v6.8h, v7.8h}, [sp], x5
        ld3r    {v31.2s,v0.2s,v1.2s}, [x30], #12
        ld3r    {v30.4s, v31.4s, v0.4s}, [x2]
        ld3r    {v0.1d-v2.1d}, [x1], 24
        ld3r    {v5.2d, v6.2d, v7.2d}, [sp], x5
        ld4r    {v31.8b,v0.8b,v1.8b,v2.8b}, [x30], x5
        ld4r    {v30.16b, v31.16b, v0.16b, v1.16b}, [x2], #4
        ld4r    {v0.4h-v3.4h}, [x1]
        ld4r    {v5.8h, v6.8h, v7.8h, v8.8h}, [sp], 8
        ld4r    {v31.2s,v0.2s,v1.2s,v2.2s}, [x30], x5
        ld4r    {v30.4s, v31.4s, v0.4s, v1.4s}, [x2], #16
        ld4r    {v0.1d-v3.1d}, [x1]
        ld4r    {v5.2d, v6.2d, v7.2d, v8.2d}, [sp], 32
        LD1     {V0.4S}, [X1]
        ld4     {v0.b - v3.b}[1], [x0], x30

// Floating point
        fmov    h0, h31
        fmov    s1, s2
        fabs    s0, s31
        fabs    d1, d2
        fneg    d0, d31
        fneg    h1, h2
        fsqrt   h0, h31
        fsqrt   s1, s2
        frintn  h3, h4
        frintp  s3, s4
        frintm  d3, d4
        frintz  h3, h4
        frinta  s3, s4
        frintx  d3, d4
        frinti  h3, h4
        frint32z s3, s4
        frint32x d3, d4
        frint64z s3, s4
        frint64x d3, d4
        fcvt    h0, s31
        fcvt    h0, d31
        fcvt    s0, h31
        fcvt    s0, d31
        fcvt    d0, h31
        fcvt    d0, s31
        bfcvt   h0, s1
        fmul    h0, h1, h31
        fdiv    s0, s1, s31
        fadd    d0, d1, d31
        fsub    h0, h1, h31
        fmax    s0, s1, s31
        fmin    d0, d1, d31
        fmaxnm  h0, h1, h31
        fminnm  s0, s1, s31
        fnmul   d0, d1, d31
        FADD    S0, s1, S2
        fmadd   h0, h1, h31, h7
        fmsub   s0, s1, s31, s7
        fnmadd  d0, d1, d31, d7
        fnmsub  h0, h1, h31, h7
        fcmp    h0, h31
        fcmp    s0, s31
        fcmp    d0, d31
        fcmp    h1, #0.0
        fcmp    s1, 0.0
        fcmp    d1, #0
        fcmpe   h0, h31
        fcmpe   s0, s31
        fcmpe   d0, d31
        fcmpe   h1, #0.0
        fcmpe   s1, 0.0
        fcmpe   d1, #0
        fcmp    s1, #0.0e5
        fccmp   s0, s1, #15, ne
        fccmp   h0, h1, #0, al
        fccmpe  d0, d1, 1, hs
        fcsel   s0, s1, s2, eq
        fcsel   d0, d1, d2, nv
        fcsel   h0, h1, h2, lo
        fmov    h0, #1.0
        fmov    h0, -31
        fmov    h0, #0.125
        fmov    s0, #1.0
        fmov    s0, -31
        fmov    s0, #0.125
        fmov    d0, #1.0
        fmov    d0, -31
        fmov    d0, #0.125
        fmov    s0, #0x3f800000
        fmov    d0, #0x3ff0000000000000
        fmov    d31, #2.5e0
        fmov    w0, h1
        fmov    x0, h1
        fmov    w0, s1
        fmov    x0, d1
        fmov    h0, w1
        fmov    h0, xzr
        fmov    s0, wzr
        fmov    d0, x1
        fmov    x0, v1.d[1]
        fmov    v1.d[1], xzr
        fcvtns  w0, h1
        fcvtns  xzr, d1
        fcvtnu  x0, s1
        fcvtnu  wzr, h1
        fcvtas  w0, d1
        fcvtas  xzr, s1
        fcvtau  x0, h1
        fcvtau  wzr, d1
        fcvtps  w0, s1
        fcvtps  xzr, h1
        fcvtpu  x0, d1
        fcvtpu  wzr, s1
        fcvtms  w0, h1
        fcvtms  xzr, d1
        fcvtmu  x0, s1
        fcvtmu  wzr, h1
        fcvtzs  w0, d1
        fcvtzs  xzr, s1
        fcvtzu  x0, h1
        fcvtzu  wzr, d1
        fcvtzs  w0, s1, #1
        fcvtzs  w0, h1, #32
        fcvtzs  x0, d1, 64
        fcvtzs  x0, s1, #1
        scvtf   s0, w1
        scvtf   d0, xzr
        scvtf   h0, x1
        scvtf   d0, w1, #32
        scvtf   h0, x1, #64
        scvtf   s0, w1, 1
        fcvtzu  w0, s1, #1
        fcvtzu  w0, h1, #32
        fcvtzu  x0, d1, 64
        fcvtzu  x0, s1, #1
        ucvtf   s0, w1
        ucvtf   d0, xzr
        ucvtf   h0, x1
        ucvtf   d0, w1, #32
        ucvtf   h0, x1, #64
        ucvtf   s0, w1, 1
        fjcvtzs w0, d1

// Floating point in vectors, or in single elements as in vectors
        fadd    v0.4h, v1.4h, v31.4h
        fsub    v0.8h, v1.8h, v31.8h
        fmul    v0.2s, v1.2s, v31.2s
        fdiv    v0.4s, v1.4s, v31.4s
        fmax    v0.2d, v1.2d, v31.2d
        fmin    v0.4h, v1.4h, v31.4h
        fmaxnm  v0.8h, v1.8h, v31.8h
        fminnm  v0.2s, v1.2s, v31.2s
        fmla    v0.4s, v1.4s, v31.4s
        fmls    v0.2d, v1.2d, v31.2d
        fabd    v0.4h, v1.4h, v31.4h
        fmulx   v0.8h, v1.8h, v31.8h
        frecps  v0.2s, v1.2s, v31.2s
        frsqrts v0.4s, v1.4s, v31.4s
        fabd    d0, d1, d31
        fmulx   h0, h1, h31
        frecps  s0, s1, s31
        frsqrts d0, d1, d31
        faddp   v0.4s, v1.4s, v31.4s
        fmaxp   v0.2d, v1.2d, v31.2d
        fminp   v0.4h, v1.4h, v31.4h
        fmaxnmp v0.8h, v1.8h, v31.8h
        fminnmp v0.2s, v1.2s, v31.2s
        faddp   h0, v31.2h
        fmaxp   s0, v31.2s
        fminp   d0, v31.2d
        fmaxnmp h0, v31.2h
        fminnmp s0, v31.2s
        fmaxv   s0, v31.4s
        fminv   h0, v31.4h
        fmaxnmv h0, v31.8h
        fminnmv s0, v31.4s
        fcmeq   v0.4s, v1.4s, v31.4s
        fcmge   v0.2d, v1.2d, v31.2d
        fcmgt   v0.4h, v1.4h, v31.4h
        facge   v0.8h, v1.8h, v31.8h
        facgt   v0.2s, v1.2s, v31.2s
        fcmeq   s0, s1, s31
        fcmge   d0, d1, d31
        fcmgt   h0, h1, h31
        facge   s0, s1, s31
        facgt   d0, d1, d31
        fcmgt   v0.4h, v1.4h, #0.0
        fcmgt   h0, h31, #0.0
        fcmge   v0.8h, v1.8h, 0
        fcmge   s0, s31, #0.0
        fcmeq   v0.2s, v1.2s, #0
        fcmeq   d0, d31, #0.0
        fcmle   v0.4s, v1.4s, 0.0
        fcmle   h0, h31, #0.0
        fcmlt   v0.2d, v1.2d, #0.0
        fcmlt   s0, s31, #0.0
        fabs    v0.4s, v31.4s
        fneg    v0.2d, v31.2d
        fsqrt   v0.4h, v31.4h
        frecpe  v0.8h, v31.8h
        frsqrte v0.2s, v31.2s
        urecpe  v0.2s, v31.2s
        ursqrte v0.4s, v31.4s
        frecpe  d0, d31
        frsqrte h0, h31
        frecpx  s0, s31
        frintn  v0.8h, v31.8h
        frintp  v0.2s, v31.2s
        frintm  v0.4s, v31.4s
        frintz  v0.2d, v31.2d
        frinta  v0.4h, v31.4h
        frintx  v0.8h, v31.8h
        frinti  v0.2s, v31.2s
        frint32z v0.2s, v31.2s
        frint32x v0.4s, v31.4s
        frint64z v0.2d, v31.2d
        frint64x v0.2s, v31.2s
        fcvtns  v0.4s, v31.4s
        fcvtns  s0, s31
        fcvtnu  v0.4h, v31.4h
        fcvtnu  h0, h31
        fcvtas  v0.2s, v31.2s
        fcvtas  d0, d31
        fcvtau  v0.2d, v31.2d
        fcvtau  s0, s31
        fcvtps  v0.8h, v31.8h
        fcvtps  h0, h31
        fcvtpu  v0.4s, v31.4s
        fcvtpu  d0, d31
        fcvtms  v0.4h, v31.4h
        fcvtms  s0, s31
        fcvtmu  v0.2s, v31.2s
        fcvtmu  h0, h31
        fcvtzs  v0.2d, v31.2d
        fcvtzs  d0, d31
        fcvtzu  v0.8h, v31.8h
        fcvtzu  s0, s31
        scvtf   v0.4s, v31.4s
        scvtf   h0, h31
        ucvtf   v0.4h, v31.4h
        ucvtf   d0, d31
        fcvtzs  v0.8h, v31.8h, #16
        fcvtzs  h0, h31, 16
        fcvtzs  v0.2s, v31.2s, #1
        fcvtzs  s0, s31, 1
        fcvtzu  v0.2s, v31.2s, #32
        fcvtzu  s0, s31, 32
        fcvtzu  v0.2d, v31.2d, #1
        fcvtzu  h0, h31, 1
        scvtf   v0.4s, v31.4s, #32
        scvtf   d0, d31, 64
        scvtf   v0.8h, v31.8h, #1
        scvtf   d0, d31, 1
        ucvtf   v0.2d, v31.2d, #64
        ucvtf   h0, h31, 16
        ucvtf   v0.4s, v31.4s, #1
        ucvtf   s0, s31, 1
        fcvtn   v0.4h, v31.4s
        fcvtn   v0.2s, v31.2d
        fcvtn2  v0.8h, v31.4s
        fcvtn2  v0.4s, v31.2d
        fcvtxn  v0.2s, v31.2d
        fcvtxn2 v0.4s, v31.2d
        fcvtxn  s0, d31
        bfcvtn  v0.4h, v31.4s
        bfcvtn2 v0.8h, v31.4s
        fcvtl   v0.4s, v31.4h
        fcvtl   v0.2d, v31.2s
        fcvtl2  v0.4s, v31.8h
        fcvtl2  v0.2d, v31.4s
        fmla    v0.4h, v1.4h, v15.h[7]
        fmla    v0.8h, v1.8h, v15.h[7]
        fmla    h0, h1, v2.h[0]
        fmls    v0.2s, v1.2s, v31.s[3]
        fmls    v0.4s, v1.4s, v31.s[3]
        fmls    s0, s1, v2.s[0]
        fmul    v0.2d, v1.2d, v31.d[1]
        fmul    v0.4h, v1.4h, v15.h[7]
        fmul    d0, d1, v2.d[0]
        fmulx   v0.8h, v1.8h, v15.h[7]
        fmulx   v0.2s, v1.2s, v31.s[3]
        fmulx   h0, h1, v2.h[0]
        fcadd   v0.4h, v1.4h, v31.4h, #90
        fcadd   v0.2d, v1.2d, v31.2d, 270
        fcmla   v0.8h, v1.8h, v31.8h, #0
        fcmla   v0.2s, v1.2s, v31.2s, 90
        fcmla   v0.2d, v1.2d, v31.2d, #270
        fcmla   v0.4h, v1.4h, v31.h[1], #180
        fcmla   v0.8h, v1.8h, v31.h[3], #90
        fcmla   v0.4s, v1.4s, v31.s[1], #0
        fmlal   v0.2s, v1.2h, v31.2h
        fmlal2  v0.4s, v1.4h, v31.4h
        fmlsl   v0.4s, v1.4h, v31.4h
        fmlsl2  v0.2s, v1.2h, v31.2h
        fmlal   v0.2s, v1.2h, v15.h[7]
        fmlal2  v0.4s, v1.4h, v0.h[1]
        fmlsl   v0.4s, v1.4h, v15.h[0]
        fmlsl2  v0.2s, v1.2h, v7.h[2]

// Sums of products
        sdot    v0.2s, v1.8b, v31.8b
        udot    v0.4s, v1.16b, v31.16b
        usdot   v0.2s, v1.8b, v31.8b
        sdot    v0.4s, v1.16b, v31.4b[3]
        udot    v0.2s, v1.8b, v31.4b[2]
        usdot   v0.2s, v1.8b, v31.4b[1]
        sudot   v0.4s, v1.16b, v31.4b[0]
        smmla   v0.4s, v1.16b, v31.16b
        ummla   v0.4s, v1.16b, v31.16b
        usmmla  v0.4s, v1.16b, v31.16b
        bfdot   v0.2s, v1.4h, v31.4h
        bfdot   v0.4s, v1.8h, v31.8h
        bfdot   v0.2s, v1.4h, v31.2h[3]
        bfdot   v0.4s, v1.8h, v31.2h[0]
        bfmmla  v0.4s, v1.8h, v31.8h
        bfmlalb v0.4s, v1.8h, v31.8h
        bfmlalt v0.4s, v1.8h, v31.8h
        bfmlalb v0.4s, v1.8h, v15.h[7]
        bfmlalt v0.4s, v1.8h, v15.h[0]

// Cryptography
        aese    v0.16b, v31.16b
        aesd    v0.16b, v31.16b
        aesmc   v0.16b, v31.16b
        aesimc  v0.16b, v31.16b
        sha1c   q0, s1, v31.4s
        sha1p   q0, s1, v31.4s
        sha1m   q0, s1, v31.4s
        sha1h   s0, s31
        sha1su0 v0.4s, v1.4s, v31.4s
        sha1su1 v0.4s, v31.4s
        sha256h q0, q1, v31.4s
        sha256h2 q0, q1, v31.4s
        sha256su0 v0.4s, v31.4s
        sha256su1 v0.4s, v1.4s, v31.4s
        sha512h q0, q1, v31.2d
        sha512h2 q0, q1, v31.2d
        sha512su0 v0.2d, v31.2d
        sha512su1 v0.2d, v1.2d, v31.2d
        rax1    v0.2d, v1.2d, v31.2d
        eor3    v0.16b, v1.16b, v2.16b, v31.16b
        bcax    v0.16b, v1.16b, v2.16b, v31.16b
        xar     v0.2d, v1.2d, v31.2d, #63
        sm3ss1  v0.4s, v1.4s, v2.4s, v31.4s
        sm3tt1a v0.4s, v1.4s, v31.s[3]
        sm3tt1b v0.4s, v1.4s, v31.s[0]
        sm3tt2a v0.4s, v1.4s, v31.s[1]
        sm3tt2b v0.4s, v1.4s, v31.s[2]
        sm3partw1 v0.4s, v1.4s, v31.4s
        sm3partw2 v0.4s, v1.4s, v31.4s
        sm4e    v0.4s, v31.4s
        sm4ekey v0.4s, v1.4s, v31.4s

// Numbers and symbols
        .equ    five, 5
        .set    later, end - start
        seven = 7
        mov     x0, #five
        mov     x0, seven * five
        add     x0, x1, #later - later + 1
        mov     x0, #1 << 4 | 1
        mov     x0, #(1 + 2) << 3
        mov     x0, #0x10 - 0b101 + 017
        mov     x0, #~0
        mov     w0, #'\n'
        .set    five, 6
        mov     x0, #five
        .word   1+2<<3, 8-2|1, 010, 7/2, -7/2, -7 % 3, 5 ^ 3, ~5, 2*-3, -(4+1), 1<<31
        .word   0xFFFFFFFF, -0x80000000, 0x1F & ~3, 100 / 7 * 7 + 100 % 7
        .quad   0xffffffffffffffff, -1, start, end, end - start, later, far, -8 >> 60, 1b, .
        .xword  ., 2f
2:      .hword  0xffff, -0x8000, 'z'
        .short  1
        .byte   255, -128, 'a', '\\', '\''
        .byte   1
        .long   5; .int 6 ; .2byte 7
        .byte   7
        .4byte  8
        .8byte  9, 10
        .float  1.0, -2.5e-3, 1, .5, 0.1, +7, -0.0
        .single 3.5
        .double 3.141592653589793, -0.0, 1e-320, 0.1, 1
        .ascii  "abc", "d\n\t\r\b\f\\\"\101\x41\0"
        .asciz  "é", ""
        .string "x // y /* z */ ; #"
        nop     /* aligned again */
        .space  3
        .skip   2, 0xff
        .zero   1
        .fill   2
        .fill   2, 2
        .fill   3, 4, 0x01020304
        .byte   1
        .align  3
        nop
        .p2align 4
        nop
        .balign 16
        nop
        .balign 8, 0x55
        .byte   1
        .p2align 2, 0xaa
        .byte   1
        .p2align 4,,3
        .balign 4
        .p2align 3,,7
        .inst   0xd503201f, 0xd4400000
        .byte   1
        .inst   0xd503201f

// Constants
        ldr     x0, =0x123456789abcdef
        ldr     w1, =0x12345678
        ldr     x2, =0x12345678
        ldr     x3, =0x123456789abcdee+1
        ldr     x4, =end
        ldr     x5, =end
        ldr     w6, =-1
        ldrsw   x7, =-2
        ldr     q0, =-1
        ldr     q1, =123
        ldr     d0, =0x123456789abcdef
        ldr     d1, =1
        ldr     s0, =0x12345678
        ldr     s1, =-1
        b       4f
        .ltorg
4:      ldr     x0, =0x123456789abcdef
        ldr     x1, =start + 8
        b       5f
        .pool
5:

// Macros
        .macro  twice op, to, from=x9
        \op     \to, \to, \from
        \op     \to, \to, \from
        .endm
        .macro  load_far reg:req
        adrp    \reg, far
        ldr     w\()9, [\reg, :lo12:far]
        b       skip\@
skip\@:
        .endm
        twice   add, x1
        twice   eor, x2, x3
        twice   op=sub, from=x3, to=x2
        load_far x5
6:      load_far x6
        .rept   3
        add     x0, x0, #1
        .endr

        .type   start, %function
        .size   start, . - start
        ldr     x0, =0xfeedface12345678
        nop
end:
        .set    far, start + 0x12345678 - 0x10000
