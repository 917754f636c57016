/*
 * A generated state machine of 2,000 states: switches with a case for each,
 * as a generator of lexers writes them.
 *
 * Macros write the cases.  A state looks at the next byte, goes to one of
 * three others, and does something to the machine's counters; numbers in it
 * come from its own number, so that all of them differ.
 */
#include "guest.h"

#define STATES 2000
#define TEXT_SIZE 4096

static uint8_t text[TEXT_SIZE];

struct machine {
    uint64_t sum, tokens;
    uint32_t depth, word;
    uint32_t classes[16];
};

#define HASH(n) ((uint32_t)((n) * 2654435761u))
#define LOW(n) ((int)(HASH(n) >> 25))
#define HIGH(n) (128 + (int)(HASH((n) + 7) >> 25))
#define TARGET(n, k) (HASH((n) * 3 + (k)) >> 8) % STATES

/* What a state does before it goes on: one of eight kinds. */
#define ACTION(n)                                                            \
    switch ((n) & 7) {                                                       \
    case 0:                                                                  \
        m->sum += (uint64_t)byte * (HASH(n) >> 16);                          \
        break;                                                               \
    case 1:                                                                  \
        m->word = (m->word << 5 | m->word >> 27) ^ (uint32_t)byte;           \
        break;                                                               \
    case 2:                                                                  \
        m->classes[HASH(n) >> 28]++;                                         \
        break;                                                               \
    case 3:                                                                  \
        if (byte & 1)                                                        \
            m->depth++;                                                      \
        else if (m->depth)                                                   \
            m->depth--;                                                      \
        break;                                                               \
    case 4:                                                                  \
        m->tokens++;                                                         \
        m->sum ^= m->word + (n);                                             \
        break;                                                               \
    case 5:                                                                  \
        m->word = m->word * 31 + (uint32_t)byte + (n);                       \
        break;                                                               \
    case 6:                                                                  \
        m->classes[byte >> 4] += (n);                                        \
        break;                                                               \
    case 7:                                                                  \
        m->sum = mix(m->sum, m->depth);                                      \
        break;                                                               \
    }

#define STATE(n)                                                             \
    case n:                                                                  \
        ACTION(n)                                                            \
        if (byte < LOW(n))                                                   \
            return TARGET(n, 0);                                             \
        return byte < HIGH(n) ? TARGET(n, 1) : TARGET(n, 2);

#define STATES_10(n)                                                         \
    STATE(n + 0) STATE(n + 1) STATE(n + 2) STATE(n + 3) STATE(n + 4)         \
    STATE(n + 5) STATE(n + 6) STATE(n + 7) STATE(n + 8) STATE(n + 9)

#define STATES_100(n)                                                        \
    STATES_10(n + 0) STATES_10(n + 10) STATES_10(n + 20) STATES_10(n + 30)   \
    STATES_10(n + 40) STATES_10(n + 50) STATES_10(n + 60) STATES_10(n + 70)  \
    STATES_10(n + 80) STATES_10(n + 90)

/* Compilers take long over a switch of all states, so there are four. */
#define STATES_500(name, n)                                                  \
    static __attribute__((noinline)) uint32_t name(                          \
        struct machine *m, uint32_t state, int byte)                         \
    {                                                                        \
        switch (state) {                                                     \
            STATES_100(n) STATES_100(n + 100) STATES_100(n + 200)            \
            STATES_100(n + 300) STATES_100(n + 400)                          \
        }                                                                    \
        return 0;                                                            \
    }

STATES_500(step_0, 0)
STATES_500(step_1, 500)
STATES_500(step_2, 1000)
STATES_500(step_3, 1500)

static uint32_t step(struct machine *m, uint32_t state, int byte)
{
    if (state < 1000)
        return state < 500 ? step_0(m, state, byte) : step_1(m, state, byte);
    return state < 1500 ? step_2(m, state, byte) : step_3(m, state, byte);
}

static uint32_t scan(struct machine *m, uint32_t state)
{
    for (int i = 0; i < TEXT_SIZE; i++) {
        state = step(m, state, text[i]);
        /* Without this, a machine stays in a few hundred of its states. */
        if (text[i] == '\n')
            state = (state + (uint32_t)i) % STATES;
    }
    return state;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    struct machine machine = { 0 };
    uint64_t random = input;
    uint32_t state = 0;
    uint64_t hash = MIX_START;

    for (uint64_t n = 0; n < iterations; n++) {
        for (int i = 0; i < TEXT_SIZE; i++)
            text[i] = (uint8_t)next_random(&random);
        state = scan(&machine, state);
    }
    hash = mix(mix(hash, machine.sum), machine.tokens);
    hash = mix(mix(hash, machine.depth), machine.word);
    for (int i = 0; i < 16; i++)
        hash = mix(hash, machine.classes[i]);
    return mix(hash, state);
}
