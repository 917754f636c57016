/*
 * An interpreter of a register machine with threaded code: each instruction
 * ends with a jump through a table of labels (computed goto).
 *
 * Its programs multiply matrices, draw a Mandelbrot set in fixed point, count
 * Collatz steps, and shuffle and sort an array by heaps.  A round runs all.
 */
#include "guest.h"

enum op {
    SET, MOVE, ADD, SUB, MUL, ADD_NUMBER, MUL_SHIFT, AND_NUMBER, XOR, SHIFT_LEFT,
    SHIFT_RIGHT, LOAD, STORE, GO, GO_LESS, GO_LESS_EQUAL, GO_EQUAL, GO_NOT_EQUAL,
    GO_ODD, CALL, RETURN, HALT,
};

#define REGISTERS 32
#define MEMORY 1024
#define CODE 512

/* a, b and c are registers, except where `number` stands for c. */
struct instruction {
    uint8_t op, a, b, c;
    int32_t number;
};

static struct instruction code[CODE];
static int here;
static int64_t memory[MEMORY];
static uint64_t executed;

/* --- the interpreter --- */

#define NEXT                                                                 \
    do {                                                                     \
        i = pc++;                                                            \
        count++;                                                             \
        goto *labels[i->op];                                                 \
    } while (0)

#define BRANCH(condition)                                                    \
    do {                                                                     \
        if (condition)                                                       \
            pc = code + i->number;                                           \
        NEXT;                                                                \
    } while (0)

static int64_t interpret(int start, int64_t x, int64_t y)
{
    static const void *const labels[] = {
        &&set, &&move, &&add, &&sub, &&mul, &&add_number, &&mul_shift,
        &&and_number, &&xor, &&shift_left, &&shift_right, &&load, &&store, &&go,
        &&go_less, &&go_less_equal, &&go_equal, &&go_not_equal, &&go_odd, &&call,
        &&return_, &&halt,
    };
    const struct instruction *pc = code + start, *i;
    const struct instruction *returns[16];
    int depth = 0;
    int64_t r[REGISTERS] = { 0, x, y };
    uint64_t count = 0;

    NEXT;
set:
    r[i->a] = i->number;
    NEXT;
move:
    r[i->a] = r[i->b];
    NEXT;
add:
    r[i->a] = r[i->b] + r[i->c];
    NEXT;
sub:
    r[i->a] = r[i->b] - r[i->c];
    NEXT;
mul:
    r[i->a] = (int64_t)((uint64_t)r[i->b] * (uint64_t)r[i->c]);
    NEXT;
add_number:
    r[i->a] = r[i->b] + i->number;
    NEXT;
mul_shift:
    r[i->a] = r[i->b] * r[i->c] >> i->number;
    NEXT;
and_number:
    r[i->a] = r[i->b] & i->number;
    NEXT;
xor:
    r[i->a] = r[i->b] ^ r[i->c];
    NEXT;
shift_left:
    r[i->a] = (int64_t)((uint64_t)r[i->b] << i->number);
    NEXT;
shift_right:
    r[i->a] = r[i->b] >> i->number;
    NEXT;
load:
    r[i->a] = memory[(uint64_t)(r[i->b] + i->number) % MEMORY];
    NEXT;
store:
    memory[(uint64_t)(r[i->b] + i->number) % MEMORY] = r[i->a];
    NEXT;
go:
    BRANCH(1);
go_less:
    BRANCH(r[i->a] < r[i->b]);
go_less_equal:
    BRANCH(r[i->a] <= r[i->b]);
go_equal:
    BRANCH(r[i->a] == r[i->b]);
go_not_equal:
    BRANCH(r[i->a] != r[i->b]);
go_odd:
    BRANCH(r[i->a] & 1);
call:
    returns[depth++ & 15] = pc;
    pc = code + i->number;
    NEXT;
return_:
    pc = returns[--depth & 15];
    NEXT;
halt:
    executed += count;
    return r[i->a];
}

/* --- the programs --- */

static int emit(enum op op, int a, int b, int c, int number)
{
    code[here] = (struct instruction){ (uint8_t)op, (uint8_t)a, (uint8_t)b,
                                       (uint8_t)c, number };
    return here++;
}

/* Lets an earlier jump lead here. */
static void land(int at)
{
    code[at].number = here;
}

/* Products of matrices with 8 rows at 0, 64 and 128; returns a sum. */
static int emit_matrices(void)
{
    enum { ROW = 3, COLUMN, K, SUM, P, Q, A, B, EIGHT, TOTAL };
    int start = here, row, column, k;

    emit(SET, EIGHT, 0, 0, 8);
    emit(SET, ROW, 0, 0, 0);
    row = emit(SET, COLUMN, 0, 0, 0);
    column = emit(SET, K, 0, 0, 0);
    emit(SET, SUM, 0, 0, 0);
    emit(SHIFT_LEFT, P, ROW, 0, 3);
    emit(MOVE, Q, COLUMN, 0, 0);
    k = emit(LOAD, A, P, 0, 0);
    emit(LOAD, B, Q, 0, 64);
    emit(MUL, A, A, B, 0);
    emit(ADD, SUM, SUM, A, 0);
    emit(ADD_NUMBER, P, P, 0, 1);
    emit(ADD_NUMBER, Q, Q, 0, 8);
    emit(ADD_NUMBER, K, K, 0, 1);
    emit(GO_LESS, K, EIGHT, 0, k);
    emit(SHIFT_LEFT, P, ROW, 0, 3);
    emit(ADD, P, P, COLUMN, 0);
    emit(STORE, SUM, P, 0, 128);
    emit(XOR, TOTAL, TOTAL, SUM, 0);
    emit(ADD_NUMBER, COLUMN, COLUMN, 0, 1);
    emit(GO_LESS, COLUMN, EIGHT, 0, column);
    emit(ADD_NUMBER, ROW, ROW, 0, 1);
    emit(GO_LESS, ROW, EIGHT, 0, row);
    emit(HALT, TOTAL, 0, 0, 0);
    return start;
}

/* One row of 16 points; 1 = the row's imaginary part, in units of 2^-24. */
static int emit_mandelbrot(void)
{
    enum { IM = 1, RE = 3, X, Y, XX, YY, N, LIMIT, FOUR, TOTAL, COLUMN, SIXTEEN,
           SIZE };
    int start = here, point, loop, out, out2;

    emit(SET, LIMIT, 0, 0, 40);
    emit(SET, FOUR, 0, 0, 4 << 24);
    emit(SET, SIXTEEN, 0, 0, 16);
    emit(SET, RE, 0, 0, -(2 << 24));
    point = emit(SET, X, 0, 0, 0);
    emit(SET, Y, 0, 0, 0);
    emit(SET, N, 0, 0, 0);
    loop = emit(MUL_SHIFT, XX, X, X, 24);
    emit(MUL_SHIFT, YY, Y, Y, 24);
    emit(ADD, SIZE, XX, YY, 0);
    out = emit(GO_LESS, FOUR, SIZE, 0, 0);
    emit(MUL_SHIFT, Y, X, Y, 23);
    emit(ADD, Y, Y, IM, 0);
    emit(SUB, X, XX, YY, 0);
    emit(ADD, X, X, RE, 0);
    emit(ADD_NUMBER, N, N, 0, 1);
    out2 = emit(GO_EQUAL, N, LIMIT, 0, 0);
    emit(GO, 0, 0, 0, loop);
    land(out);
    land(out2);
    emit(ADD, TOTAL, TOTAL, N, 0);
    emit(ADD_NUMBER, RE, RE, 0, 3 << 20);
    emit(ADD_NUMBER, COLUMN, COLUMN, 0, 1);
    emit(GO_LESS, COLUMN, SIXTEEN, 0, point);
    emit(HALT, TOTAL, 0, 0, 0);
    return start;
}

/* Steps from register 1 to 1. */
static int emit_collatz(void)
{
    enum { X = 1, STEPS = 3, ONE, TWICE };
    int start = here, loop, odd;

    emit(SET, ONE, 0, 0, 1);
    loop = emit(GO_EQUAL, X, ONE, 0, 0);
    emit(ADD_NUMBER, STEPS, STEPS, 0, 1);
    odd = emit(GO_ODD, X, 0, 0, 0);
    emit(SHIFT_RIGHT, X, X, 0, 1);
    emit(GO, 0, 0, 0, loop);
    land(odd);
    emit(SHIFT_LEFT, TWICE, X, 0, 1);
    emit(ADD, X, X, TWICE, 0);
    emit(ADD_NUMBER, X, X, 0, 1);
    emit(GO, 0, 0, 0, loop);
    land(loop);
    emit(HALT, STEPS, 0, 0, 0);
    return start;
}

/* The function that lets register 3 sink in a heap of register 4 numbers. */
static int emit_sink(void)
{
    enum { ROOT = 3, COUNT, CHILD, OTHER, A, B };
    int start = here, none, single, first, done;

    emit(SHIFT_LEFT, CHILD, ROOT, 0, 1);
    emit(ADD_NUMBER, CHILD, CHILD, 0, 1);
    none = emit(GO_LESS_EQUAL, COUNT, CHILD, 0, 0);
    emit(LOAD, A, CHILD, 0, 0);
    emit(ADD_NUMBER, OTHER, CHILD, 0, 1);
    single = emit(GO_LESS_EQUAL, COUNT, OTHER, 0, 0);
    emit(LOAD, B, OTHER, 0, 0);
    first = emit(GO_LESS_EQUAL, B, A, 0, 0);
    emit(MOVE, CHILD, OTHER, 0, 0);
    emit(MOVE, A, B, 0, 0);
    land(single);
    land(first);
    emit(LOAD, B, ROOT, 0, 0);
    done = emit(GO_LESS_EQUAL, A, B, 0, 0);
    emit(STORE, A, ROOT, 0, 0);
    emit(STORE, B, CHILD, 0, 0);
    emit(MOVE, ROOT, CHILD, 0, 0);
    emit(GO, 0, 0, 0, start);
    land(none);
    land(done);
    emit(RETURN, 0, 0, 0, 0);
    return start;
}

/* Sorts as many numbers as register 1 says. */
static int emit_heap_sort(int sink)
{
    enum { ZERO, N, ROOT = 3, COUNT, I = 10, A, B };
    int start = here, build, take;

    emit(MOVE, COUNT, N, 0, 0);
    emit(SHIFT_RIGHT, I, N, 0, 1);
    build = emit(MOVE, ROOT, I, 0, 0);
    emit(CALL, 0, 0, 0, sink);
    emit(ADD_NUMBER, I, I, 0, -1);
    emit(GO_LESS_EQUAL, ZERO, I, 0, build);
    take = emit(ADD_NUMBER, COUNT, COUNT, 0, -1);
    emit(LOAD, A, ZERO, 0, 0);
    emit(LOAD, B, COUNT, 0, 0);
    emit(STORE, B, ZERO, 0, 0);
    emit(STORE, A, COUNT, 0, 0);
    emit(MOVE, ROOT, ZERO, 0, 0);
    emit(CALL, 0, 0, 0, sink);
    emit(GO_LESS, ZERO, COUNT, 0, take);
    emit(LOAD, A, ZERO, 0, 17);
    emit(AND_NUMBER, A, A, 0, 0xffff);
    emit(HALT, A, 0, 0, 0);
    return start;
}

static void fill(uint64_t *random, int count)
{
    for (int i = 0; i < count; i++)
        memory[i] = (int64_t)(next_random(random) & 0xfffff);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;
    int matrices, mandelbrot, collatz, sort;

    here = 0;
    executed = 0;
    matrices = emit_matrices();
    mandelbrot = emit_mandelbrot();
    collatz = emit_collatz();
    sort = emit_heap_sort(emit_sink());
    for (uint64_t n = 0; n < iterations; n++) {
        uint64_t r = next_random(&random);

        fill(&random, 256);
        hash = mix(hash, (uint64_t)interpret(matrices, 0, 0));
        hash = mix(hash, (uint64_t)interpret(mandelbrot, (int64_t)(r & 0xffffff), 0));
        hash = mix(hash, (uint64_t)interpret(collatz, (int64_t)(r >> 40) + 1, 0));
        hash = mix(hash, (uint64_t)interpret(sort, 256, 0));
        for (int i = 0; i < 256; i += 5)
            hash = mix(hash, (uint64_t)memory[i]);
    }
    return mix(hash, executed);
}
