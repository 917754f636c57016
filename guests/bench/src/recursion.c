/*
 * Deep and wide recursion: N-queens, Ackermann's and Takeuchi's functions,
 * permutations, and the towers of Hanoi.
 */
#include "guest.h"

static uint64_t calls;

#define NOINLINE __attribute__((noinline))

/* --- queens, counted with bits for columns and both diagonals --- */

static NOINLINE uint64_t queens(uint32_t all, uint32_t columns, uint32_t left,
                                uint32_t right)
{
    uint32_t possible = all & ~(columns | left | right);
    uint64_t solutions = 0;

    calls++;
    if (columns == all)
        return 1;
    while (possible) {
        uint32_t place = possible & -possible;

        possible ^= place;
        solutions += queens(all, columns | place, (left | place) << 1,
                            (right | place) >> 1);
    }
    return solutions;
}

static NOINLINE uint64_t ackermann(uint64_t m, uint64_t n)
{
    calls++;
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

static NOINLINE int64_t tak(int64_t x, int64_t y, int64_t z)
{
    calls++;
    if (y >= x)
        return z;
    return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y));
}

/* --- two functions that call each other; every fifth call turns it round --- */

static int is_odd(uint32_t n);

static NOINLINE int is_even(uint32_t n)
{
    calls++;
    return n == 0 ? 1 : is_odd(n - 1) ^ (n % 5 == 3);
}

static NOINLINE int is_odd(uint32_t n)
{
    calls++;
    return n == 0 ? 0 : is_even(n - 1) ^ (n % 5 == 3);
}

/* --- permutations, each folded into a checksum --- */

static NOINLINE uint64_t permute(uint8_t *v, int from, int count, uint64_t hash)
{
    calls++;
    if (from == count) {
        for (int i = 0; i < count; i++)
            hash = hash * 31 + v[i];
        return hash;
    }
    for (int i = from; i < count; i++) {
        uint8_t first = v[from];

        v[from] = v[i];
        v[i] = first;
        hash = permute(v, from + 1, count, hash);
        v[i] = v[from];
        v[from] = first;
    }
    return hash;
}

static uint8_t pegs[3][16];
static int heights[3];

static NOINLINE void hanoi(int discs, int from, int to)
{
    calls++;
    if (discs == 0)
        return;
    hanoi(discs - 1, from, 3 - from - to);
    pegs[to][heights[to]++] = pegs[from][--heights[from]];
    hanoi(discs - 1, 3 - from - to, to);
}

static uint64_t towers(int discs, int from, int to)
{
    uint64_t hash = 0;

    heights[0] = heights[1] = heights[2] = 0;
    for (int i = 0; i < discs; i++)
        pegs[from][heights[from]++] = (uint8_t)(discs - i);
    hanoi(discs, from, to);
    for (int i = 0; i < heights[to]; i++)
        hash = hash * 17 + pegs[to][i];
    return hash;
}

/* The sum of a list's numbers, added after each call returns. */
static NOINLINE uint64_t sum_of_digits(uint64_t seed, int depth)
{
    calls++;
    if (depth == 0)
        return 0;
    return sum_of_digits(seed * 6364136223846793005u + 1, depth - 1) * 3 +
           (seed >> 60);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    calls = 0;
    for (uint64_t n = 0; n < iterations; n++) {
        uint64_t r = next_random(&random);
        uint8_t v[7];

        hash = mix(hash, queens(127, (uint32_t)1 << r % 7, 0, 0));
        hash = mix(hash, ackermann(2, 20 + (r >> 8 & 31)));
        hash = mix(hash, (uint64_t)tak(9 + (int64_t)(r >> 16 & 1), 6, 3));
        hash = mix(hash, (uint64_t)is_even(500 + (r >> 20 & 1023)));
        for (int i = 0; i < 7; i++)
            v[i] = (uint8_t)(r >> 8 * i);
        hash = permute(v, 0, 6, hash);
        hash = mix(hash, towers(8, (int)(r >> 32) % 3 == 0, 2));
        hash = mix(hash, sum_of_digits(r, 2000));
    }
    return mix(hash, calls);
}
