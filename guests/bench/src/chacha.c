/*
 * ChaCha20 with Poly1305 (RFC 8439), the rounds written out in full.
 *
 * A round encrypts a message of 1 KiB in place, authenticates it, and takes
 * the next key from the tag.  The start checks the RFC's example of a block.
 */
#include "guest.h"

#define MESSAGE 1024

static uint8_t message[MESSAGE];

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

#define QUARTER(a, b, c, d)                                                  \
    a += b, d = rotate(d ^ a, 16);                                           \
    c += d, b = rotate(b ^ c, 12);                                           \
    a += b, d = rotate(d ^ a, 8);                                            \
    c += d, b = rotate(b ^ c, 7);

#define DOUBLE_ROUND                                                         \
    QUARTER(x0, x4, x8, x12)                                                 \
    QUARTER(x1, x5, x9, x13)                                                 \
    QUARTER(x2, x6, x10, x14)                                                \
    QUARTER(x3, x7, x11, x15)                                                \
    QUARTER(x0, x5, x10, x15)                                                \
    QUARTER(x1, x6, x11, x12)                                                \
    QUARTER(x2, x7, x8, x13)                                                 \
    QUARTER(x3, x4, x9, x14)

static void chacha_block(uint32_t out[16], const uint32_t in[16])
{
    uint32_t x0 = in[0], x1 = in[1], x2 = in[2], x3 = in[3];
    uint32_t x4 = in[4], x5 = in[5], x6 = in[6], x7 = in[7];
    uint32_t x8 = in[8], x9 = in[9], x10 = in[10], x11 = in[11];
    uint32_t x12 = in[12], x13 = in[13], x14 = in[14], x15 = in[15];

    DOUBLE_ROUND DOUBLE_ROUND DOUBLE_ROUND DOUBLE_ROUND DOUBLE_ROUND
    DOUBLE_ROUND DOUBLE_ROUND DOUBLE_ROUND DOUBLE_ROUND DOUBLE_ROUND

    out[0] = x0 + in[0], out[1] = x1 + in[1];
    out[2] = x2 + in[2], out[3] = x3 + in[3];
    out[4] = x4 + in[4], out[5] = x5 + in[5];
    out[6] = x6 + in[6], out[7] = x7 + in[7];
    out[8] = x8 + in[8], out[9] = x9 + in[9];
    out[10] = x10 + in[10], out[11] = x11 + in[11];
    out[12] = x12 + in[12], out[13] = x13 + in[13];
    out[14] = x14 + in[14], out[15] = x15 + in[15];
}

static void set_state(uint32_t state[16], const uint32_t key[8],
                      uint32_t counter, const uint32_t nonce[3])
{
    static const uint32_t sigma[4] = { 0x61707865, 0x3320646e, 0x79622d32,
                                       0x6b206574 };

    for (int i = 0; i < 4; i++)
        state[i] = sigma[i];
    for (int i = 0; i < 8; i++)
        state[4 + i] = key[i];
    state[12] = counter;
    for (int i = 0; i < 3; i++)
        state[13 + i] = nonce[i];
}

static void encrypt(uint32_t state[16])
{
    for (int at = 0; at < MESSAGE; at += 64) {
        uint32_t block[16];

        chacha_block(block, state);
        state[12]++;
        for (int i = 0; i < 64; i++)
            message[at + i] ^= (uint8_t)(block[i / 4] >> 8 * (i % 4));
    }
}

/* The polynomial's value modulo 2^130 - 5, in five limbs of 26 bits. */
struct poly {
    uint32_t r[5], h[5];
};

static void poly_start(struct poly *p, const uint32_t key[4])
{
    p->r[0] = key[0] & 0x3ffffff;
    p->r[1] = (key[0] >> 26 | key[1] << 6) & 0x3ffff03;
    p->r[2] = (key[1] >> 20 | key[2] << 12) & 0x3ffc0ff;
    p->r[3] = (key[2] >> 14 | key[3] << 18) & 0x3f03fff;
    p->r[4] = key[3] >> 8 & 0x00fffff;
    for (int i = 0; i < 5; i++)
        p->h[i] = 0;
}

static void poly_block(struct poly *p, const uint8_t *block)
{
    uint32_t t0 = load32(block), t1 = load32(block + 4);
    uint32_t t2 = load32(block + 8), t3 = load32(block + 12);
    uint64_t r0 = p->r[0], r1 = p->r[1], r2 = p->r[2], r3 = p->r[3], r4 = p->r[4];
    uint64_t s1 = r1 * 5, s2 = r2 * 5, s3 = r3 * 5, s4 = r4 * 5;
    uint64_t h0 = p->h[0] + (t0 & 0x3ffffff);
    uint64_t h1 = p->h[1] + ((t0 >> 26 | t1 << 6) & 0x3ffffff);
    uint64_t h2 = p->h[2] + ((t1 >> 20 | t2 << 12) & 0x3ffffff);
    uint64_t h3 = p->h[3] + ((t2 >> 14 | t3 << 18) & 0x3ffffff);
    uint64_t h4 = p->h[4] + (t3 >> 8 | 1u << 24);
    uint64_t d0 = h0 * r0 + h1 * s4 + h2 * s3 + h3 * s2 + h4 * s1;
    uint64_t d1 = h0 * r1 + h1 * r0 + h2 * s4 + h3 * s3 + h4 * s2;
    uint64_t d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s4 + h4 * s3;
    uint64_t d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + h4 * s4;
    uint64_t d4 = h0 * r4 + h1 * r3 + h2 * r2 + h3 * r1 + h4 * r0;

    d1 += d0 >> 26;
    d2 += d1 >> 26;
    d3 += d2 >> 26;
    d4 += d3 >> 26;
    h0 = (d0 & 0x3ffffff) + (d4 >> 26) * 5;
    p->h[0] = h0 & 0x3ffffff;
    p->h[1] = (uint32_t)((d1 & 0x3ffffff) + (h0 >> 26));
    p->h[2] = d2 & 0x3ffffff;
    p->h[3] = d3 & 0x3ffffff;
    p->h[4] = d4 & 0x3ffffff;
}

static void next_key(uint32_t key[8], const struct poly *p)
{
    for (int i = 0; i < 8; i++)
        key[i] = rotate(key[i], 7) + p->h[i % 5] * 0x9e3779b1u;
}

/* The example of section 2.3.2 of the RFC: its first and last word. */
static int check_example(void)
{
    static const uint32_t nonce[3] = { 0x09000000, 0x4a000000, 0 };
    uint32_t key[8], state[16], block[16];

    for (uint32_t i = 0; i < 8; i++)
        key[i] = 0x03020100 + 0x04040404 * i;
    set_state(state, key, 1, nonce);
    chacha_block(block, state);
    return block[0] == 0xe4e7f110 && block[15] == 0x4e3c50a2;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;
    uint32_t key[8], nonce[3] = { 0 };

    if (!check_example())
        return 0;
    for (int i = 0; i < 8; i++)
        key[i] = (uint32_t)next_random(&random);
    for (int i = 0; i < MESSAGE; i++)
        message[i] = (uint8_t)next_random(&random);
    for (uint64_t n = 0; n < iterations; n++) {
        uint32_t state[16], block[16];
        struct poly poly;

        nonce[0]++;
        set_state(state, key, 0, nonce);
        chacha_block(block, state);
        state[12]++;
        poly_start(&poly, block);
        encrypt(state);
        for (int at = 0; at < MESSAGE; at += 16)
            poly_block(&poly, message + at);
        next_key(key, &poly);
    }
    for (int i = 0; i < 8; i++)
        hash = mix(hash, key[i]);
    for (int i = 0; i < MESSAGE; i++)
        hash = mix(hash, message[i]);
    return hash;
}
