/*
 * A red-black tree with parent pointers, its nodes from malloc.
 *
 * Each round inserts random keys, looks some up, walks a range in order, and
 * deletes about as many as it inserted, so that the tree stays of a size.
 */
#include "alloc.h"

#define KEYS 4096
#define PER_ROUND 300

struct node {
    struct node *parent, *left, *right;
    uint32_t key;
    uint32_t red;
    uint64_t value;
};

static struct node *root;
static uint64_t count;

static void rotate_left(struct node *x)
{
    struct node *y = x->right;

    x->right = y->left;
    if (y->left)
        y->left->parent = x;
    y->parent = x->parent;
    if (!x->parent)
        root = y;
    else if (x == x->parent->left)
        x->parent->left = y;
    else
        x->parent->right = y;
    y->left = x;
    x->parent = y;
}

static void rotate_right(struct node *x)
{
    struct node *y = x->left;

    x->left = y->right;
    if (y->right)
        y->right->parent = x;
    y->parent = x->parent;
    if (!x->parent)
        root = y;
    else if (x == x->parent->right)
        x->parent->right = y;
    else
        x->parent->left = y;
    y->right = x;
    x->parent = y;
}

static void repair_after_insertion(struct node *z)
{
    while (z->parent && z->parent->red) {
        struct node *parent = z->parent, *above = parent->parent;
        struct node *uncle = parent == above->left ? above->right : above->left;

        if (uncle && uncle->red) {
            parent->red = uncle->red = 0;
            above->red = 1;
            z = above;
        } else if (parent == above->left) {
            if (z == parent->right) {
                z = parent;
                rotate_left(z);
            }
            z->parent->red = 0;
            above->red = 1;
            rotate_right(above);
        } else {
            if (z == parent->left) {
                z = parent;
                rotate_right(z);
            }
            z->parent->red = 0;
            above->red = 1;
            rotate_left(above);
        }
    }
    root->red = 0;
}

static struct node *find(uint32_t key)
{
    struct node *node = root;

    while (node && node->key != key)
        node = key < node->key ? node->left : node->right;
    return node;
}

static void insert(uint32_t key, uint64_t value)
{
    struct node **link = &root, *parent = 0, *node;

    while (*link) {
        parent = *link;
        if (parent->key == key) {
            parent->value ^= value;
            return;
        }
        link = key < parent->key ? &parent->left : &parent->right;
    }
    node = allocate(sizeof *node);
    *node = (struct node){ .parent = parent, .key = key, .red = 1, .value = value };
    *link = node;
    count++;
    repair_after_insertion(node);
}

static struct node *least(struct node *node)
{
    while (node->left)
        node = node->left;
    return node;
}

static struct node *successor(struct node *node)
{
    if (node->right)
        return least(node->right);
    while (node->parent && node == node->parent->right)
        node = node->parent;
    return node->parent;
}

static void put_in_place_of(struct node *old, struct node *new)
{
    if (!old->parent)
        root = new;
    else if (old == old->parent->left)
        old->parent->left = new;
    else
        old->parent->right = new;
    if (new)
        new->parent = old->parent;
}

static int is_black(const struct node *node)
{
    return !node || !node->red;
}

/* `x`, which may be absent, lacks one black node; `parent` is above it. */
static void repair_after_deletion(struct node *x, struct node *parent)
{
    while (x != root && is_black(x)) {
        int left = x == parent->left;
        struct node *other = left ? parent->right : parent->left;

        if (other->red) {
            other->red = 0;
            parent->red = 1;
            (left ? rotate_left : rotate_right)(parent);
            other = left ? parent->right : parent->left;
        }
        if (is_black(other->left) && is_black(other->right)) {
            other->red = 1;
            x = parent;
            parent = x->parent;
            continue;
        }
        if (left) {
            if (is_black(other->right)) {
                other->left->red = 0;
                other->red = 1;
                rotate_right(other);
                other = parent->right;
            }
            other->right->red = 0;
        } else {
            if (is_black(other->left)) {
                other->right->red = 0;
                other->red = 1;
                rotate_left(other);
                other = parent->left;
            }
            other->left->red = 0;
        }
        other->red = parent->red;
        parent->red = 0;
        (left ? rotate_left : rotate_right)(parent);
        x = root;
    }
    if (x)
        x->red = 0;
}

static void remove_node(struct node *z)
{
    struct node *y = z, *x, *parent;
    uint32_t lost_red = y->red;

    if (!z->left) {
        x = z->right;
        parent = z->parent;
        put_in_place_of(z, x);
    } else if (!z->right) {
        x = z->left;
        parent = z->parent;
        put_in_place_of(z, x);
    } else {
        y = least(z->right);
        lost_red = y->red;
        x = y->right;
        parent = y;
        if (y->parent != z) {
            parent = y->parent;
            put_in_place_of(y, x);
            y->right = z->right;
            y->right->parent = y;
        }
        put_in_place_of(z, y);
        y->left = z->left;
        y->left->parent = y;
        y->red = z->red;
    }
    if (!lost_red && root)
        repair_after_deletion(x, parent);
    release(z);
    count--;
}

static struct node *first_from(uint32_t key)
{
    struct node *node = root, *best = 0;

    while (node) {
        if (node->key >= key) {
            best = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return best;
}

static uint64_t one_round(uint64_t *random, uint64_t hash)
{
    struct node *node;

    for (int i = 0; i < PER_ROUND; i++) {
        uint64_t r = next_random(random);

        insert((uint32_t)r % KEYS, r >> 32);
        node = find((uint32_t)(r >> 20) % KEYS);
        if (node)
            hash += node->value;
    }
    node = first_from((uint32_t)hash % KEYS);
    for (int i = 0; i < 200 && node; i++, node = successor(node))
        hash = mix(hash, node->key);
    while (count > 1000) {
        node = first_from((uint32_t)next_random(random) % KEYS);
        if (node)
            remove_node(node);
    }
    return mix(hash, count);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    arena_reset();
    root = 0;
    count = 0;
    for (uint64_t n = 0; n < iterations; n++)
        hash = one_round(&random, hash);
    for (struct node *node = root ? least(root) : 0; node; node = successor(node))
        hash = mix(hash, node->value ^ node->red);
    return hash;
}
