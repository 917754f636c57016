/*
 * DES (FIPS 46-3) in CBC mode: tables that are made at the start, and sixteen
 * rounds written out.
 *
 * A round encrypts 512 bytes with a new key.  The result is zero if a known
 * example fails.
 */
#include "guest.h"

#define BLOCKS 64

static const uint8_t initial[64] = {
    58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4,
    62, 54, 46, 38, 30, 22, 14, 6, 64, 56, 48, 40, 32, 24, 16, 8,
    57, 49, 41, 33, 25, 17, 9,  1, 59, 51, 43, 35, 27, 19, 11, 3,
    61, 53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
};

static const uint8_t last[64] = {
    40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31,
    38, 6, 46, 14, 54, 22, 62, 30, 37, 5, 45, 13, 53, 21, 61, 29,
    36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27,
    34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9,  49, 17, 57, 25,
};

static const uint8_t choice_1[56] = {
    57, 49, 41, 33, 25, 17, 9,  1,  58, 50, 42, 34, 26, 18,
    10, 2,  59, 51, 43, 35, 27, 19, 11, 3,  60, 52, 44, 36,
    63, 55, 47, 39, 31, 23, 15, 7,  62, 54, 46, 38, 30, 22,
    14, 6,  61, 53, 45, 37, 29, 21, 13, 5,  28, 20, 12, 4,
};

static const uint8_t choice_2[48] = {
    14, 17, 11, 24, 1,  5,  3,  28, 15, 6,  21, 10, 23, 19, 12, 4,
    26, 8,  16, 7,  27, 20, 13, 2,  41, 52, 31, 37, 47, 55, 30, 40,
    51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
};

static const uint8_t permutation[32] = {
    16, 7, 20, 21, 29, 12, 28, 17, 1,  15, 23, 26, 5,  18, 31, 10,
    2,  8, 24, 14, 32, 27, 3,  9,  19, 13, 30, 6,  22, 11, 4,  25,
};

static const uint8_t shifts[16] = { 1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1 };

static const uint8_t boxes[8][64] = {
    { 14, 4,  13, 1, 2,  15, 11, 8,  3,  10, 6,  12, 5,  9,  0, 7,
      0,  15, 7,  4, 14, 2,  13, 1,  10, 6,  12, 11, 9,  5,  3, 8,
      4,  1,  14, 8, 13, 6,  2,  11, 15, 12, 9,  7,  3,  10, 5, 0,
      15, 12, 8,  2, 4,  9,  1,  7,  5,  11, 3,  14, 10, 0,  6, 13 },
    { 15, 1,  8,  14, 6,  11, 3,  4,  9,  7, 2,  13, 12, 0, 5,  10,
      3,  13, 4,  7,  15, 2,  8,  14, 12, 0, 1,  10, 6,  9, 11, 5,
      0,  14, 7,  11, 10, 4,  13, 1,  5,  8, 12, 6,  9,  3, 2,  15,
      13, 8,  10, 1,  3,  15, 4,  2,  11, 6, 7,  12, 0,  5, 14, 9 },
    { 10, 0,  9,  14, 6, 3,  15, 5,  1,  13, 12, 7,  11, 4,  2,  8,
      13, 7,  0,  9,  3, 4,  6,  10, 2,  8,  5,  14, 12, 11, 15, 1,
      13, 6,  4,  9,  8, 15, 3,  0,  11, 1,  2,  12, 5,  10, 14, 7,
      1,  10, 13, 0,  6, 9,  8,  7,  4,  15, 14, 3,  11, 5,  2,  12 },
    { 7,  13, 14, 3, 0,  6,  9,  10, 1,  2, 8, 5,  11, 12, 4,  15,
      13, 8,  11, 5, 6,  15, 0,  3,  4,  7, 2, 12, 1,  10, 14, 9,
      10, 6,  9,  0, 12, 11, 7,  13, 15, 1, 3, 14, 5,  2,  8,  4,
      3,  15, 0,  6, 10, 1,  13, 8,  9,  4, 5, 11, 12, 7,  2,  14 },
    { 2,  12, 4,  1,  7,  10, 11, 6,  8,  5,  3,  15, 13, 0, 14, 9,
      14, 11, 2,  12, 4,  7,  13, 1,  5,  0,  15, 10, 3,  9, 8,  6,
      4,  2,  1,  11, 10, 13, 7,  8,  15, 9,  12, 5,  6,  3, 0,  14,
      11, 8,  12, 7,  1,  14, 2,  13, 6,  15, 0,  9,  10, 4, 5,  3 },
    { 12, 1,  10, 15, 9, 2,  6,  8,  0,  13, 3,  4,  14, 7,  5,  11,
      10, 15, 4,  2,  7, 12, 9,  5,  6,  1,  13, 14, 0,  11, 3,  8,
      9,  14, 15, 5,  2, 8,  12, 3,  7,  0,  4,  10, 1,  13, 11, 6,
      4,  3,  2,  12, 9, 5,  15, 10, 11, 14, 1,  7,  6,  0,  8,  13 },
    { 4,  11, 2,  14, 15, 0, 8,  13, 3,  12, 9, 7,  5,  10, 6, 1,
      13, 0,  11, 7,  4,  9, 1,  10, 14, 3,  5, 12, 2,  15, 8, 6,
      1,  4,  11, 13, 12, 3, 7,  14, 10, 15, 6, 8,  0,  5,  9, 2,
      6,  11, 13, 8,  1,  4, 10, 7,  9,  5,  0, 15, 14, 2,  3, 12 },
    { 13, 2,  8,  4, 6,  15, 11, 1,  10, 9,  3,  14, 5,  0,  12, 7,
      1,  15, 13, 8, 10, 3,  7,  4,  12, 5,  6,  11, 0,  14, 9,  2,
      7,  11, 4,  1, 9,  12, 14, 2,  0,  6,  10, 13, 15, 3,  5,  8,
      2,  1,  14, 7, 4,  10, 8,  13, 15, 12, 9,  0,  3,  5,  6,  11 },
};

/* A box and the permutation after it, for each of its inputs. */
static uint32_t combined[8][64];
static uint64_t blocks[BLOCKS];

/* Picks the bits that a table names; bit 1 is the highest of `width`. */
static uint64_t permute(uint64_t x, int width, const uint8_t *table, int count)
{
    uint64_t result = 0;

    for (int i = 0; i < count; i++)
        result = result << 1 | (x >> (width - table[i]) & 1);
    return result;
}

static void make_tables(void)
{
    for (int box = 0; box < 8; box++) {
        for (int in = 0; in < 64; in++) {
            int row = (in >> 4 & 2) | (in & 1), column = in >> 1 & 15;
            uint64_t out = (uint64_t)boxes[box][16 * row + column]
                           << (28 - 4 * box);

            combined[box][in] = (uint32_t)permute(out, 32, permutation, 32);
        }
    }
}

static uint64_t rotate28(uint64_t x, int by)
{
    return (x << by | x >> (28 - by)) & 0xfffffff;
}

static void set_key(uint64_t keys[16], uint64_t key)
{
    uint64_t chosen = permute(key, 64, choice_1, 56);
    uint64_t c = chosen >> 28, d = chosen & 0xfffffff;

    for (int i = 0; i < 16; i++) {
        c = rotate28(c, shifts[i]);
        d = rotate28(d, shifts[i]);
        keys[i] = permute(c << 28 | d, 56, choice_2, 48);
    }
}

static inline __attribute__((always_inline)) uint32_t f(uint32_t r, uint64_t key)
{
    /* The six bits for each box overlap: r once more, rotated. */
    uint64_t wide = (uint64_t)r << 33 | (uint64_t)r << 1 | r >> 31;

    return combined[0][(wide >> 28 ^ key >> 42) & 63] ^
           combined[1][(wide >> 24 ^ key >> 36) & 63] ^
           combined[2][(wide >> 20 ^ key >> 30) & 63] ^
           combined[3][(wide >> 16 ^ key >> 24) & 63] ^
           combined[4][(wide >> 12 ^ key >> 18) & 63] ^
           combined[5][(wide >> 8 ^ key >> 12) & 63] ^
           combined[6][(wide >> 4 ^ key >> 6) & 63] ^
           combined[7][(wide ^ key) & 63];
}

#define TWO_ROUNDS(i)                                                        \
    l ^= f(r, keys[i]);                                                      \
    r ^= f(l, keys[i + 1]);

static uint64_t encrypt(const uint64_t keys[16], uint64_t block)
{
    uint64_t mixed = permute(block, 64, initial, 64);
    uint32_t l = (uint32_t)(mixed >> 32), r = (uint32_t)mixed;

    TWO_ROUNDS(0)
    TWO_ROUNDS(2)
    TWO_ROUNDS(4)
    TWO_ROUNDS(6)
    TWO_ROUNDS(8)
    TWO_ROUNDS(10)
    TWO_ROUNDS(12)
    TWO_ROUNDS(14)
    return permute((uint64_t)r << 32 | l, 64, last, 64);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START, chain = 0;
    uint64_t keys[16];

    make_tables();
    set_key(keys, 0x133457799bbcdff1);
    if (encrypt(keys, 0x0123456789abcdef) != 0x85e813540f0ab405)
        return 0;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = next_random(&random);
    for (uint64_t n = 0; n < iterations; n++) {
        set_key(keys, next_random(&random));
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = chain = encrypt(keys, blocks[i] ^ chain);
    }
    for (int i = 0; i < BLOCKS; i++)
        hash = mix(hash, blocks[i]);
    return hash;
}
