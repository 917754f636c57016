/*
 * malloc and free for guests that want them: one arena, a first fit from a
 * list of free blocks that is kept in the order of addresses, neighbours
 * joined when one of them is freed.
 */
#ifndef ALLOC_H
#define ALLOC_H

#include "guest.h"

#define ARENA_SIZE (512 * 1024)

struct block {
    uint64_t size;      /* with this header, a multiple of 16 */
    struct block *next; /* of the free list; of no meaning while in use */
};

static _Alignas(16) uint8_t arena[ARENA_SIZE];
static struct block *free_blocks;

static void arena_reset(void)
{
    free_blocks = (struct block *)arena;
    free_blocks->size = ARENA_SIZE;
    free_blocks->next = 0;
}

static void *allocate(uint64_t size)
{
    uint64_t wanted = (size + sizeof(struct block) + 15) & ~15ull;

    for (struct block **link = &free_blocks; *link; link = &(*link)->next) {
        struct block *block = *link;

        if (block->size < wanted)
            continue;
        if (block->size - wanted >= 2 * sizeof(struct block)) {
            struct block *rest = (struct block *)((uint8_t *)block + wanted);

            rest->size = block->size - wanted;
            rest->next = block->next;
            *link = rest;
            block->size = wanted;
        } else {
            *link = block->next;
        }
        return block + 1;
    }
    __builtin_trap(); /* no guest needs more than there is */
}

static int joins(struct block *a, struct block *b)
{
    return (uint8_t *)a + a->size == (uint8_t *)b;
}

static void release(void *memory)
{
    struct block *block = (struct block *)memory - 1;
    struct block *before = 0, *after = free_blocks;

    while (after && after < block) {
        before = after;
        after = after->next;
    }
    block->next = after;
    if (after && joins(block, after)) {
        block->size += after->size;
        block->next = after->next;
    }
    if (!before) {
        free_blocks = block;
    } else if (joins(before, block)) {
        before->size += block->size;
        before->next = block->next;
    } else {
        before->next = block;
    }
}

#endif
