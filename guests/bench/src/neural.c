/*
 * A neural network's forward pass in single precision: two convolutions with
 * pooling, two full layers and a softmax, for a picture of 16 x 16.
 *
 * Loops go over channels and outputs innermost, so that a compiler can use
 * vectors without changing the order of any sum.
 */
#include "guest.h"

#define SIDE 16
#define CHANNELS_1 8
#define CHANNELS_2 16
#define HIDDEN 48
#define CLASSES 10
#define FLAT (4 * 4 * CHANNELS_2)

static float picture[SIDE + 2][SIDE + 2];
static float kernel_1[3][3][CHANNELS_1], bias_1[CHANNELS_1];
static float map_1[SIDE][SIDE][CHANNELS_1];
static float pooled_1[SIDE / 2 + 2][SIDE / 2 + 2][CHANNELS_1];
static float kernel_2[3][3][CHANNELS_1][CHANNELS_2], bias_2[CHANNELS_2];
static float map_2[SIDE / 2][SIDE / 2][CHANNELS_2];
static float flat[FLAT];
static float weights_3[FLAT][HIDDEN], bias_3[HIDDEN], hidden[HIDDEN];
static float weights_4[HIDDEN][CLASSES], bias_4[CLASSES], classes[CLASSES];

static float fraction(uint64_t *random)
{
    return (float)((int64_t)next_random(random) >> 39) * 0x1p-24f;
}

static void fill(float *to, int count, float size, uint64_t *random)
{
    for (int i = 0; i < count; i++)
        to[i] = fraction(random) * size;
}

#define FILL(array, size) fill((float *)(array), sizeof(array) / sizeof(float), size, random)

static void make_weights(uint64_t *random)
{
    FILL(kernel_1, 0.7f);
    FILL(bias_1, 0.1f);
    FILL(kernel_2, 0.25f);
    FILL(bias_2, 0.1f);
    FILL(weights_3, 0.15f);
    FILL(bias_3, 0.1f);
    FILL(weights_4, 0.3f);
    FILL(bias_4, 0.1f);
    for (int i = 0; i < SIDE / 2 + 2; i++) {
        for (int j = 0; j < SIDE / 2 + 2; j++) {
            for (int c = 0; c < CHANNELS_1; c++)
                pooled_1[i][j][c] = 0.0f;
        }
    }
}

/* --- layers --- */

static float rectified(float x)
{
    return x > 0.0f ? x : 0.0f;
}

static void convolve_1(void)
{
    for (int y = 0; y < SIDE; y++) {
        for (int x = 0; x < SIDE; x++) {
            float sums[CHANNELS_1];

            for (int c = 0; c < CHANNELS_1; c++)
                sums[c] = bias_1[c];
            for (int i = 0; i < 3; i++) {
                for (int j = 0; j < 3; j++) {
                    float pixel = picture[y + i][x + j];

                    for (int c = 0; c < CHANNELS_1; c++)
                        sums[c] += pixel * kernel_1[i][j][c];
                }
            }
            for (int c = 0; c < CHANNELS_1; c++)
                map_1[y][x][c] = rectified(sums[c]);
        }
    }
}

static void convolve_2(void)
{
    for (int y = 0; y < SIDE / 2; y++) {
        for (int x = 0; x < SIDE / 2; x++) {
            float sums[CHANNELS_2];

            for (int c = 0; c < CHANNELS_2; c++)
                sums[c] = bias_2[c];
            for (int i = 0; i < 3; i++) {
                for (int j = 0; j < 3; j++) {
                    for (int from = 0; from < CHANNELS_1; from++) {
                        float value = pooled_1[y + i][x + j][from];

                        for (int c = 0; c < CHANNELS_2; c++)
                            sums[c] += value * kernel_2[i][j][from][c];
                    }
                }
            }
            for (int c = 0; c < CHANNELS_2; c++)
                map_2[y][x][c] = rectified(sums[c]);
        }
    }
}

static float greater(float a, float b)
{
    return a > b ? a : b;
}

static void pool_1(void)
{
    for (int y = 0; y < SIDE / 2; y++) {
        for (int x = 0; x < SIDE / 2; x++) {
            for (int c = 0; c < CHANNELS_1; c++)
                pooled_1[y + 1][x + 1][c] =
                    greater(greater(map_1[2 * y][2 * x][c], map_1[2 * y][2 * x + 1][c]),
                            greater(map_1[2 * y + 1][2 * x][c],
                                    map_1[2 * y + 1][2 * x + 1][c]));
        }
    }
}

/* The second pooling takes means. */
static void pool_2(void)
{
    for (int y = 0; y < SIDE / 4; y++) {
        for (int x = 0; x < SIDE / 4; x++) {
            for (int c = 0; c < CHANNELS_2; c++)
                flat[(y * 4 + x) * CHANNELS_2 + c] =
                    0.25f * (map_2[2 * y][2 * x][c] + map_2[2 * y][2 * x + 1][c] +
                             map_2[2 * y + 1][2 * x][c] + map_2[2 * y + 1][2 * x + 1][c]);
        }
    }
}

static void full_layers(void)
{
    for (int j = 0; j < HIDDEN; j++)
        hidden[j] = bias_3[j];
    for (int i = 0; i < FLAT; i++) {
        for (int j = 0; j < HIDDEN; j++)
            hidden[j] += flat[i] * weights_3[i][j];
    }
    for (int j = 0; j < CLASSES; j++)
        classes[j] = bias_4[j];
    for (int i = 0; i < HIDDEN; i++) {
        float value = rectified(hidden[i]);

        for (int j = 0; j < CLASSES; j++)
            classes[j] += value * weights_4[i][j];
    }
}

/* e to the x: a power of two by the exponent's bits, the rest by a polynomial. */
static float exponential(float x)
{
    float scaled = x * 1.44269504f, whole = __builtin_floorf(scaled);
    float t = (scaled - whole) * 0.69314718f, result;
    int32_t exponent = (int32_t)whole;
    uint32_t bits;

    if (exponent < -126)
        return 0.0f;
    bits = (uint32_t)(exponent + 127) << 23;
    __builtin_memcpy(&result, &bits, sizeof result);
    return result *
           (1.0f + t * (1.0f + t * (0.5f + t * (0.16666667f + t * (0.041666667f +
                                                                   t * 0.0083333333f)))));
}

/* Returns the most likely class. */
static int softmax(void)
{
    int best = 0;
    float sum = 0.0f;

    for (int i = 1; i < CLASSES; i++) {
        if (classes[i] > classes[best])
            best = i;
    }
    for (int i = 0; i < CLASSES; i++) {
        if (i != best)
            classes[i] = exponential(classes[i] - classes[best]);
        sum += i == best ? 1.0f : classes[i];
    }
    classes[best] = 1.0f;
    for (int i = 0; i < CLASSES; i++)
        classes[i] /= sum;
    return best;
}

static void make_picture(uint64_t *random)
{
    for (int y = 0; y < SIDE + 2; y++) {
        for (int x = 0; x < SIDE + 2; x++) {
            int border = y == 0 || x == 0 || y > SIDE || x > SIDE;

            picture[y][x] = border ? 0.0f : fraction(random) + 0.5f;
        }
    }
}

static uint64_t mix_floats(uint64_t hash, const float *values, int count)
{
    for (int i = 0; i < count; i++) {
        uint32_t bits;

        __builtin_memcpy(&bits, &values[i], sizeof bits);
        hash = mix(hash, bits);
    }
    return hash;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    make_weights(&random);
    for (uint64_t n = 0; n < iterations; n++) {
        make_picture(&random);
        convolve_1();
        pool_1();
        convolve_2();
        pool_2();
        full_layers();
        hash = mix(hash, (uint64_t)softmax());
        hash = mix_floats(hash, classes, CLASSES);
    }
    return hash;
}
