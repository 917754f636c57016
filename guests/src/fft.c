/*
 * Fast Fourier transforms (radix 2) of 256 complex numbers in single
 * precision.
 *
 * The signal is pseudo random, between -1 and 1.  Each round transforms it
 * and transforms it back, so that only errors of rounding change it.  The
 * result is a checksum of the last signal, bit for bit.
 */
#include "guest.h"

#define BITS 8
#define POINTS (1 << BITS)

static float re[POINTS], im[POINTS];
static float spectrum_re[POINTS], spectrum_im[POINTS];

/*
 * The roots of unity of every stage.  Those of a stage lie side by side:
 * number half + j is exp(-i pi j / half), for half = 1, 2, 4, ...
 */
static float root_re[POINTS], root_im[POINTS];

/*
 * Computes the roots without sine and cosine.  Formulas for half an angle
 * give exp(-i pi / 2^k) for all k; every other root is a product of these.
 */
static void make_roots(void)
{
    double c[BITS] = { [1] = 0 }, s[BITS] = { [1] = -1 };

    for (int k = 2; k < BITS; k++) {
        c[k] = __builtin_sqrt((1 + c[k - 1]) / 2);
        s[k] = s[k - 1] / (2 * c[k]);
    }
    for (int k = 0; k < BITS; k++) {
        for (int j = 0; j < 1 << k; j++) {
            double x = 1, y = 0;

            for (int bit = 0; bit < k; bit++) {
                if (j >> bit & 1) {
                    double old = x;

                    x = x * c[k - bit] - y * s[k - bit];
                    y = old * s[k - bit] + y * c[k - bit];
                }
            }
            root_re[(1 << k) + j] = (float)x;
            root_im[(1 << k) + j] = (float)y;
        }
    }
}

/* Moves every number to the place whose index has its bits reversed. */
static void reorder(const float *restrict from, float *restrict to)
{
    uint32_t reversed = 0;

    for (uint32_t i = 0; i < POINTS; i++) {
        uint32_t bit = POINTS / 2;

        to[reversed] = from[i];
        /* Adds one at the upper end, where the carry goes downwards. */
        for (; reversed & bit; bit /= 2)
            reversed ^= bit;
        reversed |= bit;
    }
}

/*
 * Joins pairs of transforms of length `half`.  Complex products are made of
 * fused operations.
 */
static void butterflies(float *restrict x, float *restrict y, int half)
{
    const float *c = root_re + half, *s = root_im + half;

    for (int first = 0; first < POINTS; first += 2 * half) {
        float *restrict x0 = x + first, *restrict x1 = x0 + half;
        float *restrict y0 = y + first, *restrict y1 = y0 + half;

        for (int j = 0; j < half; j++) {
            float u = __builtin_fmaf(-s[j], y1[j], c[j] * x1[j]);
            float v = __builtin_fmaf(s[j], x1[j], c[j] * y1[j]);

            x1[j] = x0[j] - u;
            y1[j] = y0[j] - v;
            x0[j] += u;
            y0[j] += v;
        }
    }
}

static void transform(const float *from_re, const float *from_im,
                      float *to_re, float *to_im)
{
    reorder(from_re, to_re);
    reorder(from_im, to_im);
    for (int half = 1; half < POINTS; half *= 2)
        butterflies(to_re, to_im, half);
}

/* With real and imaginary parts exchanged, a transform is one back. */
static void transform_back(void)
{
    transform(spectrum_im, spectrum_re, im, re);
    for (int i = 0; i < POINTS; i++) {
        re[i] *= 1.0f / POINTS;
        im[i] *= 1.0f / POINTS;
    }
}

/* Between -1 and 1. */
static float random_part(uint64_t *random)
{
    return (float)((int64_t)next_random(random) >> 32) * 0x1p-31f;
}

static uint64_t mix_float(uint64_t hash, float value)
{
    uint32_t bits;

    __builtin_memcpy(&bits, &value, sizeof bits);
    return mix(hash, bits);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    make_roots();
    for (int i = 0; i < POINTS; i++) {
        re[i] = random_part(&random);
        im[i] = random_part(&random);
    }
    for (uint64_t n = 0; n < iterations; n++) {
        transform(re, im, spectrum_re, spectrum_im);
        transform_back();
    }

    for (int i = 0; i < POINTS; i++) {
        hash = mix_float(hash, re[i]);
        hash = mix_float(hash, im[i]);
    }
    return hash;
}
