/*
 * A B-tree that grows and shrinks, beside a sorted array with binary search.
 *
 * Each round inserts, looks up and deletes random keys, walks the tree, and
 * compares it with the array.  The result is zero if they differ.
 */
#include "alloc.h"

#define LEAST 7 /* keys in a node, except in the root */
#define MOST (2 * LEAST + 1)
#define KEYS 3000
#define PER_ROUND 120

struct node {
    uint16_t count, leaf;
    uint32_t keys[MOST];
    uint32_t values[MOST];
    struct node *children[MOST + 1];
};

static struct node *root;
static uint32_t sorted[KEYS + PER_ROUND];
static int sorted_count;

static struct node *new_node(uint16_t leaf)
{
    struct node *node = allocate(sizeof *node);

    node->count = 0;
    node->leaf = leaf;
    return node;
}

/* The first key that is not less. */
static int place_in(const uint32_t *keys, int count, uint32_t key)
{
    int low = 0, high = count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t *find(uint32_t key)
{
    struct node *node = root;

    for (;;) {
        int at = place_in(node->keys, node->count, key);

        if (at < node->count && node->keys[at] == key)
            return &node->values[at];
        if (node->leaf)
            return 0;
        node = node->children[at];
    }
}

static void move(struct node *to, int to_at, struct node *from, int from_at)
{
    to->keys[to_at] = from->keys[from_at];
    to->values[to_at] = from->values[from_at];
}

static void open_gap(struct node *node, int at)
{
    for (int i = node->count; i > at; i--)
        move(node, i, node, i - 1);
    if (!node->leaf) {
        for (int i = node->count + 1; i > at + 1; i--)
            node->children[i] = node->children[i - 1];
    }
    node->count++;
}

/* Takes out a key and the child to its right. */
static void close_gap(struct node *node, int at)
{
    node->count--;
    for (int i = at; i < node->count; i++)
        move(node, i, node, i + 1);
    if (!node->leaf) {
        for (int i = at + 1; i <= node->count; i++)
            node->children[i] = node->children[i + 1];
    }
}

/* Splits a full child; its middle key goes up. */
static void split(struct node *parent, int at)
{
    struct node *left = parent->children[at], *right = new_node(left->leaf);

    right->count = LEAST;
    for (int i = 0; i < LEAST; i++)
        move(right, i, left, i + LEAST + 1);
    if (!left->leaf) {
        for (int i = 0; i <= LEAST; i++)
            right->children[i] = left->children[i + LEAST + 1];
    }
    left->count = LEAST;
    open_gap(parent, at);
    move(parent, at, left, LEAST);
    parent->children[at + 1] = right;
}

static void insert(uint32_t key, uint32_t value)
{
    struct node *node;

    if (root->count == MOST) {
        struct node *above = new_node(0);

        above->children[0] = root;
        root = above;
        split(root, 0);
    }
    node = root;
    for (;;) {
        int at = place_in(node->keys, node->count, key);

        if (node->leaf) {
            open_gap(node, at);
            node->keys[at] = key;
            node->values[at] = value;
            return;
        }
        if (node->children[at]->count == MOST) {
            split(node, at);
            at += key > node->keys[at];
        }
        node = node->children[at];
    }
}

/* Joins two neighbours with the key between them. */
static struct node *join(struct node *parent, int at)
{
    struct node *left = parent->children[at], *right = parent->children[at + 1];

    move(left, left->count, parent, at);
    for (int i = 0; i < right->count; i++)
        move(left, left->count + 1 + i, right, i);
    if (!left->leaf) {
        for (int i = 0; i <= right->count; i++)
            left->children[left->count + 1 + i] = right->children[i];
    }
    left->count = (uint16_t)(left->count + right->count + 1);
    close_gap(parent, at);
    release(right);
    return left;
}

static void borrow_from_left(struct node *parent, int at)
{
    struct node *child = parent->children[at], *left = parent->children[at - 1];
    struct node *moved = left->leaf ? 0 : left->children[left->count];

    open_gap(child, 0);
    if (!child->leaf) {
        child->children[1] = child->children[0];
        child->children[0] = moved;
    }
    move(child, 0, parent, at - 1);
    move(parent, at - 1, left, --left->count);
}

static void borrow_from_right(struct node *parent, int at)
{
    struct node *child = parent->children[at], *right = parent->children[at + 1];

    move(child, child->count++, parent, at);
    move(parent, at, right, 0);
    if (!child->leaf) {
        child->children[child->count] = right->children[0];
        right->children[0] = right->children[1];
    }
    close_gap(right, 0);
}

/* Makes sure that a child can lose a key; returns it, or what it became. */
static struct node *strengthen(struct node *parent, int at)
{
    struct node *child = parent->children[at];

    if (child->count > LEAST)
        return child;
    if (at > 0 && parent->children[at - 1]->count > LEAST) {
        borrow_from_left(parent, at);
        return child;
    }
    if (at < parent->count && parent->children[at + 1]->count > LEAST) {
        borrow_from_right(parent, at);
        return child;
    }
    return join(parent, at < parent->count ? at : at - 1);
}

static void remove_from(struct node *node, uint32_t key);

/* Puts the greatest key before `at` in its place, and removes it below. */
static void replace_by_predecessor(struct node *node, int at)
{
    struct node *below = node->children[at];

    while (!below->leaf)
        below = below->children[below->count];
    move(node, at, below, below->count - 1);
    remove_from(node->children[at], node->keys[at]);
}

static void replace_by_successor(struct node *node, int at)
{
    struct node *below = node->children[at + 1];

    while (!below->leaf)
        below = below->children[0];
    move(node, at, below, 0);
    remove_from(node->children[at + 1], node->keys[at]);
}

/* The node has a key to spare, or is the root. */
static void remove_from(struct node *node, uint32_t key)
{
    for (;;) {
        int at = place_in(node->keys, node->count, key);
        int here = at < node->count && node->keys[at] == key;

        if (node->leaf) {
            if (here)
                close_gap(node, at);
            return;
        }
        if (!here) {
            node = strengthen(node, at);
        } else if (node->children[at]->count > LEAST) {
            replace_by_predecessor(node, at);
            return;
        } else if (node->children[at + 1]->count > LEAST) {
            replace_by_successor(node, at);
            return;
        } else {
            node = join(node, at);
        }
    }
}

static void remove_key(uint32_t key)
{
    remove_from(root, key);
    if (root->count == 0 && !root->leaf) {
        struct node *old = root;

        root = old->children[0];
        release(old);
    }
}

/* --- the array --- */

static void array_insert(uint32_t key)
{
    int at = place_in(sorted, sorted_count, key);

    for (int i = sorted_count++; i > at; i--)
        sorted[i] = sorted[i - 1];
    sorted[at] = key;
}

static void array_remove(int at)
{
    sorted_count--;
    for (int i = at; i < sorted_count; i++)
        sorted[i] = sorted[i + 1];
}

/* Walks the tree in order; returns the keys seen, or -1 if one differs. */
static int compare_in_order(const struct node *node, int seen)
{
    for (int i = 0; i <= node->count && seen >= 0; i++) {
        if (!node->leaf)
            seen = compare_in_order(node->children[i], seen);
        if (i < node->count && seen >= 0)
            seen = node->keys[i] == sorted[seen] ? seen + 1 : -1;
    }
    return seen;
}

static uint64_t one_round(uint64_t *random, uint64_t hash)
{
    for (int i = 0; i < PER_ROUND; i++) {
        uint64_t r = next_random(random);
        uint32_t key = (uint32_t)r & 0xffff, *value = find(key);

        if (value) {
            hash = mix(hash, (*value)++);
        } else {
            insert(key, (uint32_t)(r >> 32));
            array_insert(key);
        }
        value = find(sorted[(r >> 16) % (uint64_t)sorted_count]);
        hash = mix(hash, value ? *value : 0);
    }
    while (sorted_count > KEYS - PER_ROUND * 10) {
        int at = (int)(next_random(random) % (uint64_t)sorted_count);

        remove_key(sorted[at]);
        array_remove(at);
    }
    return compare_in_order(root, 0) == sorted_count ? hash : 0;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    arena_reset();
    root = new_node(1);
    sorted_count = 0;
    for (uint64_t n = 0; n < iterations && hash; n++)
        hash = one_round(&random, hash);
    return hash ? mix(hash, (uint64_t)sorted_count) : 0;
}
