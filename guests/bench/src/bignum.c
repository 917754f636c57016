/*
 * Arithmetic with big numbers: RSA-like modular exponentiation.
 *
 * Numbers have 512 bits in 64-bit limbs.  A round makes an odd modulus, sets
 * up Montgomery's form with long division by hand, raises a number to a large
 * exponent with a window of four bits, and checks the result of a short
 * exponent against plain multiplication and division.
 */
#include "guest.h"

#define LIMBS 8
#define WINDOW 16

typedef unsigned __int128 wide;

struct number {
    uint64_t limb[LIMBS];
};

struct modulus {
    struct number n;
    struct number one;    /* 2^512 mod n: 1 in Montgomery's form */
    struct number square; /* 2^1024 mod n */
    uint64_t inverse;     /* -1 / n mod 2^64 */
};

static int compare(const uint64_t *a, const uint64_t *b)
{
    for (int i = LIMBS - 1; i >= 0; i--) {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

static uint64_t subtract(uint64_t *to, const uint64_t *a, const uint64_t *b)
{
    uint64_t borrow = 0;

    for (int i = 0; i < LIMBS; i++) {
        wide difference = (wide)a[i] - b[i] - borrow;

        to[i] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
    return borrow;
}

/* Doubles a number modulo n. */
static void double_mod(struct number *x, const struct number *n)
{
    uint64_t carry = 0;

    for (int i = 0; i < LIMBS; i++) {
        uint64_t next = x->limb[i] >> 63;

        x->limb[i] = x->limb[i] << 1 | carry;
        carry = next;
    }
    if (carry || compare(x->limb, n->limb) >= 0)
        subtract(x->limb, x->limb, n->limb);
}

static uint64_t inverse_of(uint64_t odd)
{
    uint64_t x = odd; /* right modulo 8; each step doubles the bits */

    for (int i = 0; i < 5; i++)
        x *= 2 - odd * x;
    return x;
}

static void set_modulus(struct modulus *m, const struct number *n)
{
    m->n = *n;
    m->inverse = -inverse_of(n->limb[0]);
    /* n has its top bit set, so 2^512 - n is 2^512 mod n. */
    m->one = (struct number){ { 0 } };
    subtract(m->one.limb, m->one.limb, n->limb);
    m->square = m->one;
    for (int i = 0; i < 64 * LIMBS; i++)
        double_mod(&m->square, n);
}

/* to = a * b / 2^512 mod n, one limb of b at a time. */
static void multiply(struct number *to, const struct number *a,
                     const struct number *b, const struct modulus *m)
{
    uint64_t t[LIMBS + 2] = { 0 };

    for (int i = 0; i < LIMBS; i++) {
        uint64_t carry = 0, factor;
        wide sum;

        for (int j = 0; j < LIMBS; j++) {
            sum = (wide)a->limb[j] * b->limb[i] + t[j] + carry;
            t[j] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
        sum = (wide)t[LIMBS] + carry;
        t[LIMBS] = (uint64_t)sum;
        t[LIMBS + 1] = (uint64_t)(sum >> 64);

        factor = t[0] * m->inverse;
        sum = (wide)factor * m->n.limb[0] + t[0];
        carry = (uint64_t)(sum >> 64);
        for (int j = 1; j < LIMBS; j++) {
            sum = (wide)factor * m->n.limb[j] + t[j] + carry;
            t[j - 1] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
        sum = (wide)t[LIMBS] + carry;
        t[LIMBS - 1] = (uint64_t)sum;
        t[LIMBS] = t[LIMBS + 1] + (uint64_t)(sum >> 64);
    }
    if (t[LIMBS] || compare(t, m->n.limb) >= 0)
        subtract(t, t, m->n.limb);
    for (int i = 0; i < LIMBS; i++)
        to->limb[i] = t[i];
}

static void power(struct number *to, const struct number *base,
                  const struct number *exponent, const struct modulus *m)
{
    struct number powers[WINDOW], result = m->one;
    struct number unit = { { 1 } };

    powers[0] = m->one;
    multiply(&powers[1], base, &m->square, m);
    for (int i = 2; i < WINDOW; i++)
        multiply(&powers[i], &powers[i - 1], &powers[1], m);
    for (int bit = 64 * LIMBS - 4; bit >= 0; bit -= 4) {
        for (int i = 0; i < 4; i++)
            multiply(&result, &result, &result, m);
        multiply(&result, &result,
                 &powers[exponent->limb[bit / 64] >> bit % 64 & 15], m);
    }
    multiply(to, &result, &unit, m);
}

/* to = a * b mod n by doubling and adding, a bit at a time. */
static void plain_multiply(struct number *to, const struct number *a,
                           const struct number *b, const struct number *n)
{
    struct number sum = { { 0 } };

    for (int bit = 64 * LIMBS - 1; bit >= 0; bit--) {
        double_mod(&sum, n);
        if (b->limb[bit / 64] >> bit % 64 & 1) {
            uint64_t carry = 0;

            for (int i = 0; i < LIMBS; i++) {
                wide s = (wide)sum.limb[i] + a->limb[i] + carry;

                sum.limb[i] = (uint64_t)s;
                carry = (uint64_t)(s >> 64);
            }
            if (carry || compare(sum.limb, n->limb) >= 0)
                subtract(sum.limb, sum.limb, n->limb);
        }
    }
    *to = sum;
}

static void random_number(struct number *x, uint64_t *random)
{
    for (int i = 0; i < LIMBS; i++)
        x->limb[i] = next_random(random);
}

static uint64_t one_round(uint64_t *random, uint64_t hash)
{
    struct number n, base, exponent, result, cube, three = { { 3 } };
    struct modulus m;

    random_number(&n, random);
    n.limb[0] |= 1;
    n.limb[LIMBS - 1] |= 1ull << 63;
    random_number(&base, random);
    base.limb[LIMBS - 1] >>= 1; /* less than n */
    random_number(&exponent, random);

    set_modulus(&m, &n);
    power(&result, &base, &exponent, &m);
    for (int i = 0; i < LIMBS; i++)
        hash = mix(hash, result.limb[i]);

    power(&result, &base, &three, &m);
    plain_multiply(&cube, &base, &base, &n);
    plain_multiply(&cube, &cube, &base, &n);
    return mix(hash, compare(result.limb, cube.limb) == 0);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    for (uint64_t n = 0; n < iterations; n++)
        hash = one_round(&random, hash);
    return hash;
}
