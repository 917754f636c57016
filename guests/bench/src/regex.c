/*
 * A backtracking matcher of regular expressions.
 *
 * Patterns are parsed into a tree of nodes with literals, `.`, classes,
 * groups, `|`, and the greedy and lazy forms of `*`, `+` and `?`.  Matching
 * walks the tree with continuations on the stack, so that it can go back.
 * Each round searches a text of log lines for every pattern.
 */
#include "guest.h"

#define TEXT_SIZE 1500
#define NODES 64
#define CLASSES 16

enum kind { CHARACTER, ANY, CLASS, START, END, GROUP, ALTERNATIVE, REPEAT, EMPTY };

struct node {
    enum kind kind;
    uint8_t character;
    uint8_t class;
    int8_t lazy;
    int16_t least, most;      /* of REPEAT; most is -1 for no limit */
    struct node *first, *other; /* what is inside; the second of ALTERNATIVE */
    struct node *next;        /* what follows in the sequence */
};

struct program {
    struct node nodes[NODES];
    uint8_t classes[CLASSES][32];
    int node_count, class_count;
    struct node *root;
};

static const char *const patterns[] = {
    "[0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+",
    "(GET|POST|PUT|HEAD) /[a-z0-9_/]*(\\.html|\\.php)?",
    "\\[[^\\]]*\\]",
    "user=(\\w+)( \\w+)*?;",
    "^(.*?)(error|warn)(.*)$",
    "(a|b|ab|ba)*c",
    "\\d\\d:\\d\\d(:\\d\\d)?",
    "[^ ]+@[a-z]+(\\.[a-z]+)+",
    "(x+x+)+y",
    "id=(0x[0-9a-f]+|\\d+),? ",
};

#define PATTERNS (sizeof patterns / sizeof patterns[0])

static struct program programs[PATTERNS];
static char text[TEXT_SIZE + 1];
static uint64_t steps;

/* --- parsing --- */

static struct node *parse_alternatives(struct program *p, const char **at);

static struct node *new_node(struct program *p, enum kind kind)
{
    struct node *node = &p->nodes[p->node_count++];

    *node = (struct node){ .kind = kind };
    return node;
}

static void class_add(uint8_t *class, int from, int to)
{
    for (int c = from; c <= to; c++)
        class[c >> 3] |= (uint8_t)(1 << (c & 7));
}

static void class_add_escape(uint8_t *class, char c)
{
    switch (c) {
    case 'd':
        class_add(class, '0', '9');
        break;
    case 'w':
        class_add(class, '0', '9');
        class_add(class, 'a', 'z');
        class_add(class, 'A', 'Z');
        class_add(class, '_', '_');
        break;
    case 's':
        class_add(class, ' ', ' ');
        class_add(class, '\t', '\n');
        break;
    default:
        class_add(class, c, c);
    }
}

static struct node *new_class(struct program *p)
{
    struct node *node = new_node(p, CLASS);

    node->class = (uint8_t)p->class_count++;
    for (int i = 0; i < 32; i++)
        p->classes[node->class][i] = 0;
    return node;
}

static struct node *parse_class(struct program *p, const char **at)
{
    struct node *node = new_class(p);
    uint8_t *class = p->classes[node->class];
    int negated = **at == '^';

    *at += negated;
    while (**at && **at != ']') {
        char c = *(*at)++;

        if (c == '\\') {
            class_add_escape(class, *(*at)++);
        } else if (**at == '-' && (*at)[1] != ']') {
            class_add(class, c, (*at)[1]);
            *at += 2;
        } else {
            class_add(class, c, c);
        }
    }
    (*at)++;
    if (negated) {
        for (int i = 0; i < 32; i++)
            class[i] = (uint8_t)~class[i];
    }
    return node;
}

static struct node *parse_atom(struct program *p, const char **at)
{
    char c = *(*at)++;
    struct node *node;

    switch (c) {
    case '.':
        return new_node(p, ANY);
    case '^':
        return new_node(p, START);
    case '$':
        return new_node(p, END);
    case '[':
        return parse_class(p, at);
    case '(':
        node = new_node(p, GROUP);
        node->first = parse_alternatives(p, at);
        (*at)++; /* the closing one */
        return node;
    case '\\':
        c = *(*at)++;
        if (c == 'd' || c == 'w' || c == 's') {
            node = new_class(p);
            class_add_escape(p->classes[node->class], c);
            return node;
        }
        break;
    }
    node = new_node(p, CHARACTER);
    node->character = (uint8_t)c;
    return node;
}

static struct node *parse_repeat(struct program *p, const char **at)
{
    struct node *atom = parse_atom(p, at);

    while (**at == '*' || **at == '+' || **at == '?') {
        struct node *repeat = new_node(p, REPEAT);
        char c = *(*at)++;

        repeat->least = c == '+';
        repeat->most = c == '?' ? 1 : -1;
        if (**at == '?') {
            repeat->lazy = 1;
            (*at)++;
        }
        repeat->first = atom;
        atom = repeat;
    }
    return atom;
}

static struct node *parse_sequence(struct program *p, const char **at)
{
    struct node *first = 0, *last = 0;

    while (**at && **at != '|' && **at != ')') {
        struct node *node = parse_repeat(p, at);

        if (last)
            last->next = node;
        else
            first = node;
        last = node;
    }
    return first ? first : new_node(p, EMPTY);
}

static struct node *parse_alternatives(struct program *p, const char **at)
{
    struct node *left = parse_sequence(p, at);

    while (**at == '|') {
        struct node *node = new_node(p, ALTERNATIVE);

        (*at)++;
        node->first = left;
        node->other = parse_sequence(p, at);
        left = node;
    }
    return left;
}

/* --- matching --- */

/* What is left to match after a node: the rest of the sequences around it. */
struct rest {
    const struct node *node;   /* the next of a sequence, or 0 */
    const struct node *repeat; /* or one more turn of this */
    int count;                 /* turns it has made */
    const char *began;         /* where its last turn began */
    const struct rest *outer;
};

static const char *match(const struct program *p, const struct node *node,
                         const char *at, const struct rest *rest);

static const char *match_repeat(const struct program *p,
                                const struct node *repeat, int count,
                                const char *at, const struct rest *outer)
{
    struct rest again = { 0, repeat, count + 1, at, outer };
    int may = repeat->most < 0 || count < repeat->most;
    const char *end;

    if (count < repeat->least)
        return match(p, repeat->first, at, &again);
    if (repeat->lazy) {
        end = match(p, repeat->next, at, outer);
        return end || !may ? end : match(p, repeat->first, at, &again);
    }
    end = may ? match(p, repeat->first, at, &again) : 0;
    return end ? end : match(p, repeat->next, at, outer);
}

static const char *match_rest(const struct program *p, const char *at,
                              const struct rest *rest)
{
    if (!rest)
        return at;
    if (!rest->repeat)
        return match(p, rest->node, at, rest->outer);
    /* A turn that matched nothing would go on forever. */
    if (at == rest->began)
        return match(p, rest->repeat->next, at, rest->outer);
    return match_repeat(p, rest->repeat, rest->count, at, rest->outer);
}

/* Returns where the match ends, or 0. */
static const char *match(const struct program *p, const struct node *node,
                         const char *at, const struct rest *rest)
{
    for (; node; node = node->next) {
        steps++;
        switch (node->kind) {
        case CHARACTER:
            if ((uint8_t)*at != node->character)
                return 0;
            at++;
            break;
        case ANY:
            if (!*at || *at == '\n')
                return 0;
            at++;
            break;
        case CLASS: {
            uint8_t c = (uint8_t)*at;

            if (!c || !(p->classes[node->class][c >> 3] >> (c & 7) & 1))
                return 0;
            at++;
            break;
        }
        case START:
            if (at != text && at[-1] != '\n')
                return 0;
            break;
        case END:
            if (*at && *at != '\n')
                return 0;
            break;
        case GROUP: {
            struct rest after = { node->next, 0, 0, 0, rest };

            return match(p, node->first, at, &after);
        }
        case ALTERNATIVE: {
            const char *end = match(p, node->first, at, rest);

            return end ? end : match(p, node->other, at, rest);
        }
        case REPEAT:
            return match_repeat(p, node, 0, at, rest);
        case EMPTY:
            break;
        }
    }
    return match_rest(p, at, rest);
}

/* --- the text --- */

static char *put(char *at, const char *words)
{
    while (*words && at < text + TEXT_SIZE)
        *at++ = *words++;
    return at;
}

static char *put_number(char *at, uint32_t value)
{
    char digits[12];
    int count = 12;

    digits[--count] = 0;
    do {
        digits[--count] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return put(at, digits + count);
}

static char *put_line(char *at, uint64_t r)
{
    static const char *const pieces[] = {
        "GET /index.html ", "POST /a/form_1.php ", "[error] disk ",
        "user=anna berta;", "abbabac ", "12:30:45 ", "joe@mail.example.org ",
        "xxxxxxxxz ", "id=0x7f3, ", "warn: low ", "PUT /x/y ", "abab id=42 ",
    };

    for (int i = 0; i < 4; i++) {
        at = put(at, pieces[(r >> (8 * i) & 255) % 12]);
        at = put_number(at, (uint32_t)(r >> (32 + 4 * i)) & 255);
        at = put(at, i == 3 ? "\n" : i == 1 ? "." : " ");
    }
    return at;
}

static void fill_text(uint64_t *random)
{
    char *at = text;

    while (at < text + TEXT_SIZE)
        at = put_line(at, next_random(random));
    *at = 0;
}

static uint64_t search_all(const struct program *p, uint64_t hash)
{
    for (const char *at = text; *at;) {
        const char *end = match(p, p->root, at, 0);

        if (end && end != at) {
            hash = mix(hash, (uint64_t)(at - text) << 16 | (uint64_t)(end - at));
            at = end;
        } else {
            at++;
        }
    }
    return hash;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    steps = 0;
    for (size_t i = 0; i < PATTERNS; i++) {
        const char *at = patterns[i];

        programs[i].node_count = programs[i].class_count = 0;
        programs[i].root = parse_alternatives(&programs[i], &at);
    }
    for (uint64_t n = 0; n < iterations; n++) {
        fill_text(&random);
        for (size_t i = 0; i < PATTERNS; i++)
            hash = search_all(&programs[i], hash);
    }
    return mix(hash, steps);
}
