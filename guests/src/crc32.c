/*
 * CRC-32 (the one of Ethernet and zip: reflected polynomial 0xedb88320) of a
 * 4 KiB buffer, one table lookup per byte.
 *
 * The buffer holds 512 successive next_random() values, little endian.  Every
 * round runs over the whole buffer and starts from the CRC of the round
 * before, so the result is the CRC of the buffer repeated `iterations` times.
 */
#include "guest.h"

#define BUFFER_BYTES 4096

static uint64_t buffer[BUFFER_BYTES / 8];
static uint32_t table[256];

static void make_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        table[byte] = crc;
    }
}

static uint32_t crc32(uint32_t crc, const uint8_t *bytes, size_t count)
{
    crc = ~crc;
    for (const uint8_t *end = bytes + count; bytes != end; bytes++)
        crc = crc >> 8 ^ table[(uint8_t)crc ^ *bytes];
    return ~crc;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint32_t crc = 0;

    make_table();
    for (int i = 0; i < BUFFER_BYTES / 8; i++)
        buffer[i] = next_random(&random);

    for (uint64_t n = 0; n < iterations; n++)
        crc = crc32(crc, (const uint8_t *)buffer, BUFFER_BYTES);
    return crc;
}
