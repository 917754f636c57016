/*
 * Blurring a grey picture of 128 by 128 bytes with binomial weights
 *
 *     1 2 1
 *     2 4 2   / 16, rounded to nearest
 *     1 2 1
 *
 * Beyond its edges the picture goes on with the pixels at the edges.
 *
 * The picture starts out pseudo random.  As blurring alone would leave it
 * grey in the end, each round first draws one row anew, the next in order.
 * The result is a checksum of the last picture.
 */
#include "guest.h"

#define SIZE 128

/* Pixels are made eight at a time. */
typedef union {
    uint64_t words[SIZE / 8];
    uint8_t pixels[SIZE];
} row_t;

static row_t picture[SIZE];

static void draw(row_t *row, uint64_t *random)
{
    for (int i = 0; i < SIZE / 8; i++)
        row->words[i] = next_random(random);
}

/* Adds up neighbours in a row with weights 1, 2, 1. */
static void blur_across(const uint8_t *restrict pixels, uint16_t *restrict sums)
{
    sums[0] = (uint16_t)(3 * pixels[0] + pixels[1]);
    for (int x = 1; x < SIZE - 1; x++)
        sums[x] = (uint16_t)(pixels[x - 1] + 2 * pixels[x] + pixels[x + 1]);
    sums[SIZE - 1] = (uint16_t)(pixels[SIZE - 2] + 3 * pixels[SIZE - 1]);
}

/* Does the same with three rows of sums. */
static void blur_down(const uint16_t *restrict above, const uint16_t *restrict here,
                      const uint16_t *restrict below, uint8_t *restrict pixels)
{
    for (int x = 0; x < SIZE; x++)
        pixels[x] = (uint8_t)((above[x] + 2 * here[x] + below[x] + 8) >> 4);
}

/* Blurs in place: of a row that is overwritten, the sums are still there. */
static void blur(void)
{
    uint16_t sums[3][SIZE];

    blur_across(picture[0].pixels, sums[0]);
    blur_across(picture[0].pixels, sums[1]);
    for (int y = 0; y < SIZE; y++) {
        uint16_t *above = sums[y % 3], *here = sums[(y + 1) % 3];
        uint16_t *below = sums[(y + 2) % 3];

        blur_across(picture[y < SIZE - 1 ? y + 1 : y].pixels, below);
        blur_down(above, here, below, picture[y].pixels);
    }
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    for (int y = 0; y < SIZE; y++)
        draw(&picture[y], &random);
    for (uint64_t n = 0; n < iterations; n++) {
        draw(&picture[n % SIZE], &random);
        blur();
    }

    for (int y = 0; y < SIZE; y++)
        for (int i = 0; i < SIZE / 8; i++)
            hash = mix(hash, picture[y].words[i]);
    return hash;
}
