/*
 * SHA-256 (FIPS 180-4) of a pseudo random message.
 *
 * The message is `iterations` blocks of 64 bytes; each block is eight
 * successive next_random() values stored little endian.  The result is the
 * first eight bytes of the digest, read as a big endian number.
 */
#include "guest.h"

#define BLOCK_BYTES 64

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
    0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
    0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotr(uint32_t x, int n)
{
    return (x >> n) | (x << (32 - n));
}

static inline uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
           (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static inline uint32_t sigma0(uint32_t x)
{
    return rotr(x, 7) ^ rotr(x, 18) ^ (x >> 3);
}

static inline uint32_t sigma1(uint32_t x)
{
    return rotr(x, 17) ^ rotr(x, 19) ^ (x >> 10);
}

static inline uint32_t big_sigma0(uint32_t x)
{
    return rotr(x, 2) ^ rotr(x, 13) ^ rotr(x, 22);
}

static inline uint32_t big_sigma1(uint32_t x)
{
    return rotr(x, 6) ^ rotr(x, 11) ^ rotr(x, 25);
}

/*
 * One round.  Instead of moving all eight working variables along by one,
 * the caller names them in rotated order; eight rounds bring them home.
 */
#define ROUND(a, b, c, d, e, f, g, h, t)                                  \
    do {                                                                  \
        uint32_t t1 = h + big_sigma1(e) + (g ^ (e & (f ^ g))) + K[t] + w[t]; \
        uint32_t t2 = big_sigma0(a) + ((a & b) | (c & (a | b)));          \
        d += t1;                                                          \
        h = t1 + t2;                                                      \
    } while (0)

static void compress(uint32_t state[8], const uint8_t block[BLOCK_BYTES])
{
    uint32_t w[64];

    for (int t = 0; t < 16; t++)
        w[t] = load_be32(block + 4 * t);
    for (int t = 16; t < 64; t++)
        w[t] = sigma1(w[t - 2]) + w[t - 7] + sigma0(w[t - 15]) + w[t - 16];

    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

    for (int t = 0; t < 64; t += 8) {
        ROUND(a, b, c, d, e, f, g, h, t);
        ROUND(h, a, b, c, d, e, f, g, t + 1);
        ROUND(g, h, a, b, c, d, e, f, t + 2);
        ROUND(f, g, h, a, b, c, d, e, t + 3);
        ROUND(e, f, g, h, a, b, c, d, t + 4);
        ROUND(d, e, f, g, h, a, b, c, t + 5);
        ROUND(c, d, e, f, g, h, a, b, t + 6);
        ROUND(b, c, d, e, f, g, h, a, t + 7);
    }

    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint32_t state[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    uint64_t block[BLOCK_BYTES / 8];
    uint64_t random = input;

    for (uint64_t n = 0; n < iterations; n++) {
        for (int i = 0; i < BLOCK_BYTES / 8; i++)
            block[i] = next_random(&random);
        compress(state, (const uint8_t *)block);
    }

    /* The message ends on a block boundary: the padding is one more block. */
    block[0] = 0x80;
    for (int i = 1; i < BLOCK_BYTES / 8 - 1; i++)
        block[i] = 0;
    block[BLOCK_BYTES / 8 - 1] = __builtin_bswap64(iterations * BLOCK_BYTES * 8);
    compress(state, (const uint8_t *)block);

    return (uint64_t)state[0] << 32 | state[1];
}
