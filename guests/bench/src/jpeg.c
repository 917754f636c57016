/*
 * A decoder of pictures in the manner of JPEG: Huffman codes, dequantisation,
 * an inverse cosine transform in fixed point, upsampling and colours.
 *
 * The start writes a stream of coded coefficients.  A round decodes it into a
 * picture of 96 x 64 pixels, with four blocks of brightness to two of colour,
 * and other quantisation in every round.
 */
#include "guest.h"

#define WIDTH 96
#define HEIGHT 64
#define MACROBLOCKS ((WIDTH / 16) * (HEIGHT / 16))
#define STREAM 32768

static const uint8_t zigzag[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* Numbers of codes of each length from 1 to 16. */
static const uint8_t dc_lengths[16] = { 0, 1, 5, 1, 1, 1, 1, 1, 1 };
static const uint8_t ac_lengths[16] = { 0, 2, 1, 3, 3, 2, 4, 3,
                                        5, 5, 4, 4, 0, 0, 1, 125 };

struct huffman {
    uint8_t symbols[256];
    int32_t first[18], offset[18], count[18]; /* by length */
    uint16_t code[256];                       /* by symbol */
    uint8_t length[256];
};

static struct huffman dc_codes, ac_codes;
static uint8_t stream[STREAM];
static uint8_t picture[HEIGHT][WIDTH][3];

/* --- codes --- */

static void set_codes(struct huffman *h, const uint8_t *lengths)
{
    int32_t code = 0, index = 0;

    for (int length = 1; length <= 16; length++) {
        h->first[length] = code;
        h->offset[length] = index;
        h->count[length] = lengths[length - 1];
        for (int i = 0; i < lengths[length - 1]; i++) {
            h->code[h->symbols[index]] = (uint16_t)code++;
            h->length[h->symbols[index++]] = (uint8_t)length;
        }
        code <<= 1;
    }
}

/* Short runs of small numbers come first: they get the short codes. */
static void order_ac_symbols(void)
{
    int count = 0;

    ac_codes.symbols[count++] = 0x00; /* the end of a block */
    for (int sum = 1; sum <= 25; sum++) {
        for (int size = 1; size <= 10; size++) {
            int run = sum - size;

            if (run >= 0 && run <= 15)
                ac_codes.symbols[count++] = (uint8_t)(run << 4 | size);
        }
    }
    ac_codes.symbols[count++] = 0xf0; /* sixteen zeros */
}

/* --- the writer --- */

struct writer {
    uint64_t held;
    int bits, at;
};

static void put_bits(struct writer *w, uint32_t value, int count)
{
    w->held = w->held << count | value;
    w->bits += count;
    while (w->bits >= 8) {
        w->bits -= 8;
        stream[w->at++] = (uint8_t)(w->held >> w->bits);
    }
}

static int size_of(int value)
{
    int magnitude = value < 0 ? -value : value, size = 0;

    for (; magnitude; magnitude >>= 1)
        size++;
    return size;
}

static void put_value(struct writer *w, int value, int size)
{
    put_bits(w, (uint32_t)(value < 0 ? value + (1 << size) - 1 : value), size);
}

static void put_symbol(struct writer *w, const struct huffman *h, int symbol)
{
    put_bits(w, h->code[symbol], h->length[symbol]);
}

static void put_block(struct writer *w, uint64_t *random, int *last, int ac_count)
{
    uint64_t r = next_random(random);
    int dc = (int)(r & 127) - 64, size = size_of(dc - *last), run = 0, end = 0;
    int values[64] = { 0 };

    put_symbol(w, &dc_codes, size);
    put_value(w, dc - *last, size);
    *last = dc;
    for (int i = 0; i < ac_count; i++) {
        int at = 1 + (int)(next_random(random) % (uint64_t)(4 + 6 * i)) % 63;

        values[at] = (int)(next_random(random) % 31) - 15;
        if (values[at] && at > end)
            end = at;
    }
    for (int i = 1; i <= end; i++) {
        if (!values[i]) {
            run++;
            continue;
        }
        for (; run > 15; run -= 16)
            put_symbol(w, &ac_codes, 0xf0);
        size = size_of(values[i]);
        put_symbol(w, &ac_codes, run << 4 | size);
        put_value(w, values[i], size);
        run = 0;
    }
    if (end < 63)
        put_symbol(w, &ac_codes, 0);
}

static void write_stream(uint64_t *random)
{
    struct writer w = { 0 };
    int last[3] = { 0 };

    for (int i = 0; i < MACROBLOCKS; i++) {
        for (int block = 0; block < 6; block++)
            put_block(&w, random, &last[block < 4 ? 0 : block - 3],
                      block < 4 ? 6 + i % 6 : 3);
    }
    put_bits(&w, 0, 24);
}

/* --- the reader --- */

struct reader {
    uint64_t held;
    int bits, at;
};

static int get_bit(struct reader *r)
{
    if (r->bits == 0) {
        r->held = stream[r->at++];
        r->bits = 8;
    }
    return (int)(r->held >> --r->bits & 1);
}

static void fill(struct reader *r)
{
    while (r->bits <= 48) {
        r->held = r->held << 8 | stream[r->at++];
        r->bits += 8;
    }
}

static int get_value(struct reader *r, int size)
{
    int value;

    if (!size)
        return 0;
    fill(r);
    r->bits -= size;
    value = (int)(r->held >> r->bits & ((1u << size) - 1));
    return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

static int get_symbol(struct reader *r, const struct huffman *h)
{
    int32_t code = 0;

    for (int length = 1; length <= 16; length++) {
        code = code << 1 | get_bit(r);
        if (code - h->first[length] < h->count[length])
            return h->symbols[h->offset[length] + code - h->first[length]];
    }
    return 0;
}

static void get_block(struct reader *r, int *last, const uint16_t *quantiser,
                      int32_t out[64])
{
    for (int i = 0; i < 64; i++)
        out[i] = 0;
    *last += get_value(r, get_symbol(r, &dc_codes));
    out[0] = *last * quantiser[0];
    for (int at = 1; at < 64; at++) {
        int symbol = get_symbol(r, &ac_codes), size = symbol & 15;

        if (!size) {
            if (symbol != 0xf0)
                return;
            at += 15;
            continue;
        }
        at += symbol >> 4;
        out[zigzag[at & 63]] = get_value(r, size) * quantiser[at & 63];
    }
}

/* --- the inverse transform, with numbers in units of 2^-12 --- */

#define FIXED(x) ((int32_t)((x) * 4096 + 0.5))

/* One row or column; `step` is the distance between its numbers. */
static void transform(int32_t *v, int step, int32_t round, int shift)
{
    int32_t even_2 = v[2 * step], even_6 = v[6 * step];
    int32_t turned = (even_2 + even_6) * FIXED(0.5411961);
    int32_t t2 = turned - even_6 * FIXED(1.847759065);
    int32_t t3 = turned + even_2 * FIXED(0.765366865);
    int32_t t0 = (v[0] + v[4 * step]) * 4096, t1 = (v[0] - v[4 * step]) * 4096;
    int32_t x0 = t0 + t3 + round, x3 = t0 - t3 + round;
    int32_t x1 = t1 + t2 + round, x2 = t1 - t2 + round;
    int32_t a = v[7 * step], b = v[5 * step], c = v[3 * step], d = v[step];
    int32_t p3 = a + c, p4 = b + d, p1 = a + d, p2 = b + c;
    int32_t p5 = (p3 + p4) * FIXED(1.175875602);
    int32_t q1 = p5 - p1 * FIXED(0.899976223), q2 = p5 - p2 * FIXED(2.562915447);
    int32_t q3 = -p3 * FIXED(1.961570560), q4 = -p4 * FIXED(0.390180644);
    int32_t o3 = d * FIXED(1.501321110) + q1 + q4;
    int32_t o2 = c * FIXED(3.072711026) + q2 + q3;
    int32_t o1 = b * FIXED(2.053119869) + q2 + q4;
    int32_t o0 = a * FIXED(0.298631336) + q1 + q3;

    v[0] = (x0 + o3) >> shift, v[7 * step] = (x0 - o3) >> shift;
    v[step] = (x1 + o2) >> shift, v[6 * step] = (x1 - o2) >> shift;
    v[2 * step] = (x2 + o1) >> shift, v[5 * step] = (x2 - o1) >> shift;
    v[3 * step] = (x3 + o0) >> shift, v[4 * step] = (x3 - o0) >> shift;
}

static uint8_t clamp(int32_t x)
{
    return x < 0 ? 0 : x > 255 ? 255 : (uint8_t)x;
}

static void inverse(int32_t block[64], uint8_t *out, int stride)
{
    for (int column = 0; column < 8; column++)
        transform(block + column, 8, 512, 10);
    for (int row = 0; row < 8; row++) {
        transform(block + 8 * row, 1, 65536 + (128 << 17), 17);
        for (int i = 0; i < 8; i++)
            out[row * stride + i] = clamp(block[8 * row + i]);
    }
}

/* --- colours --- */

static void colour(uint8_t *pixel, int32_t y, int32_t cb, int32_t cr)
{
    int32_t base = y * 4096 + 2048;

    cb -= 128;
    cr -= 128;
    pixel[0] = clamp((base + cr * FIXED(1.402)) >> 12);
    pixel[1] = clamp((base - cb * FIXED(0.344136) - cr * FIXED(0.714136)) >> 12);
    pixel[2] = clamp((base + cb * FIXED(1.772)) >> 12);
}

static void paint(int left, int top, uint8_t y[16][16], uint8_t cb[8][8],
                  uint8_t cr[8][8])
{
    for (int row = 0; row < 16; row++) {
        for (int column = 0; column < 16; column++)
            colour(picture[top + row][left + column], y[row][column],
                   cb[row / 2][column / 2], cr[row / 2][column / 2]);
    }
}

static void decode(const uint16_t *luma, const uint16_t *chroma)
{
    struct reader r = { 0 };
    int last[3] = { 0 };
    int32_t block[64];
    uint8_t y[16][16], cb[8][8], cr[8][8];

    for (int i = 0; i < MACROBLOCKS; i++) {
        for (int part = 0; part < 4; part++) {
            get_block(&r, &last[0], luma, block);
            inverse(block, &y[part / 2 * 8][part % 2 * 8], 16);
        }
        get_block(&r, &last[1], chroma, block);
        inverse(block, &cb[0][0], 8);
        get_block(&r, &last[2], chroma, block);
        inverse(block, &cr[0][0], 8);
        paint(i % (WIDTH / 16) * 16, i / (WIDTH / 16) * 16, y, cb, cr);
    }
}

static void set_quantisers(uint16_t *luma, uint16_t *chroma, int quality)
{
    for (int i = 0; i < 64; i++) {
        luma[i] = (uint16_t)(3 + (i / 4) * quality / 4);
        chroma[i] = (uint16_t)(4 + (i / 3) * quality / 4);
    }
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;
    uint16_t luma[64], chroma[64];

    for (int i = 0; i < 12; i++)
        dc_codes.symbols[i] = (uint8_t)i;
    order_ac_symbols();
    set_codes(&dc_codes, dc_lengths);
    set_codes(&ac_codes, ac_lengths);
    write_stream(&random);
    for (uint64_t n = 0; n < iterations; n++) {
        const uint8_t *bytes = &picture[0][0][0];

        set_quantisers(luma, chroma, 1 + (int)(n % 7));
        decode(luma, chroma);
        for (int i = 0; i < WIDTH * HEIGHT * 3; i += 11)
            hash = mix(hash, bytes[i]);
    }
    return hash;
}
