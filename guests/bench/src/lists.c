/*
 * Singly and doubly linked lists, with nodes from a free list.
 *
 * Each round makes a list of random numbers, sorts it by merging, takes out
 * duplicates, splits it by parity, turns one part round, joins the parts
 * again, and runs a queue that moves what was used to the front.
 */
#include "guest.h"

#define COUNT 600
#define RECENT 64

struct node {
    struct node *next;
    uint32_t value;
};

struct recent {
    struct recent *before, *after;
    uint32_t key, uses;
};

static struct node pool[COUNT];
static struct node *unused;
static struct recent entries[RECENT];
static struct recent ring; /* its `after` is the most recent */

static void make_pool(void)
{
    unused = 0;
    for (int i = COUNT - 1; i >= 0; i--) {
        pool[i].next = unused;
        unused = &pool[i];
    }
}

static struct node *take(uint32_t value)
{
    struct node *node = unused;

    unused = node->next;
    node->value = value;
    return node;
}

static void give_back(struct node *node)
{
    node->next = unused;
    unused = node;
}

static struct node *merge(struct node *a, struct node *b)
{
    struct node *first = 0, **end = &first;

    while (a && b) {
        struct node **lesser = a->value <= b->value ? &a : &b;

        *end = *lesser;
        end = &(*lesser)->next;
        *lesser = (*lesser)->next;
    }
    *end = a ? a : b;
    return first;
}

/* Splits after half of the nodes, found by a walk of twice the speed. */
static struct node *split(struct node *list)
{
    struct node *slow = list, *fast = list->next, *half;

    while (fast && fast->next) {
        slow = slow->next;
        fast = fast->next->next;
    }
    half = slow->next;
    slow->next = 0;
    return half;
}

static struct node *sort(struct node *list)
{
    struct node *half;

    if (!list || !list->next)
        return list;
    half = split(list);
    return merge(sort(list), sort(half));
}

static struct node *reverse(struct node *list)
{
    struct node *done = 0;

    while (list) {
        struct node *next = list->next;

        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

static uint32_t remove_duplicates(struct node *list)
{
    uint32_t removed = 0;

    while (list && list->next) {
        struct node *next = list->next;

        if (next->value == list->value) {
            list->next = next->next;
            give_back(next);
            removed++;
        } else {
            list = next;
        }
    }
    return removed;
}

static struct node *take_out_odd(struct node **list)
{
    struct node *odd = 0, **end = &odd;

    while (*list) {
        if ((*list)->value & 1) {
            *end = *list;
            *list = (*list)->next;
            end = &(*end)->next;
        } else {
            list = &(*list)->next;
        }
    }
    *end = 0;
    return odd;
}

static struct node *append(struct node *a, struct node *b)
{
    struct node **end = &a;

    while (*end)
        end = &(*end)->next;
    *end = b;
    return a;
}

static void unlink_entry(struct recent *entry)
{
    entry->before->after = entry->after;
    entry->after->before = entry->before;
}

static void to_front(struct recent *entry)
{
    entry->after = ring.after;
    entry->before = &ring;
    ring.after->before = entry;
    ring.after = entry;
}

static void make_ring(void)
{
    ring.before = ring.after = &ring;
    for (uint32_t i = 0; i < RECENT; i++) {
        entries[i].key = i;
        entries[i].uses = 0;
        to_front(&entries[i]);
    }
}

/* Looks for a key from the most recent on; the oldest makes way for a new. */
static uint32_t use(uint32_t key)
{
    uint32_t distance = 0;
    struct recent *entry = ring.after;

    while (entry != &ring && entry->key != key) {
        entry = entry->after;
        distance++;
    }
    if (entry == &ring) {
        entry = ring.before;
        entry->key = key;
        entry->uses = 0;
    }
    entry->uses++;
    unlink_entry(entry);
    to_front(entry);
    return distance;
}

static uint64_t one_round(uint64_t *random, uint64_t hash)
{
    struct node *list = 0, *odd;
    uint32_t place = 0;

    for (int i = 0; i < COUNT; i++) {
        struct node *node = take((uint32_t)next_random(random) % 4096);

        node->next = list;
        list = node;
    }
    list = sort(list);
    hash = mix(hash, remove_duplicates(list));
    odd = take_out_odd(&list);
    list = append(reverse(list), odd);
    while (list) {
        struct node *next = list->next;

        hash = mix(hash, list->value + place++);
        hash += use(list->value % 80);
        give_back(list);
        list = next;
    }
    return hash;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    make_pool();
    make_ring();
    for (uint64_t n = 0; n < iterations; n++)
        hash = one_round(&random, hash);
    return hash;
}
