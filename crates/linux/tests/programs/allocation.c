// malloc and its relatives: small and large blocks, many of them, and what fails.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include "report.h"

#define BLOCKS 2000

static uint32_t state = 12345;

static uint32_t next(void) { return state = state * 1664525 + 1013904223; }

// Allocates and frees at random, and checks what is in the blocks.
static void churn(void) {
    static struct {
        unsigned char *data;
        size_t length;
    } blocks[BLOCKS];
    long wrong = 0;
    for (int i = 0; i < 20000; i++) {
        uint32_t at = next() >> 8, which = at % BLOCKS;
        if (blocks[which].data) {
            size_t length = blocks[which].length;
            wrong += blocks[which].data[0] != which % 256;
            wrong += blocks[which].data[length - 1] != which % 256;
            free(blocks[which].data);
        }
        size_t length = i % 100 == 0 ? 200000 : 1 + (next() >> 16) % 2000;
        blocks[which].data = malloc(length);
        blocks[which].length = length;
        memset(blocks[which].data, which % 256, length);
    }
    SHOW(wrong);
}

static void grow(void) {
    char *text = NULL;
    size_t length = 0;
    for (int i = 0; i < 3000; i++) {
        text = realloc(text, length + 8);
        length += sprintf(text + length, "%d,", i);
    }
    SHOW(length);
    SHOW(strlen(text) == length);
    free(text);
}

int main(void) {
    churn();
    grow();
    char *zeros = calloc(1000, 1000);
    long sum = 0;
    for (int i = 0; i < 1000000; i++)
        sum += zeros[i];
    SHOW(sum);
    free(zeros);
    void *aligned;
    RETURNS(posix_memalign(&aligned, 4096, 100));
    SHOW((uintptr_t)aligned % 4096);
    RETURNS(posix_memalign(&aligned, 3, 100));
    SHOW((uintptr_t)aligned_alloc(256, 512) % 256);
    volatile size_t enormous = SIZE_MAX / 2;
    SHOW(malloc(enormous) == NULL && errno == ENOMEM);
    SHOW(calloc(enormous, 4) == NULL);
    SHOW(malloc_usable_size(malloc(100)) >= 100);
    free(NULL);
    // 1 GiB of which little is touched.
    char *large = malloc(1L << 30);
    SHOW(large != NULL);
    for (long i = 0; i < 1L << 30; i += 1L << 26)
        large[i] = 1;
    free(large);
    return 0;
}
