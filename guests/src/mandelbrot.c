/*
 * One row of a picture of the Mandelbrot set, in fixed point.
 *
 * At entry:
 *   x0  row      the lane's index; row 0 is the top of the picture
 *   x1  width    pixels in a row, at most 4096
 *   x2  height   rows in the picture
 *   x3  limit    most iterations for a pixel, at most 65535
 *   x4  re       centre of the picture, Q4.60
 *   x5  im
 *   x6  scale    distance between neighbouring pixels, Q4.60
 *
 * Q4.60 is a signed 64-bit number that counts units of 2^-60.  Both
 * coordinates of every pixel must lie strictly between -4 and 4, and the
 * picture must be less than 8 wide and high.
 *
 * Left behind for pixel x of the row:
 *   counts[x]   u16 at 0x40000 + 2x: iterations before |z| > 2, or limit
 *   squares[x]  u16 at 0x42000 + 2x: |z|^2 after them, in units of 1/256
 * and in x0 the sum of the counts.
 *
 * Smooth colours on the host, for a pixel with n = counts[x] < limit:
 *
 *   mu = n + 1 - log2(log2(squares[x] / 256.0) / 2)
 *
 * |z|^2 is above 4 then, so both logarithms exist (let squares[x] be at least
 * 1025).  mu runs almost without steps from pixel to pixel; take the colour
 * from, say, the phase 0.05 * mu or from log(mu).  A pixel with n = limit
 * belongs to the set as far as we know: paint it black.
 */
#include "guest.h"

#define WIDEST 4096

#ifdef GUEST_LINUX
static uint16_t counts[WIDEST];
static uint16_t squares[WIDEST];
#else
#define counts ((uint16_t *)0x40000)
#define squares ((uint16_t *)0x42000)
#endif

/* 4, the square of the bailout radius, as the upper half of a product. */
#define FOUR ((uint64_t)1 << 58)

/*
 * The upper half of the 128-bit product: one SMULH.  The product of two
 * Q4.60 numbers is Q8.120, so its upper half is Q8.56; shifting that left by
 * four gives Q4.60 again.
 */
static inline uint64_t upper_product(int64_t a, int64_t b)
{
    return (uint64_t)((__int128)a * b >> 64);
}

/* The number of iterations for the point (re, im); |z|^2 at their end. */
static inline uint64_t iterate(uint64_t re, uint64_t im, uint64_t limit,
                               uint64_t *square)
{
    uint64_t x = 0, y = 0, n = 0;

    for (;;) {
        uint64_t xx = upper_product((int64_t)x, (int64_t)x);
        uint64_t yy = upper_product((int64_t)y, (int64_t)y);
        uint64_t xy = upper_product((int64_t)x, (int64_t)y);

        *square = xx + yy;
        if (xx + yy > FOUR || n == limit)
            return n;
        x = ((xx - yy) << 4) + re;
        y = (xy << 5) + im;
        n++;
    }
}

/* The offset of pixel `index` out of `count` from the centre. */
static inline uint64_t offset(uint64_t index, uint64_t count, uint64_t scale)
{
    return (uint64_t)((int64_t)((2 * index + 1 - count) * scale) >> 1);
}

uint64_t run(uint64_t row, uint64_t width, uint64_t height, uint64_t limit,
             uint64_t re, uint64_t im, uint64_t scale)
{
    uint64_t total = 0;

    if (width > WIDEST)
        width = WIDEST;
    if (limit > UINT16_MAX)
        limit = UINT16_MAX;

    re += offset(0, width, scale);
    im -= offset(row, height, scale);
    for (uint64_t x = 0; x < width; x++, re += scale) {
        uint64_t square;
        uint64_t n = iterate(re, im, limit, &square);

        counts[x] = (uint16_t)n;
        squares[x] = (uint16_t)(square >> 48);
        total += n;
    }
    return total;
}

#ifdef GUEST_LINUX
static uint64_t checksum(const uint16_t *row)
{
    uint64_t hash = MIX_START;

    for (size_t x = 0; x < WIDEST; x++)
        hash = mix(hash, row[x]);
    return hash;
}

/* Called after run(): two more lines of output, for both buffers in full. */
void report(void (*print)(uint64_t))
{
    print(checksum(counts));
    print(checksum(squares));
}
#endif
