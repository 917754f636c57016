/*
 * Finding strings in a text (Boyer-Moore-Horspool).
 *
 * The text is 8 KiB of the letters a to p, one for every four bits of a
 * next_random() value, lowest bits first.  Each round searches for six
 * needles of 3 to 32 letters.  A needle is copied from a random place in the
 * text; every other one then has its middle letter changed, so that it is
 * probably found nowhere.  All places where a needle begins, overlapping ones
 * included, are folded into the result, and after them how many there were.
 */
#include "guest.h"

#define TEXT_BYTES 8192
#define NEEDLES 6
#define LONGEST 32

static const uint8_t needle_length[NEEDLES] = { 3, 4, 6, 10, 18, LONGEST };

static uint8_t text[TEXT_BYTES];

static void make_text(uint64_t *random)
{
    for (size_t i = 0; i < TEXT_BYTES; i += 16) {
        uint64_t bits = next_random(random);

        for (size_t j = 0; j < 16; j++, bits >>= 4)
            text[i + j] = (uint8_t)('a' + (bits & 15));
    }
}

static void make_needle(uint8_t *needle, size_t length, int spoil,
                        uint64_t *random)
{
    const uint8_t *from = text + next_random(random) % (TEXT_BYTES - length);

    for (size_t i = 0; i < length; i++)
        needle[i] = from[i];
    if (spoil)
        needle[length / 2] ^= 1;
}

/* Folds every place of the needle in the text into hash; returns the new one. */
static uint64_t search(const uint8_t *needle, size_t length, uint64_t hash)
{
    /* How far to move on, given the text's letter under the needle's last. */
    uint8_t skip[256];
    size_t last = length - 1;
    size_t found = 0;

    for (size_t i = 0; i < sizeof skip; i++)
        skip[i] = (uint8_t)length;
    for (size_t i = 0; i < last; i++)
        skip[needle[i]] = (uint8_t)(last - i);

    for (size_t at = 0; at <= TEXT_BYTES - length;) {
        uint8_t letter = text[at + last];

        if (letter == needle[last]) {
            size_t i = 0;

            while (i < last && text[at + i] == needle[i])
                i++;
            if (i == last) {
                hash = mix(hash, at);
                found++;
            }
        }
        at += skip[letter];
    }
    return mix(hash, found);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;
    uint8_t needle[LONGEST];

    make_text(&random);
    for (uint64_t n = 0; n < iterations; n++) {
        for (int i = 0; i < NEEDLES; i++) {
            size_t length = needle_length[i];

            make_needle(needle, length, i & 1, &random);
            hash = search(needle, length, hash);
        }
    }
    return hash;
}
