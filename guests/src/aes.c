/*
 * AES-128 (FIPS 197) with the instructions for it.
 *
 * The key, a nonce and a buffer of 1 KiB are pseudo random.  Each round
 * encrypts the buffer in counter mode, then decrypts it in CBC mode with the
 * same key, both in place.  A counter block is the nonce and then the number
 * of the block as a big endian number, which counts on from round to round;
 * the first block of a round is chained to the last ciphertext of the round
 * before, or to zeros.  The result is a checksum of the buffer, or zero if
 * the example in FIPS 197 does not come out.
 */
#include <arm_neon.h>

#include "guest.h"

#define ROUNDS 10
#define BLOCKS 64

typedef struct {
    uint8x16_t encrypt[ROUNDS + 1];
    uint8x16_t decrypt[ROUNDS + 1];
} keys_t;

static uint8x16_t buffer[BLOCKS];

/* The bytes of a word, each replaced by its entry in the S-box. */
static uint32_t substitute(uint32_t word)
{
    /* AESE moves bytes between columns too, but all columns are the same. */
    uint8x16_t columns = vreinterpretq_u8_u32(vdupq_n_u32(word));

    return vgetq_lane_u32(vreinterpretq_u32_u8(vaeseq_u8(columns, vdupq_n_u8(0))), 0);
}

static keys_t expand(uint8x16_t key)
{
    uint32_t words[4 * (ROUNDS + 1)];
    uint32_t constant = 1;
    keys_t keys;

    vst1q_u8((uint8_t *)words, key);
    for (int i = 4; i < 4 * (ROUNDS + 1); i++) {
        uint32_t word = words[i - 1];

        if (i % 4 == 0) {
            word = substitute(word >> 8 | word << 24) ^ constant;
            constant = constant << 1 ^ (constant >> 7) * 0x11b;
        }
        words[i] = words[i - 4] ^ word;
    }
    for (int i = 0; i <= ROUNDS; i++)
        keys.encrypt[i] = vld1q_u8((const uint8_t *)(words + 4 * i));

    keys.decrypt[0] = keys.encrypt[ROUNDS];
    for (int i = 1; i < ROUNDS; i++)
        keys.decrypt[i] = vaesimcq_u8(keys.encrypt[ROUNDS - i]);
    keys.decrypt[ROUNDS] = keys.encrypt[0];
    return keys;
}

static inline uint8x16_t encrypt(uint8x16_t block, const keys_t *keys)
{
    for (int i = 0; i < ROUNDS - 1; i++)
        block = vaesmcq_u8(vaeseq_u8(block, keys->encrypt[i]));
    return veorq_u8(vaeseq_u8(block, keys->encrypt[ROUNDS - 1]), keys->encrypt[ROUNDS]);
}

static inline uint8x16_t decrypt(uint8x16_t block, const keys_t *keys)
{
    for (int i = 0; i < ROUNDS - 1; i++)
        block = vaesimcq_u8(vaesdq_u8(block, keys->decrypt[i]));
    return veorq_u8(vaesdq_u8(block, keys->decrypt[ROUNDS - 1]), keys->decrypt[ROUNDS]);
}

static uint8x16_t block_of(uint64_t first, uint64_t second)
{
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(first), vcreate_u64(second)));
}

static uint64_t half_of(uint8x16_t block, int half)
{
    uint64x2_t halves = vreinterpretq_u64_u8(block);

    return half ? vgetq_lane_u64(halves, 1) : vgetq_lane_u64(halves, 0);
}

static int same(uint8x16_t a, uint8x16_t b)
{
    return vminvq_u8(vceqq_u8(a, b)) != 0;
}

/* FIPS 197, appendix C.1. */
static int example_comes_out(void)
{
    keys_t keys = expand(block_of(0x0706050403020100u, 0x0f0e0d0c0b0a0908u));
    uint8x16_t plain = block_of(0x7766554433221100u, 0xffeeddccbbaa9988u);
    uint8x16_t cipher = block_of(0x30047b6ad8e0c469u, 0x5ac5b47080b7cdd8u);

    return same(encrypt(plain, &keys), cipher) && same(decrypt(cipher, &keys), plain);
}

static void counter_mode(const keys_t *keys, uint64_t nonce, uint64_t counter)
{
    for (int i = 0; i < BLOCKS; i++) {
        uint8x16_t block = block_of(nonce, __builtin_bswap64(counter + i));

        buffer[i] = veorq_u8(buffer[i], encrypt(block, keys));
    }
}

/* Returns the block to chain the next one to. */
static uint8x16_t chained_mode(const keys_t *keys, uint8x16_t chain)
{
    for (int i = 0; i < BLOCKS; i++) {
        uint8x16_t cipher = buffer[i];

        buffer[i] = veorq_u8(decrypt(cipher, keys), chain);
        chain = cipher;
    }
    return chain;
}

static uint8x16_t random_block(uint64_t *random)
{
    uint64_t first = next_random(random);

    return block_of(first, next_random(random));
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;
    uint8x16_t chain = vdupq_n_u8(0);

    if (!example_comes_out())
        return 0;

    keys_t keys = expand(random_block(&random));
    uint64_t nonce = next_random(&random);

    for (int i = 0; i < BLOCKS; i++)
        buffer[i] = random_block(&random);
    for (uint64_t n = 0; n < iterations; n++) {
        counter_mode(&keys, nonce, n * BLOCKS);
        chain = chained_mode(&keys, chain);
    }

    for (int i = 0; i < BLOCKS; i++)
        hash = mix(mix(hash, half_of(buffer[i], 0)), half_of(buffer[i], 1));
    return hash;
}
