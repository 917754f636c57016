/*
 * 1,000 small functions, as a large program has them: each differs from the
 * others, and none runs often.
 *
 * Macros write them in eight shapes, with numbers that come from their own.
 * Some call others with a higher number.  A round calls each once, in an order
 * of its own, on a record of a few fields.
 */
#include "guest.h"

#define FUNCTIONS 1000

struct record {
    uint64_t id, total;
    uint32_t flags, level;
    int32_t balance;
    uint8_t name[20];
};

typedef uint64_t function(struct record *r, uint64_t x);

/* Only one in four may call another, so that chains stay short. */
static uint64_t forward(struct record *r, uint64_t x, unsigned to);

#define HASH(n) ((uint32_t)((n) * 2654435761u + 12345))
#define PART(n, from, bits) (HASH(n) >> (from) & ((1u << (bits)) - 1))
#define NAME_2(n) f_##n
#define NAME(n) NAME_2(n)

#define FUNCTION(n)                                                          \
    static __attribute__((noinline)) uint64_t NAME(n)(struct record *r,      \
                                                      uint64_t x)            \
    {                                                                        \
        BODY(1##n - 1000u)                                                   \
    }

/* The compiler keeps one of the eight shapes. */
#define BODY(n)                                                              \
    switch ((n) % 8) {                                                       \
    case 0: /* arithmetic */                                                 \
        r->total += x * PART(n, 4, 12) + PART(n, 16, 8);                     \
        return x ^ r->total >> PART(n, 9, 4);                                \
    case 1: /* checks of a few conditions */                                 \
        if (x < PART(n, 3, 16))                                              \
            r->flags |= 1u << PART(n, 8, 4);                                 \
        else if (r->flags & 1u << PART(n, 12, 4))                            \
            r->flags ^= PART(n, 5, 20);                                      \
        else                                                                 \
            r->level++;                                                      \
        return x + r->level;                                                 \
    case 2: { /* a loop over a name */                                       \
        uint64_t sum = PART(n, 1, 20);                                       \
                                                                             \
        for (unsigned i = 0; i < 4 + PART(n, 7, 4); i++)                     \
            sum = sum * 33 + r->name[i];                                     \
        return x + sum;                                                      \
    }                                                                        \
    case 3: /* a step in a name, and another function */                     \
        r->name[PART(n, 10, 4)] = (uint8_t)(x >> PART(n, 14, 5));            \
        return forward(r, x * 3 + (n), (n) + 5 + PART(n, 20, 7));            \
    case 4: /* a small switch */                                             \
        switch (x % 5) {                                                     \
        case 0:                                                              \
            r->balance += (int32_t)PART(n, 6, 10);                           \
            break;                                                           \
        case 1:                                                              \
            r->balance -= (int32_t)PART(n, 8, 10);                           \
            break;                                                           \
        case 2:                                                              \
            r->id ^= PART(n, 2, 24);                                         \
            break;                                                           \
        case 3:                                                              \
            r->total ^= x << PART(n, 18, 3);                                 \
            break;                                                           \
        default:                                                             \
            r->level += PART(n, 11, 3);                                      \
        }                                                                    \
        return x ^ (uint64_t)(int64_t)r->balance;                            \
    case 5: /* division, as for a calendar or a table */                     \
        r->id = r->id / (PART(n, 4, 6) + 3) + x % (PART(n, 13, 9) + 7);      \
        return r->id * (PART(n, 22, 8) | 1);                                 \
    case 6: /* the least and the most */                                     \
        r->level = r->level > PART(n, 9, 14) ? PART(n, 9, 14) / 2            \
                                             : r->level + 1;                 \
        if (r->balance < -(int32_t)PART(n, 4, 16))                           \
            r->balance = 0;                                                  \
        return x + r->level + (uint64_t)(int64_t)r->balance;                 \
    default: /* bits */                                                      \
        x ^= x >> (PART(n, 6, 4) + 7);                                       \
        x *= PART(n, 1, 30) | 1;                                             \
        r->flags = r->flags << PART(n, 3, 2) ^ (uint32_t)(x >> 32);          \
        return x ^ x >> 29;                                                  \
    }

#define TEN(of, n)                                                           \
    of(n##0) of(n##1) of(n##2) of(n##3) of(n##4)                             \
    of(n##5) of(n##6) of(n##7) of(n##8) of(n##9)
#define HUNDRED(of, n)                                                       \
    TEN(of, n##0) TEN(of, n##1) TEN(of, n##2) TEN(of, n##3) TEN(of, n##4)    \
    TEN(of, n##5) TEN(of, n##6) TEN(of, n##7) TEN(of, n##8) TEN(of, n##9)
#define ALL(of)                                                              \
    HUNDRED(of, 0) HUNDRED(of, 1) HUNDRED(of, 2) HUNDRED(of, 3)              \
    HUNDRED(of, 4) HUNDRED(of, 5) HUNDRED(of, 6) HUNDRED(of, 7)              \
    HUNDRED(of, 8) HUNDRED(of, 9)

ALL(FUNCTION)

#define ENTRY(n) NAME(n),

static function *const table[FUNCTIONS] = { ALL(ENTRY) };
static uint16_t order[FUNCTIONS];

static uint64_t forward(struct record *r, uint64_t x, unsigned to)
{
    return to < FUNCTIONS ? table[to](r, x) : x;
}

static void shuffle(uint64_t *random)
{
    for (unsigned i = FUNCTIONS - 1; i > 0; i--) {
        unsigned j = (unsigned)(next_random(random) % (i + 1));
        uint16_t old = order[i];

        order[i] = order[j];
        order[j] = old;
    }
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    struct record record = { .id = input };
    uint64_t random = input, hash = MIX_START, x = input;

    for (unsigned i = 0; i < FUNCTIONS; i++)
        order[i] = (uint16_t)i;
    for (uint64_t n = 0; n < iterations; n++) {
        shuffle(&random);
        for (unsigned i = 0; i < FUNCTIONS; i++)
            x = table[order[i]](&record, x);
        hash = mix(hash, x);
    }
    hash = mix(mix(hash, record.id), record.total);
    hash = mix(mix(hash, record.flags), record.level);
    hash = mix(hash, (uint64_t)(int64_t)record.balance);
    for (int i = 0; i < 20; i++)
        hash = mix(hash, record.name[i]);
    return hash;
}
