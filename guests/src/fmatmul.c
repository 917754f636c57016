/*
 * Products of 64 by 64 matrices in single precision.
 *
 * A and B start out pseudo random, between -1/2 and 1/2 and between -1 and 1.
 * Each round replaces A by the fractions of A B, between -1/2 and 1/2: what
 * is left when the nearest integers are taken away.  So numbers stay small,
 * and an error in the last place soon changes all of them.  Sums are made of
 * fused operations, in the order of the columns of A.  The result is a
 * checksum of the last A, bit for bit.
 */
#include "guest.h"

#define N 64

static float a[N][N];
static float b[N][N];

static void fill(float m[N][N], float unit, uint64_t *random)
{
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            m[row][column] = (float)((int64_t)next_random(random) >> 32) * unit;
}

/* Replaces a row of A.  No other row of the product depends on it. */
static void multiply_row(float row[restrict N])
{
    float sums[N] = { 0 };

    for (int k = 0; k < N; k++)
        for (int column = 0; column < N; column++)
            sums[column] = __builtin_fmaf(row[k], b[k][column], sums[column]);
    for (int column = 0; column < N; column++)
        row[column] = sums[column] - __builtin_rintf(sums[column]);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    fill(a, 0x1p-32f, &random);
    fill(b, 0x1p-31f, &random);
    for (uint64_t n = 0; n < iterations; n++)
        for (int row = 0; row < N; row++)
            multiply_row(a[row]);

    for (int row = 0; row < N; row++) {
        for (int column = 0; column < N; column++) {
            uint32_t bits;

            __builtin_memcpy(&bits, &a[row][column], sizeof bits);
            hash = mix(hash, bits);
        }
    }
    return hash;
}
