/*
 * Compression in the manner of LZ77, with hash chains, lazy matching and a
 * format of bytes like LZ4's; and decompression.
 *
 * A round compresses 8 KiB of text with repetitions, decompresses it, and
 * compares.  The result is zero if they differ.
 */
#include "guest.h"

#define SIZE 8192
#define HASH_BITS 12
#define MIN_MATCH 4
#define MAX_CHAIN 16

static uint8_t plain[SIZE], again[SIZE];
static uint8_t packed[SIZE + SIZE / 8 + 64];
static int32_t heads[1 << HASH_BITS], chain[SIZE];

/* --- the text --- */

static void make_text(uint64_t *random)
{
    static const char *const words[] = {
        "the ",     "lane ",   "of ",    "memory ", "register ", "and ",
        "engine\n", "runs ",   "a ",     "thousand ", "machine ", "with ",
        "its ",     "own ",    "stack; ", "branch ", "carries ", "no ",
        "flag, ",   "loads ",  "stores ", "pages. ", "counts ",  "exactly ",
    };
    int at = 0;

    while (at < SIZE) {
        uint64_t r = next_random(random);
        const char *word = words[(r & 0xffff) % 24];

        if (at > 600 && (r >> 16) % 24 == 0) { /* repeats what was before */
            int from = at - 1 - (int)((r >> 32) % 500);
            int count = 8 + (int)(r >> 48 & 63);

            while (count-- && at < SIZE)
                plain[at++] = plain[from++];
        } else if ((r >> 16) % 24 == 1) { /* bytes without an order */
            for (int i = 0; i < 8 && at < SIZE; i++)
                plain[at++] = (uint8_t)(r >> 8 * i);
        } else {
            while (*word && at < SIZE)
                plain[at++] = (uint8_t)*word++;
        }
    }
}

/* --- compression --- */

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static uint32_t hash_at(int at)
{
    return load32(plain + at) * 2654435761u >> (32 - HASH_BITS);
}

static void insert(int at)
{
    uint32_t hash;

    if (at + MIN_MATCH > SIZE)
        return;
    hash = hash_at(at);
    chain[at] = heads[hash];
    heads[hash] = at;
}

static int match_length(int a, int b)
{
    int length = 0;

    while (b + length < SIZE && plain[a + length] == plain[b + length])
        length++;
    return length;
}

/* Returns the length of the longest match, and its place. */
static int longest_match(int at, int *place)
{
    int best = MIN_MATCH - 1;
    int32_t candidate;

    if (at + MIN_MATCH > SIZE)
        return 0;
    candidate = heads[hash_at(at)];
    for (int i = 0; i < MAX_CHAIN && candidate >= 0; i++) {
        int length = match_length(candidate, at);

        if (length > best) {
            best = length;
            *place = candidate;
        }
        candidate = chain[candidate];
    }
    return best >= MIN_MATCH ? best : 0;
}

/* A length that does not fit in four bits goes on in bytes. */
static uint8_t *put_length(uint8_t *to, int length)
{
    if (length < 15)
        return to;
    for (length -= 15; length >= 255; length -= 255)
        *to++ = 255;
    *to++ = (uint8_t)length;
    return to;
}

static uint8_t *put_sequence(uint8_t *to, int from, int literals, int match,
                             int distance)
{
    int rest = match ? match - MIN_MATCH : 0;

    *to++ = (uint8_t)((literals < 15 ? literals : 15) << 4 | (rest < 15 ? rest : 15));
    to = put_length(to, literals);
    for (int i = 0; i < literals; i++)
        *to++ = plain[from + i];
    *to++ = (uint8_t)distance;
    *to++ = (uint8_t)(distance >> 8);
    return put_length(to, rest);
}

static int compress(void)
{
    uint8_t *to = packed;
    int at = 0, literals_from = 0;

    for (int i = 0; i < 1 << HASH_BITS; i++)
        heads[i] = -1;
    while (at < SIZE) {
        int place = 0, next_place = 0, length = longest_match(at, &place);

        insert(at);
        if (!length || longest_match(at + 1, &next_place) > length + 1) {
            at++;
            continue;
        }
        to = put_sequence(to, literals_from, at - literals_from, length, at - place);
        for (int i = 1; i < length; i++)
            insert(at + i);
        at += length;
        literals_from = at;
    }
    /* A distance of zero ends it. */
    to = put_sequence(to, literals_from, at - literals_from, 0, 0);
    return (int)(to - packed);
}

/* --- decompression --- */

static const uint8_t *get_length(const uint8_t *from, int *length)
{
    if (*length < 15)
        return from;
    while (*from == 255) {
        *length += 255;
        from++;
    }
    *length += *from++;
    return from;
}

static int decompress(void)
{
    const uint8_t *from = packed;
    uint8_t *to = again;

    for (;;) {
        int token = *from++, literals = token >> 4, match = token & 15, distance;

        from = get_length(from, &literals);
        for (int i = 0; i < literals; i++)
            *to++ = *from++;
        distance = from[0] | from[1] << 8;
        from += 2;
        if (!distance)
            return (int)(to - again);
        from = get_length(from, &match);
        for (match += MIN_MATCH; match; match--, to++)
            *to = to[-distance];
    }
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    for (uint64_t n = 0; n < iterations; n++) {
        int size;

        make_text(&random);
        size = compress();
        if (decompress() != SIZE)
            return 0;
        for (int i = 0; i < SIZE; i++) {
            if (plain[i] != again[i])
                return 0;
        }
        hash = mix(hash, (uint64_t)size);
        for (int i = 0; i < size; i += 16)
            hash = mix(hash, packed[i]);
    }
    return hash;
}
