/*
 * What the C guests share: a source of test data and a checksum.
 *
 * The entry point of a guest, unless it says otherwise, is
 *
 *     uint64_t run(uint64_t input, uint64_t iterations);
 *
 * `input` seeds the data and differs from lane to lane; `iterations` says how
 * many rounds of work to do.  The value returned depends on all of the work.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stddef.h>
#include <stdint.h>

/* SplitMix64: advances *state and returns the next value of the sequence. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Folds one value into a running, order dependent checksum. */
static inline uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x100000001b3u;
}

#define MIX_START 0xcbf29ce484222325u

#endif
