/*
 * A small Lisp: a reader, an evaluator of trees with closures, and a garbage
 * collector that marks and sweeps.
 *
 * The start reads definitions.  A round evaluates expressions that call them:
 * recursion, lists that are mapped, filtered, sorted and reversed, primes, and
 * a counter in a closure.
 */
#include "guest.h"

#define CELLS 6000
#define ROOTS 4096
#define SYMBOLS 96

enum tag { FREE, PAIR, NUMBER, SYMBOL, BUILTIN, CLOSURE };

struct cell {
    uint8_t tag, marked;
    uint16_t index; /* of a symbol or builtin */
    union {
        struct {
            struct cell *first, *rest;
        };
        int64_t number;
    };
    struct cell *environment; /* of a closure */
};

static const char definitions[] =
    "(define fib (lambda (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))))"
    "(define range (lambda (a b) (if (< a b) (cons a (range (+ a 1) b)) nil)))"
    "(define map (lambda (f l) (if l (cons (f (car l)) (map f (cdr l))) nil)))"
    "(define filter (lambda (f l) (if l (if (f (car l)) (cons (car l)"
    "   (filter f (cdr l))) (filter f (cdr l))) nil)))"
    "(define fold (lambda (f x l) (if l (fold f (f x (car l)) (cdr l)) x)))"
    "(define append (lambda (a b) (if a (cons (car a) (append (cdr a) b)) b)))"
    "(define reverse (lambda (l) (fold (lambda (x y) (cons y x)) nil l)))"
    "(define sort (lambda (l) (if l (let (p (car l) r (cdr l))"
    "   (append (sort (filter (lambda (x) (< x p)) r))"
    "     (cons p (sort (filter (lambda (x) (not (< x p))) r))))) nil)))"
    "(define divides (lambda (a b) (= 0 (% b a))))"
    "(define prime (lambda (n) (let (try nil)"
    "   (begin (set try (lambda (d) (if (< n (* d d)) 1"
    "      (if (divides d n) nil (try (+ d 1)))))) (try 2)))))"
    "(define counter (lambda (n) (lambda (by) (set n (+ n by)))))"
    "(define compose (lambda (f g) (lambda (x) (f (g x)))))"
    "(define hash (lambda (l) (fold (lambda (h x) (% (+ (* h 31) x) 1000003)) 7 l)))";

static const char *const expressions[] = {
    "(fib (+ 7 (% seed 3)))",
    "(hash (sort (map (lambda (x) (% (* x (+ seed 7919)) 101)) (range 0 20))))",
    "(hash (filter prime (range 2 60)))",
    "(let (c (counter seed)) (begin (c 1) (c 10) (c 100)))",
    "(hash (reverse (map (compose (lambda (x) (* x x)) (lambda (x) (- x seed)))"
    "   (range 0 25))))",
    "(fold + 0 (map (lambda (l) (hash l)) (map (lambda (n) (range 0 n)) (range 0 9))))",
};

#define EXPRESSIONS (sizeof expressions / sizeof expressions[0])

static struct cell cells[CELLS];
static struct cell *free_cells;
static struct cell *roots[ROOTS]; /* what the C code holds */
static int root_count;
static struct cell *globals;
static struct cell *trees[EXPRESSIONS];
static char names[SYMBOLS][12];
static struct cell *symbols[SYMBOLS];
static int symbol_count;
static uint64_t collections;

/* --- memory --- */

static void mark(struct cell *cell)
{
    while (cell && !cell->marked) {
        cell->marked = 1;
        if (cell->tag != PAIR && cell->tag != CLOSURE)
            return;
        mark(cell->first);
        if (cell->tag == CLOSURE)
            mark(cell->environment);
        cell = cell->rest;
    }
}

static void collect(void)
{
    collections++;
    mark(globals);
    for (int i = 0; i < root_count; i++)
        mark(roots[i]);
    for (int i = 0; i < symbol_count; i++)
        mark(symbols[i]);
    for (size_t i = 0; i < EXPRESSIONS; i++)
        mark(trees[i]);
    free_cells = 0;
    for (int i = CELLS - 1; i >= 0; i--) {
        if (cells[i].marked) {
            cells[i].marked = 0;
        } else {
            cells[i].tag = FREE;
            cells[i].rest = free_cells;
            free_cells = &cells[i];
        }
    }
    if (!free_cells)
        __builtin_trap(); /* no program here needs so many */
}

static struct cell *hold(struct cell *cell)
{
    if (root_count == ROOTS)
        __builtin_trap();
    return roots[root_count++] = cell;
}

static struct cell *new_cell(enum tag tag)
{
    struct cell *cell;

    if (!free_cells)
        collect();
    cell = free_cells;
    free_cells = cell->rest;
    cell->tag = (uint8_t)tag;
    cell->first = cell->rest = cell->environment = 0;
    return cell;
}

/* Both parts must be held by something. */
static struct cell *cons(struct cell *first, struct cell *rest)
{
    struct cell *cell = new_cell(PAIR);

    cell->first = first;
    cell->rest = rest;
    return cell;
}

static struct cell *number(int64_t value)
{
    struct cell *cell = new_cell(NUMBER);

    cell->number = value;
    return cell;
}

/* --- the reader --- */

enum { QUOTE, IF, DEFINE, SET, LAMBDA, LET, BEGIN, SPECIAL };

static const char *const known[] = {
    "quote", "if", "define", "set", "lambda", "let", "begin", /* special */
    "+", "-", "*", "/", "%", "<", "=", "not", "cons", "car", "cdr", 0,
};

static int same_name(const char *name, const char *text, int length)
{
    for (int i = 0; i < length; i++) {
        if (name[i] != text[i])
            return 0;
    }
    return !name[length];
}

static struct cell *symbol(const char *text, int length)
{
    struct cell *cell;
    int i;

    for (i = 0; i < symbol_count; i++) {
        if (same_name(names[i], text, length))
            return symbols[i];
    }
    for (int j = 0; j < length; j++)
        names[i][j] = text[j];
    names[i][length] = 0;
    cell = new_cell(SYMBOL);
    cell->index = (uint16_t)i;
    symbols[symbol_count++] = cell;
    return cell;
}

static int ends_word(char c)
{
    return !c || c == ' ' || c == '(' || c == ')';
}

static struct cell *read(const char **at)
{
    const char *start;
    int64_t value = 0;

    while (**at == ' ')
        (*at)++;
    if (**at == '(') {
        int list = root_count;

        hold(0);
        for ((*at)++; **at != ')';) {
            hold(read(at));
            while (**at == ' ')
                (*at)++;
        }
        (*at)++;
        for (; root_count > list + 1; root_count--)
            roots[list] = cons(roots[root_count - 1], roots[list]);
        return roots[--root_count];
    }
    for (start = *at; !ends_word(**at); (*at)++)
        value = value * 10 + **at - '0';
    if (*start >= '0' && *start <= '9')
        return number(value);
    return symbol(start, (int)(*at - start));
}

/* --- the evaluator --- */

static struct cell *evaluate(struct cell *tree, struct cell *environment);

/* An environment is a list of pairs of a symbol and its value. */
static struct cell *lookup(struct cell *symbol, struct cell *environment)
{
    for (; environment; environment = environment->rest) {
        if (environment->first->first == symbol)
            return environment->first;
    }
    for (environment = globals; environment; environment = environment->rest) {
        if (environment->first->first == symbol)
            return environment->first;
    }
    __builtin_trap(); /* the programs here name nothing unknown */
}

/* Both must be held. */
static struct cell *bind(struct cell *name, struct cell *value, struct cell *to)
{
    struct cell *pair = hold(cons(name, value));
    struct cell *list = cons(pair, to);

    root_count--;
    return list;
}

static int64_t compute(int builtin, int64_t a, int64_t b)
{
    switch (builtin) {
    case 0: return (int64_t)((uint64_t)a + (uint64_t)b);
    case 1: return (int64_t)((uint64_t)a - (uint64_t)b);
    case 2: return (int64_t)((uint64_t)a * (uint64_t)b);
    case 3: return b ? a / b : 0;
    default: return b ? a % b : 0;
    }
}

static struct cell *apply_builtin(int builtin, struct cell *a, struct cell *b)
{
    switch (builtin) {
    case 5: return a->number < b->number ? a : 0;
    case 6: return a->number == b->number ? a : 0;
    case 7: return a ? 0 : number(1);
    case 8: return cons(a, b);
    case 9: return a->first;
    case 10: return a->rest;
    default: return number(compute(builtin, a->number, b->number));
    }
}

static struct cell *call_builtin(int builtin, struct cell *arguments,
                                 struct cell *environment)
{
    struct cell *a = hold(evaluate(arguments->first, environment)), *b = 0;

    if (arguments->rest)
        b = evaluate(arguments->rest->first, environment);
    hold(b);
    return apply_builtin(builtin, a, b);
}

/* Values of a call's arguments, in front of the closure's environment. */
static struct cell *bind_arguments(struct cell *closure, struct cell *arguments,
                                   struct cell *environment)
{
    struct cell *inner = closure->environment, *name = closure->first;
    int slot = root_count;

    hold(inner);
    for (; name; name = name->rest, arguments = arguments->rest) {
        hold(evaluate(arguments->first, environment));
        roots[slot] = bind(name->first, roots[slot + 1], roots[slot]);
        root_count = slot + 1;
    }
    return roots[slot];
}

static struct cell *make_closure(struct cell *tree, struct cell *environment)
{
    struct cell *closure = new_cell(CLOSURE);

    closure->first = tree->rest->first;
    closure->rest = tree->rest->rest->first;
    closure->environment = environment;
    return closure;
}

static struct cell *bind_let(struct cell *pairs, struct cell *environment)
{
    int slot = root_count;

    hold(environment);
    for (; pairs; pairs = pairs->rest->rest) {
        hold(evaluate(pairs->rest->first, roots[slot]));
        roots[slot] = bind(pairs->first, roots[slot + 1], roots[slot]);
        root_count = slot + 1;
    }
    return roots[slot];
}

static struct cell *define(struct cell *tree, struct cell *environment)
{
    struct cell *value = hold(evaluate(tree->rest->rest->first, environment));

    globals = bind(tree->rest->first, value, globals);
    return value;
}

/* The tree that takes this one's place, or 0 with `*value` set. */
static struct cell *special(struct cell *tree, struct cell **environment,
                            struct cell **value)
{
    struct cell *rest = tree->rest;

    switch (tree->first->index) {
    case QUOTE:
        *value = rest->first;
        return 0;
    case IF:
        return evaluate(rest->first, *environment) ? rest->rest->first
                                                   : rest->rest->rest->first;
    case DEFINE:
        *value = define(tree, *environment);
        return 0;
    case SET:
        *value = evaluate(rest->rest->first, *environment);
        lookup(rest->first, *environment)->rest = *value;
        return 0;
    case LAMBDA:
        *value = make_closure(tree, *environment);
        return 0;
    case LET:
        *environment = bind_let(rest->first, *environment);
        return rest->rest->first;
    default: /* BEGIN */
        for (; rest->rest; rest = rest->rest)
            evaluate(rest->first, *environment);
        return rest->first;
    }
}

/* A call in the last place takes no stack: the loop goes on with its body. */
static struct cell *evaluate(struct cell *tree, struct cell *environment)
{
    int base = root_count;
    struct cell *value = 0;

    while (tree) {
        struct cell *function;

        root_count = base;
        hold(environment);
        if (tree->tag == SYMBOL) {
            value = lookup(tree, environment)->rest;
            break;
        }
        if (tree->tag != PAIR) {
            value = tree;
            break;
        }
        if (tree->first->tag == SYMBOL && tree->first->index < SPECIAL) {
            tree = special(tree, &environment, &value);
            continue;
        }
        function = hold(evaluate(tree->first, environment));
        if (function->tag == BUILTIN) {
            value = call_builtin(function->index, tree->rest, environment);
            break;
        }
        environment = bind_arguments(function, tree->rest, environment);
        /* The body stays: it is part of a definition or an expression. */
        tree = function->rest;
    }
    root_count = base;
    return value;
}

/* --- the start --- */

static struct cell *named(const char *name)
{
    int length = 0;

    while (name[length])
        length++;
    return symbol(name, length);
}

static void start(void)
{
    const char *at = definitions;

    globals = 0;
    root_count = symbol_count = 0;
    collections = 0;
    for (size_t i = 0; i < EXPRESSIONS; i++)
        trees[i] = 0;
    for (int i = 0; i < CELLS; i++)
        cells[i].marked = 0;
    collect();
    for (int i = 0; known[i]; i++) {
        struct cell *name = named(known[i]);

        if (i >= SPECIAL) {
            struct cell *builtin = new_cell(BUILTIN);

            builtin->index = (uint16_t)(i - SPECIAL);
            globals = bind(name, hold(builtin), globals);
            root_count = 0;
        }
    }
    globals = bind(named("nil"), 0, globals);
    while (*at) {
        hold(read(&at));
        evaluate(roots[0], 0);
        root_count = 0;
    }
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        at = expressions[i];
        trees[i] = read(&at);
    }
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;
    struct cell *seed;

    start();
    globals = bind(named("seed"), 0, globals);
    seed = globals->first; /* the pair; its value changes */
    for (uint64_t n = 0; n < iterations; n++) {
        seed->rest = number((int64_t)(next_random(&random) % 1000));
        for (size_t i = 0; i < EXPRESSIONS; i++) {
            struct cell *value = evaluate(trees[i], 0);

            hash = mix(hash, value ? (uint64_t)value->number : 0);
        }
    }
    return mix(hash, collections);
}
