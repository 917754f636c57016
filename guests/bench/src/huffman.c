/*
 * Huffman coding: frequencies, a tree made with a heap, canonical codes of at
 * most 15 bits, a stream of bits, and a decoder with a table.
 *
 * A round codes 4 KiB of bytes of uneven frequency, decodes and compares
 * them.  The result is zero if they differ.
 */
#include "guest.h"

#define SIZE 4096
#define SYMBOLS 256
#define LONGEST 15
#define TABLE_BITS 9

static uint8_t plain[SIZE], again[SIZE];
static uint8_t stream[2 * SIZE + 16];

struct codes {
    uint8_t length[SYMBOLS];
    uint16_t code[SYMBOLS]; /* with its bits reversed: the first is lowest */
};

/* --- the tree --- */

struct tree {
    uint32_t weight[2 * SYMBOLS];
    int16_t parent[2 * SYMBOLS];
    int16_t heap[SYMBOLS];
    int size, nodes;
};

static struct tree tree;

static void sink(struct tree *t, int at)
{
    int16_t moving = t->heap[at];

    for (;;) {
        int child = 2 * at + 1;

        if (child >= t->size)
            break;
        if (child + 1 < t->size &&
            t->weight[t->heap[child + 1]] < t->weight[t->heap[child]])
            child++;
        if (t->weight[moving] <= t->weight[t->heap[child]])
            break;
        t->heap[at] = t->heap[child];
        at = child;
    }
    t->heap[at] = moving;
}

static int take_least(struct tree *t)
{
    int least = t->heap[0];

    t->heap[0] = t->heap[--t->size];
    sink(t, 0);
    return least;
}

static void insert(struct tree *t, int node)
{
    int at = t->size++;

    while (at > 0 && t->weight[t->heap[(at - 1) / 2]] > t->weight[node]) {
        t->heap[at] = t->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    t->heap[at] = (int16_t)node;
}

static void build_tree(struct tree *t, const uint32_t *counts)
{
    t->size = 0;
    t->nodes = SYMBOLS;
    for (int i = 0; i < SYMBOLS; i++) {
        t->weight[i] = counts[i];
        t->parent[i] = -1;
        if (counts[i])
            insert(t, i);
    }
    while (t->size > 1) {
        int a = take_least(t), b = take_least(t), node = t->nodes++;

        t->weight[node] = t->weight[a] + t->weight[b];
        t->parent[a] = t->parent[b] = (int16_t)node;
        t->parent[node] = -1;
        insert(t, node);
    }
}

static int depth_of(const struct tree *t, int node)
{
    int depth = 0;

    for (; t->parent[node] >= 0; node = t->parent[node])
        depth++;
    return depth;
}

/* --- codes --- */

static uint16_t reversed(uint32_t code, int length)
{
    uint32_t result = 0;

    for (int i = 0; i < length; i++, code >>= 1)
        result = result << 1 | (code & 1);
    return (uint16_t)result;
}

/* Flattens the counts until no code is too long. */
static void make_codes(struct codes *c, uint32_t *counts)
{
    uint32_t of_length[LONGEST + 2] = { 0 }, next[LONGEST + 2], code = 0;
    int longest;

    do {
        longest = 0;
        build_tree(&tree, counts);
        for (int i = 0; i < SYMBOLS; i++) {
            int depth = counts[i] ? depth_of(&tree, i) : 0;

            c->length[i] = (uint8_t)(counts[i] && !depth ? 1 : depth);
            if (depth > longest)
                longest = depth;
            if (counts[i])
                counts[i] = counts[i] / 2 + 1;
        }
    } while (longest > LONGEST);

    for (int i = 0; i < SYMBOLS; i++)
        of_length[c->length[i]]++;
    of_length[0] = 0;
    for (int length = 1; length <= LONGEST; length++) {
        code = (code + of_length[length - 1]) << 1;
        next[length] = code;
    }
    for (int i = 0; i < SYMBOLS; i++) {
        if (c->length[i])
            c->code[i] = reversed(next[c->length[i]]++, c->length[i]);
    }
}

/* --- coding --- */

static int encode(const struct codes *c)
{
    uint64_t held = 0;
    int bits = 0, to = 0;

    for (int i = 0; i < SIZE; i++) {
        held |= (uint64_t)c->code[plain[i]] << bits;
        bits += c->length[plain[i]];
        for (; bits >= 8; bits -= 8, held >>= 8)
            stream[to++] = (uint8_t)held;
    }
    stream[to++] = (uint8_t)held;
    for (int i = 0; i < 8; i++)
        stream[to + i] = 0;
    return to;
}

/* --- decoding --- */

struct decoder {
    uint16_t quick[1 << TABLE_BITS]; /* symbol and length, or zero */
    uint32_t first[LONGEST + 2];     /* the first code of a length, */
    uint32_t count[LONGEST + 2];     /* how many there are, */
    uint32_t index[LONGEST + 2];     /* and where their symbols begin */
    uint8_t symbols[SYMBOLS];
};

static struct decoder decoder;

static void make_decoder(struct decoder *d, const struct codes *c)
{
    uint32_t code = 0, index = 0;

    for (int i = 0; i < 1 << TABLE_BITS; i++)
        d->quick[i] = 0;
    for (int length = 1; length <= LONGEST; length++) {
        d->first[length] = code;
        d->index[length] = index;
        for (int i = 0; i < SYMBOLS; i++) {
            if (c->length[i] == length)
                d->symbols[index++] = (uint8_t)i;
        }
        d->count[length] = index - d->index[length];
        code = (code + d->count[length]) << 1;
    }
    for (int i = 0; i < SYMBOLS; i++) {
        int length = c->length[i];

        if (!length || length > TABLE_BITS)
            continue;
        for (uint32_t at = c->code[i]; at < 1 << TABLE_BITS; at += 1u << length)
            d->quick[at] = (uint16_t)(i << 4 | length);
    }
}

static uint64_t load64(const uint8_t *p)
{
    uint64_t value = 0;

    for (int i = 7; i >= 0; i--)
        value = value << 8 | p[i];
    return value;
}

/* A code that is too long for the table, one bit at a time. */
static int decode_slowly(const struct decoder *d, uint64_t bits, int *length)
{
    uint32_t code = 0;

    for (*length = 1; *length <= LONGEST; (*length)++, bits >>= 1) {
        code = code << 1 | (bits & 1);
        if (code - d->first[*length] < d->count[*length])
            return d->symbols[d->index[*length] + code - d->first[*length]];
    }
    return 0;
}

static void decode(const struct decoder *d)
{
    uint64_t at = 0;

    for (int i = 0; i < SIZE; i++) {
        uint64_t bits = load64(stream + at / 8) >> at % 8;
        int entry = d->quick[bits & ((1 << TABLE_BITS) - 1)], length;

        if (entry) {
            again[i] = (uint8_t)(entry >> 4);
            length = entry & 15;
        } else {
            again[i] = (uint8_t)decode_slowly(d, bits, &length);
        }
        at += (uint64_t)length;
    }
}

static void make_text(uint64_t *random)
{
    for (int i = 0; i < SIZE; i++) {
        uint64_t r = next_random(random);
        int level = 0;

        /* Each level is half as likely as the one before. */
        while (level < 8 && (r >> (56 - level) & 1))
            level++;
        plain[i] = (uint8_t)(level * 29 + (int)(r % (uint64_t)(1 + 3 * level)));
    }
}

static uint64_t one_round(uint64_t *random, uint64_t hash)
{
    static struct codes codes;
    uint32_t counts[SYMBOLS] = { 0 };
    int size;

    make_text(random);
    for (int i = 0; i < SIZE; i++)
        counts[plain[i]]++;
    make_codes(&codes, counts);
    size = encode(&codes);
    make_decoder(&decoder, &codes);
    decode(&decoder);
    for (int i = 0; i < SIZE; i++) {
        if (plain[i] != again[i])
            return 0;
    }
    for (int i = 0; i < size; i += 8)
        hash = mix(hash, stream[i]);
    return mix(hash, (uint64_t)size);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    for (uint64_t n = 0; n < iterations && hash; n++)
        hash = one_round(&random, hash);
    return hash;
}
