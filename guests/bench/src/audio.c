/*
 * Sound as 16-bit samples: a mixer with volume and saturation, an FIR filter,
 * an equaliser of biquads in fixed point, an echo, ADPCM coding and decoding,
 * and a meter of peaks and energy.
 *
 * A round works on a block of 512 samples of two channels.
 */
#include "guest.h"

#define BLOCK 512
#define TAPS 32
#define ECHO 2048
#define BANDS 4
#define VOICES 3

static int16_t voices[VOICES][BLOCK];
static int16_t history[TAPS + BLOCK], filtered[BLOCK], played[BLOCK];
static int16_t left[BLOCK], right[BLOCK], stereo[2 * BLOCK];
static int16_t taps[TAPS];
static int16_t echo[ECHO];
static uint8_t coded[BLOCK];

struct biquad {
    int32_t b0, b1, b2, a1, a2; /* in units of 2^-14 */
    int32_t x1, x2, y1, y2;
};

static struct biquad bands[BANDS];

static int16_t saturated(int32_t x)
{
    return x > 32767 ? 32767 : x < -32768 ? -32768 : (int16_t)x;
}

/* --- sources --- */

struct voice {
    uint32_t phase, step;
    int16_t volume;
};

static struct voice players[VOICES];

/* A triangle, a saw tooth and noise. */
static void play(uint64_t *random)
{
    for (int i = 0; i < BLOCK; i++) {
        uint32_t phase = players[0].phase += players[0].step;

        voices[0][i] = (int16_t)((phase & 0x80000000u ? ~phase : phase) >> 15);
        voices[1][i] = (int16_t)((players[1].phase += players[1].step) >> 16);
    }
    for (int i = 0; i < BLOCK; i += 4) {
        uint64_t r = next_random(random);

        for (int j = 0; j < 4; j++)
            voices[2][i + j] = (int16_t)(r >> 16 * j);
    }
}

static void mix_voices(int16_t *to)
{
    for (int i = 0; i < BLOCK; i++) {
        int32_t sum = 0;

        for (int v = 0; v < VOICES; v++)
            sum += voices[v][i] * players[v].volume;
        to[i] = saturated(sum >> 14);
    }
}

/* --- filters --- */

/* The block lies behind the last samples of the one before. */
static void fir(void)
{
    for (int i = 0; i < BLOCK; i++) {
        int32_t sum = 1 << 14;

        for (int k = 0; k < TAPS; k++)
            sum += history[i + k] * taps[k];
        filtered[i] = saturated(sum >> 15);
    }
    for (int i = 0; i < TAPS; i++)
        history[i] = history[i + BLOCK];
}

static void equalise(struct biquad *b, int16_t *block)
{
    for (int i = 0; i < BLOCK; i++) {
        int32_t x = block[i];
        int64_t sum = (int64_t)b->b0 * x + (int64_t)b->b1 * b->x1 + (int64_t)b->b2 * b->x2 -
                      (int64_t)b->a1 * b->y1 - (int64_t)b->a2 * b->y2;
        int32_t y = saturated((int32_t)(sum >> 14));

        b->x2 = b->x1;
        b->x1 = x;
        b->y2 = b->y1;
        b->y1 = y;
        block[i] = (int16_t)y;
    }
}

static void add_echo(int16_t *block, uint64_t round)
{
    int16_t *past = echo + round % (ECHO / BLOCK) * BLOCK;

    for (int i = 0; i < BLOCK; i++) {
        int32_t with = block[i] + (past[i] * 13 >> 5);

        block[i] = past[i] = saturated(with);
    }
}

/* The second channel hears the block with its neighbours blurred. */
static void spread(void)
{
    for (int i = 0; i < BLOCK; i++)
        left[i] = (int16_t)((played[i] * 3 + filtered[i]) >> 2);
    right[0] = played[0];
    right[BLOCK - 1] = played[BLOCK - 1];
    for (int i = 1; i < BLOCK - 1; i++)
        right[i] = (int16_t)((played[i - 1] + 2 * played[i] + played[i + 1]) >> 2);
    for (int i = 0; i < BLOCK; i++) {
        stereo[2 * i] = left[i];
        stereo[2 * i + 1] = right[i];
    }
}

/* --- ADPCM: four bits a sample, in steps that adapt --- */

struct coder {
    int32_t value, step;
};

static int32_t adapt(int32_t step, int code)
{
    static const int16_t factors[8] = { 230, 230, 230, 230, 307, 409, 512, 614 };

    step = step * factors[code & 7] >> 8;
    return step < 16 ? 16 : step > 16384 ? 16384 : step;
}

static void advance(struct coder *c, int code)
{
    int32_t difference = c->step * (2 * (code & 7) + 1) >> 3;

    c->value = saturated(c->value + (code & 8 ? -difference : difference));
    c->step = adapt(c->step, code);
}

static void encode(struct coder *c, const int16_t *from)
{
    for (int i = 0; i < BLOCK; i++) {
        int32_t difference = from[i] - c->value;
        int code = difference < 0 ? 8 : 0;
        int32_t quotient = (difference < 0 ? -difference : difference) * 4 / c->step;

        code |= quotient > 7 ? 7 : quotient;
        advance(c, code);
        coded[i] = (uint8_t)code;
    }
}

static uint64_t decode(struct coder *c, const int16_t *original, uint64_t hash)
{
    uint64_t error = 0;

    for (int i = 0; i < BLOCK; i++) {
        int32_t off;

        advance(c, coded[i]);
        off = original[i] - c->value;
        error += (uint64_t)((int64_t)off * off);
    }
    return mix(hash, error);
}

/* --- the meter --- */

static uint64_t meter(const int16_t *block, int count, uint64_t hash)
{
    int16_t most = -32768, least = 32767;
    int64_t energy = 0;
    int32_t sum = 0;

    for (int i = 0; i < count; i++) {
        most = block[i] > most ? block[i] : most;
        least = block[i] < least ? block[i] : least;
        sum += block[i];
        energy += block[i] * block[i];
    }
    hash = mix(hash, (uint16_t)most | (uint64_t)(uint16_t)least << 16);
    return mix(mix(hash, (uint64_t)(int64_t)sum), (uint64_t)energy);
}

static void start(uint64_t *random)
{
    for (int v = 0; v < VOICES; v++) {
        players[v].phase = 0;
        players[v].step = (uint32_t)next_random(random) >> 6;
        players[v].volume = (int16_t)(3000 + next_random(random) % 6000);
    }
    for (int k = 0; k < TAPS; k++) {
        int distance = k < TAPS / 2 ? k : TAPS - 1 - k;

        taps[k] = (int16_t)(distance * distance * 9 - 100);
    }
    for (int i = 0; i < TAPS; i++)
        history[i] = 0;
    for (int i = 0; i < ECHO; i++)
        echo[i] = 0;
    for (int i = 0; i < BANDS; i++)
        bands[i] = (struct biquad){ .b0 = 14000 - 900 * i, .b1 = -6000 + 2500 * i,
                                    .b2 = 3000, .a1 = -9000 + 3500 * i, .a2 = 4000 };
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;
    struct coder encoder = { 0, 64 }, decoder = { 0, 64 };

    start(&random);
    for (uint64_t n = 0; n < iterations; n++) {
        play(&random);
        mix_voices(history + TAPS);
        fir();
        for (int i = 0; i < BLOCK; i++)
            played[i] = filtered[i];
        for (int i = 0; i < BANDS; i++)
            equalise(&bands[i], played);
        add_echo(played, n);
        spread();
        encode(&encoder, left);
        hash = decode(&decoder, left, hash);
        hash = meter(stereo, 2 * BLOCK, hash);
    }
    return hash;
}
