/*
 * A hash table of strings, with chains, growth and malloc.
 *
 * Each round makes names from syllables, counts them in the table, removes
 * others, and looks up names that may not be there.
 */
#include "alloc.h"

#define PER_ROUND 200
#define MOST 1500

struct entry {
    struct entry *next;
    uint32_t hash, uses;
    char *key;
};

static struct entry **buckets;
static uint32_t bucket_count, entry_count;

static uint32_t length(const char *s)
{
    const char *end = s;

    while (*end)
        end++;
    return (uint32_t)(end - s);
}

static int equal(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

static char *duplicate(const char *s)
{
    uint32_t size = length(s) + 1;
    char *copy = allocate(size);

    for (uint32_t i = 0; i < size; i++)
        copy[i] = s[i];
    return copy;
}

/* Mixes four bytes at a time, as MurmurHash does. */
static uint32_t hash_of(const char *s)
{
    uint32_t left = length(s), hash = left * 0x9e3779b1u;

    for (; left >= 4; left -= 4, s += 4) {
        uint32_t word = (uint32_t)(uint8_t)s[0] | (uint32_t)(uint8_t)s[1] << 8 |
                        (uint32_t)(uint8_t)s[2] << 16 | (uint32_t)(uint8_t)s[3] << 24;

        word *= 0xcc9e2d51u;
        word = word << 15 | word >> 17;
        hash = (hash ^ word * 0x1b873593u) * 5 + 0xe6546b64u;
    }
    while (left--)
        hash = (hash ^ (uint8_t)*s++) * 0x01000193u;
    hash ^= hash >> 16;
    hash *= 0x85ebca6bu;
    return hash ^ hash >> 13;
}

static struct entry **new_buckets(uint32_t size)
{
    struct entry **made = allocate(size * sizeof *made);

    for (uint32_t i = 0; i < size; i++)
        made[i] = 0;
    return made;
}

static void grow(void)
{
    uint32_t size = bucket_count * 2;
    struct entry **larger = new_buckets(size);

    for (uint32_t i = 0; i < bucket_count; i++) {
        for (struct entry *e = buckets[i], *next; e; e = next) {
            struct entry **to = &larger[e->hash & (size - 1)];

            next = e->next;
            e->next = *to;
            *to = e;
        }
    }
    release(buckets);
    buckets = larger;
    bucket_count = size;
}

static struct entry **find(const char *key, uint32_t hash)
{
    struct entry **link = &buckets[hash & (bucket_count - 1)];

    while (*link && ((*link)->hash != hash || !equal((*link)->key, key)))
        link = &(*link)->next;
    return link;
}

static struct entry *count_use(const char *key)
{
    uint32_t hash = hash_of(key);
    struct entry **link = find(key, hash);

    if (!*link) {
        struct entry *e = allocate(sizeof *e);

        *e = (struct entry){ .hash = hash, .key = duplicate(key) };
        *link = e;
        if (++entry_count > bucket_count) {
            grow();
            e->uses++;
            return e;
        }
    }
    (*link)->uses++;
    return *link;
}

static uint32_t remove_key(const char *key)
{
    struct entry **link = find(key, hash_of(key));
    struct entry *e = *link;
    uint32_t uses;

    if (!e)
        return 0;
    uses = e->uses;
    *link = e->next;
    release(e->key);
    release(e);
    entry_count--;
    return uses;
}

static void make_name(char *to, uint64_t r)
{
    static const char *const syllables[] = {
        "ka", "lo", "mi", "ter", "ran", "os", "vel", "ix",
        "dor", "a", "shu", "ne", "quin", "tal", "be", "ro",
    };
    int parts = 2 + (int)(r & 3);

    for (int i = 0; i < parts; i++) {
        const char *s = syllables[r >> (4 + 3 * i) & 15];

        while (*s)
            *to++ = *s++;
    }
    *to = 0;
}

static void empty(void)
{
    for (uint32_t i = 0; i < bucket_count; i++) {
        while (buckets[i]) {
            struct entry *e = buckets[i];

            buckets[i] = e->next;
            release(e->key);
            release(e);
        }
    }
    entry_count = 0;
}

static uint64_t one_round(uint64_t *random, uint64_t hash)
{
    char name[32];

    for (int i = 0; i < PER_ROUND; i++) {
        make_name(name, next_random(random));
        hash = mix(hash, count_use(name)->uses);
        make_name(name, next_random(random));
        hash += *find(name, hash_of(name)) ? 1 : 0;
        if (i % 3 == 0) {
            make_name(name, next_random(random));
            hash = mix(hash, remove_key(name));
        }
    }
    if (entry_count > MOST)
        empty();
    return hash;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    arena_reset();
    bucket_count = 64;
    entry_count = 0;
    buckets = new_buckets(bucket_count);
    for (uint64_t n = 0; n < iterations; n++)
        hash = one_round(&random, hash);
    for (uint32_t i = 0; i < bucket_count; i++) {
        for (struct entry *e = buckets[i]; e; e = e->next)
            hash = mix(hash, e->hash + e->uses);
    }
    return hash;
}
