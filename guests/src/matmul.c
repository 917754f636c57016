/*
 * Products of 32 by 32 matrices of unsigned 32-bit numbers.
 *
 * A and B start out pseudo random.  Each round computes C = A B with 64-bit
 * sums (modulo 2^64), then makes the next A of it by folding every sum to 32
 * bits, upper half xor lower half.  The result is a checksum of the last A.
 */
#include "guest.h"

#define N 32

static uint32_t a[N][N];
static uint32_t b[N][N];
static uint64_t c[N][N];

static void fill(uint32_t m[N][N], uint64_t *random)
{
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            m[row][column] = (uint32_t)next_random(random);
}

static void multiply(void)
{
    for (int row = 0; row < N; row++) {
        for (int column = 0; column < N; column++) {
            uint64_t sum = 0;

            for (int k = 0; k < N; k++)
                sum += (uint64_t)a[row][k] * b[k][column];
            c[row][column] = sum;
        }
    }
}

static void fold(void)
{
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            a[row][column] = (uint32_t)(c[row][column] >> 32 ^ c[row][column]);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    fill(a, &random);
    fill(b, &random);
    for (uint64_t n = 0; n < iterations; n++) {
        multiply();
        fold();
    }

    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            hash = mix(hash, a[row][column]);
    return hash;
}
