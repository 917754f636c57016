/*
 * A tokenizer, a parser by recursive descent, and an evaluator, of a small
 * language of expressions and assignments with functions and conditions.
 *
 * Each round writes a program of random statements as text, turns it into a
 * tree, folds constants in it, and evaluates it three times.
 */
#include "guest.h"

#define TEXT_SIZE 8192
#define NODES 4096
#define STATEMENTS 60
#define VARIABLES 26

enum token {
    T_END, T_NUMBER, T_NAME, T_ASSIGN, T_SEMICOLON, T_LEFT, T_RIGHT, T_COMMA,
    T_PLUS, T_MINUS, T_STAR, T_SLASH, T_PERCENT, T_AND, T_OR, T_XOR,
    T_LESS, T_LESS_EQUAL, T_EQUAL, T_NOT_EQUAL, T_SHIFT_LEFT, T_SHIFT_RIGHT,
    T_NOT, T_TILDE, T_QUESTION, T_COLON, T_ERROR,
};

enum kind { CONSTANT, VARIABLE, UNARY, BINARY, CONDITION, CALL, ASSIGNMENT };

struct node {
    enum kind kind;
    enum token op;
    int64_t value; /* of a constant; the number of a variable or function */
    struct node *a, *b, *c;
};

static char text[TEXT_SIZE + 128];
static char *out;
static struct node nodes[NODES];
static int node_count;
static struct node *statements[STATEMENTS];
static int64_t variables[VARIABLES];
static int errors;

/* --- the writer of programs --- */

static void put(const char *s)
{
    while (*s && out < text + TEXT_SIZE)
        *out++ = *s++;
}

static void put_number(uint64_t value)
{
    char digits[21];
    int at = 20;

    digits[at] = 0;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    put(digits + at);
}

static void put_expression(uint64_t *random, int depth)
{
    static const char *const operators[] = { " + ", " - ", "*", " / ", " % ", " & ",
                                             " | ", "^",   "<", " <= ", "==", "!=",
                                             "<<", " >> " };
    static const char *const functions[] = { "min(", "max(", "gcd(", "pow(" };
    uint64_t r = next_random(random);

    if (depth == 0 || r % 16 < 3) {
        char name[2] = { (char)('a' + (r >> 8) % VARIABLES), 0 };

        if (r & 16)
            put(name);
        else
            put_number((r >> 16) % 1000);
        return;
    }
    switch (r % 16) {
    case 3:
    case 4:
        put(r & 32 ? "-" : r & 64 ? "~" : "!");
        put_expression(random, depth - 1);
        break;
    case 5:
        put("(");
        put_expression(random, depth - 1);
        put(" ? ");
        put_expression(random, depth - 1);
        put(" : ");
        put_expression(random, depth - 1);
        put(")");
        break;
    case 6:
    case 7:
        put(functions[r >> 8 & 3]);
        put_expression(random, depth - 1);
        put(", ");
        put_expression(random, depth - 1);
        put(")");
        break;
    case 8:
    case 9:
        put("(");
        put_expression(random, depth - 1);
        put(")");
        break;
    default:
        put_expression(random, depth - 1);
        put(operators[(r >> 8) % 14]);
        put_expression(random, depth - 1);
    }
}

static void write_program(uint64_t *random)
{
    out = text;
    for (int i = 0; i < STATEMENTS; i++) {
        char name[2] = { (char)('a' + next_random(random) % VARIABLES), 0 };

        put(name);
        put(" = ");
        put_expression(random, 4);
        put(i % 4 ? "; " : ";\n\t");
    }
    *out = 0;
}

/* --- the tokenizer --- */

static const char *at;
static enum token token;
static int64_t token_value;
static const char *token_start;
static int token_length;

static enum token either(char second, enum token longer, enum token shorter)
{
    if (*at != second)
        return shorter;
    at++;
    return longer;
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

static enum token scan(void)
{
    char c;

    while (*at == ' ' || *at == '\n' || *at == '\t')
        at++;
    token_start = at;
    c = *at;
    if (!c)
        return T_END;
    at++;
    if (c >= '0' && c <= '9') {
        token_value = c - '0';
        while (*at >= '0' && *at <= '9')
            token_value = token_value * 10 + (*at++ - '0');
        return T_NUMBER;
    }
    if (is_letter(c)) {
        while (is_letter(*at))
            at++;
        token_length = (int)(at - token_start);
        return T_NAME;
    }
    switch (c) {
    case '=': return either('=', T_EQUAL, T_ASSIGN);
    case ';': return T_SEMICOLON;
    case '(': return T_LEFT;
    case ')': return T_RIGHT;
    case ',': return T_COMMA;
    case '+': return T_PLUS;
    case '-': return T_MINUS;
    case '*': return T_STAR;
    case '/': return T_SLASH;
    case '%': return T_PERCENT;
    case '&': return T_AND;
    case '|': return T_OR;
    case '^': return T_XOR;
    case '~': return T_TILDE;
    case '?': return T_QUESTION;
    case ':': return T_COLON;
    case '!': return either('=', T_NOT_EQUAL, T_NOT);
    case '>': return either('>', T_SHIFT_RIGHT, T_ERROR);
    case '<':
        if (*at == '<') {
            at++;
            return T_SHIFT_LEFT;
        }
        return either('=', T_LESS_EQUAL, T_LESS);
    }
    return T_ERROR;
}

static void advance(void)
{
    token = scan();
}

static void expect(enum token wanted)
{
    if (token != wanted)
        errors++;
    else
        advance();
}

/* --- the parser --- */

static struct node *parse_expression(void);

static struct node *new_node(enum kind kind, enum token op, struct node *a,
                             struct node *b, struct node *c)
{
    struct node *node = &nodes[node_count < NODES - 1 ? node_count++ : NODES - 1];

    *node = (struct node){ .kind = kind, .op = op, .a = a, .b = b, .c = c };
    return node;
}

static struct node *constant(int64_t value)
{
    struct node *node = new_node(CONSTANT, T_END, 0, 0, 0);

    node->value = value;
    return node;
}

/* min, max, gcd and pow differ in their second letter. */
static struct node *parse_call(char second)
{
    struct node *node = new_node(CALL, T_END, 0, 0, 0);

    node->value = second;
    expect(T_LEFT);
    node->a = parse_expression();
    expect(T_COMMA);
    node->b = parse_expression();
    expect(T_RIGHT);
    return node;
}

static struct node *parse_primary(void)
{
    struct node *node;

    switch (token) {
    case T_NUMBER:
        node = constant(token_value);
        advance();
        return node;
    case T_NAME: {
        char first = token_start[0], second = token_start[1];
        int call = token_length > 1;

        advance();
        if (call)
            return parse_call(second);
        node = new_node(VARIABLE, T_END, 0, 0, 0);
        node->value = first - 'a';
        return node;
    }
    case T_LEFT:
        advance();
        node = parse_expression();
        expect(T_RIGHT);
        return node;
    case T_MINUS:
    case T_NOT:
    case T_TILDE: {
        enum token op = token;

        advance();
        return new_node(UNARY, op, parse_primary(), 0, 0);
    }
    default:
        errors++;
        advance();
        return constant(0);
    }
}

static int precedence(enum token op)
{
    switch (op) {
    case T_STAR:
    case T_SLASH:
    case T_PERCENT: return 8;
    case T_PLUS:
    case T_MINUS: return 7;
    case T_SHIFT_LEFT:
    case T_SHIFT_RIGHT: return 6;
    case T_LESS:
    case T_LESS_EQUAL: return 5;
    case T_EQUAL:
    case T_NOT_EQUAL: return 4;
    case T_AND: return 3;
    case T_XOR: return 2;
    case T_OR: return 1;
    default: return 0;
    }
}

static struct node *parse_binary(int least)
{
    struct node *left = parse_primary();

    for (;;) {
        enum token op = token;
        int level = precedence(op);

        if (level == 0 || level < least)
            return left;
        advance();
        left = new_node(BINARY, op, left, parse_binary(level + 1), 0);
    }
}

static struct node *parse_expression(void)
{
    struct node *condition = parse_binary(1), *yes;

    if (token != T_QUESTION)
        return condition;
    advance();
    yes = parse_expression();
    expect(T_COLON);
    return new_node(CONDITION, T_END, condition, yes, parse_expression());
}

static struct node *parse_statement(void)
{
    struct node *node = new_node(ASSIGNMENT, T_END, 0, 0, 0);

    node->value = *token_start - 'a';
    expect(T_NAME);
    expect(T_ASSIGN);
    node->a = parse_expression();
    expect(T_SEMICOLON);
    return node;
}

/* --- the evaluator --- */

static int64_t apply(enum token op, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;

    switch (op) {
    case T_PLUS: return (int64_t)(x + y);
    case T_MINUS: return (int64_t)(x - y);
    case T_STAR: return (int64_t)(x * y);
    case T_SLASH: return b > 0 ? a / b : a;
    case T_PERCENT: return b > 0 ? a % b : 0;
    case T_AND: return a & b;
    case T_OR: return a | b;
    case T_XOR: return a ^ b;
    case T_LESS: return a < b;
    case T_LESS_EQUAL: return a <= b;
    case T_EQUAL: return a == b;
    case T_NOT_EQUAL: return a != b;
    case T_SHIFT_LEFT: return (int64_t)(x << (y & 63));
    case T_SHIFT_RIGHT: return a >> (y & 63);
    default: return 0;
    }
}

static int64_t apply_unary(enum token op, int64_t a)
{
    return op == T_MINUS ? (int64_t)-(uint64_t)a : op == T_TILDE ? ~a : !a;
}

static int64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return (int64_t)a;
}

static int64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;

    for (exponent &= 31; exponent; exponent >>= 1, base *= base) {
        if (exponent & 1)
            result *= base;
    }
    return (int64_t)result;
}

static int64_t call(int64_t function, int64_t a, int64_t b)
{
    switch (function) {
    case 'i': return a < b ? a : b;
    case 'a': return a > b ? a : b;
    case 'c': return gcd((uint64_t)a & 0xffffff, (uint64_t)b & 0xffffff);
    default: return power((uint64_t)a, (uint64_t)b);
    }
}

static int64_t evaluate(const struct node *node)
{
    switch (node->kind) {
    case CONSTANT:
        return node->value;
    case VARIABLE:
        return variables[node->value];
    case UNARY:
        return apply_unary(node->op, evaluate(node->a));
    case BINARY: {
        int64_t a = evaluate(node->a);

        return apply(node->op, a, evaluate(node->b));
    }
    case CONDITION:
        return evaluate(evaluate(node->a) ? node->b : node->c);
    case CALL: {
        int64_t a = evaluate(node->a);

        return call(node->value, a, evaluate(node->b));
    }
    case ASSIGNMENT:
        return variables[node->value] = evaluate(node->a);
    }
    return 0;
}

/* Replaces operations on constants by their results; returns the new tree. */
static struct node *fold(struct node *node, uint64_t *folded)
{
    if (node->a)
        node->a = fold(node->a, folded);
    if (node->b)
        node->b = fold(node->b, folded);
    if (node->c)
        node->c = fold(node->c, folded);
    if (node->kind == ASSIGNMENT || node->kind == CONSTANT || node->kind == VARIABLE)
        return node;
    if (node->a->kind != CONSTANT || (node->b && node->b->kind != CONSTANT) ||
        (node->c && node->c->kind != CONSTANT))
        return node;
    (*folded)++;
    return constant(evaluate(node));
}

static uint64_t one_round(uint64_t *random, uint64_t hash)
{
    uint64_t folded = 0;
    int count = 0;

    write_program(random);
    at = text;
    node_count = 0;
    advance();
    while (token != T_END && count < STATEMENTS)
        statements[count++] = parse_statement();
    for (int i = 0; i < count; i++)
        statements[i] = fold(statements[i], &folded);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < count; i++)
            hash = mix(hash, (uint64_t)evaluate(statements[i]));
    }
    return mix(mix(hash, folded), (uint64_t)node_count);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    errors = 0;
    for (int i = 0; i < VARIABLES; i++)
        variables[i] = i;
    for (uint64_t n = 0; n < iterations; n++)
        hash = one_round(&random, hash);
    return mix(hash, (uint64_t)errors);
}
