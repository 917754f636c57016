/*
 * An interpreter of a stack machine's bytecode: a loop around a switch.
 *
 * The code of four functions is assembled at the start: counting primes with
 * a sieve, Fibonacci numbers by recursion, a bubble sort, and a string hash.
 * A round runs all four.
 */
#include "guest.h"

enum op {
    PUSH, PUSH16, DROP, DUP, SWAP, OVER, LOCAL, SET_LOCAL, ADD_LOCAL, LOAD, STORE,
    ADD, SUB, MUL, DIV, MOD, AND, OR, XOR, SHL, SHR, NEG, NOT,
    EQ, NE, LT, LE, GT, GE, JUMP, JUMP_IF, JUMP_UNLESS, CALL, RETURN, STOP,
};

#define CODE_SIZE 1024
#define STACK_SIZE 512
#define MEMORY_SIZE 1024
#define FRAMES 64

static uint8_t code[CODE_SIZE];
static int here;
static int32_t memory[MEMORY_SIZE];
static int32_t stack[STACK_SIZE];

struct frame {
    uint32_t return_to;
    uint32_t locals; /* where they begin on the stack */
};

static struct frame frames[FRAMES];
static uint64_t executed;

/* --- the interpreter --- */

static int32_t read16(const uint8_t *at)
{
    return (int16_t)(at[0] | at[1] << 8);
}

#define BINARY(expression)                                                   \
    {                                                                        \
        int32_t b = stack[--top], a = stack[top - 1];                        \
        uint32_t x = (uint32_t)a, y = (uint32_t)b;                           \
                                                                             \
        (void)x, (void)y;                                                    \
        stack[top - 1] = (int32_t)(expression);                              \
        break;                                                               \
    }

/* Calls the function at `pc`; its arguments are on the stack already. */
static int32_t interpret(uint32_t pc, uint32_t top)
{
    struct frame *frame = frames;

    frame->locals = 0;
    for (;;) {
        const uint8_t *at = &code[pc];

        executed++;
        pc++;
        switch ((enum op)*at) {
        case PUSH:
            stack[top++] = (int8_t)at[1];
            pc++;
            break;
        case PUSH16:
            stack[top++] = read16(at + 1);
            pc += 2;
            break;
        case DROP:
            top--;
            break;
        case DUP:
            stack[top] = stack[top - 1];
            top++;
            break;
        case SWAP: {
            int32_t old = stack[top - 1];

            stack[top - 1] = stack[top - 2];
            stack[top - 2] = old;
            break;
        }
        case OVER:
            stack[top] = stack[top - 2];
            top++;
            break;
        case LOCAL:
            stack[top++] = stack[frame->locals + at[1]];
            pc++;
            break;
        case SET_LOCAL:
            stack[frame->locals + at[1]] = stack[--top];
            pc++;
            break;
        case ADD_LOCAL:
            stack[frame->locals + at[1]] += (int8_t)at[2];
            pc += 2;
            break;
        case LOAD:
            stack[top - 1] = memory[(uint32_t)stack[top - 1] % MEMORY_SIZE];
            break;
        case STORE:
            memory[(uint32_t)stack[top - 1] % MEMORY_SIZE] = stack[top - 2];
            top -= 2;
            break;
        case ADD: BINARY(x + y)
        case SUB: BINARY(x - y)
        case MUL: BINARY(x * y)
        case DIV: BINARY(b ? a / b : 0)
        case MOD: BINARY(b ? a % b : 0)
        case AND: BINARY(x & y)
        case OR: BINARY(x | y)
        case XOR: BINARY(x ^ y)
        case SHL: BINARY(x << (y & 31))
        case SHR: BINARY(x >> (y & 31))
        case NEG:
            stack[top - 1] = -stack[top - 1];
            break;
        case NOT:
            stack[top - 1] = !stack[top - 1];
            break;
        case EQ: BINARY(a == b)
        case NE: BINARY(a != b)
        case LT: BINARY(a < b)
        case LE: BINARY(a <= b)
        case GT: BINARY(a > b)
        case GE: BINARY(a >= b)
        case JUMP:
            pc = (uint32_t)read16(at + 1);
            break;
        case JUMP_IF:
            pc = stack[--top] ? (uint32_t)read16(at + 1) : pc + 2;
            break;
        case JUMP_UNLESS:
            pc = stack[--top] ? pc + 2 : (uint32_t)read16(at + 1);
            break;
        case CALL:
            frame++;
            frame->return_to = pc + 3;
            frame->locals = top - at[3];
            pc = (uint32_t)read16(at + 1);
            break;
        case RETURN: {
            int32_t result = stack[top - 1];

            top = frame->locals;
            stack[top++] = result;
            pc = frame->return_to;
            frame--;
            break;
        }
        case STOP:
            return stack[top - 1];
        }
    }
}

/* --- the code --- */

static void op(enum op o)
{
    code[here++] = (uint8_t)o;
}

static void op8(enum op o, int value)
{
    op(o);
    code[here++] = (uint8_t)value;
}

static void op16(enum op o, int value)
{
    op(o);
    code[here++] = (uint8_t)value;
    code[here++] = (uint8_t)(value >> 8);
}

/* Emits a jump to a place that is not known yet. */
static int forward(enum op o)
{
    op16(o, 0);
    return here - 2;
}

static void land(int hole)
{
    code[hole] = (uint8_t)here;
    code[hole + 1] = (uint8_t)(here >> 8);
}

static void add_local(int local, int value)
{
    op8(ADD_LOCAL, local);
    code[here++] = (uint8_t)value;
}

static void call(int function, int arguments)
{
    op16(CALL, function);
    code[here++] = (uint8_t)arguments;
}

/* primes(limit): locals 1 = candidate, 2 = multiple, 3 = count */
static int emit_primes(void)
{
    int start = here, outer, done, composite, inner, end_inner;

    op8(PUSH, 2), op8(PUSH, 0), op8(PUSH, 0);
    outer = here;
    op8(LOCAL, 1), op8(LOCAL, 0), op(LT);
    done = forward(JUMP_UNLESS);
    op8(LOCAL, 1), op(LOAD);
    composite = forward(JUMP_IF);
    add_local(3, 1);
    op8(LOCAL, 1), op(DUP), op(ADD), op8(SET_LOCAL, 2);
    inner = here;
    op8(LOCAL, 2), op8(LOCAL, 0), op(LT);
    end_inner = forward(JUMP_UNLESS);
    op8(PUSH, 1), op8(LOCAL, 2), op(STORE);
    op8(LOCAL, 2), op8(LOCAL, 1), op(ADD), op8(SET_LOCAL, 2);
    op16(JUMP, inner);
    land(end_inner);
    land(composite);
    add_local(1, 1);
    op16(JUMP, outer);
    land(done);
    op8(LOCAL, 3), op(STOP);
    return start;
}

/* fibonacci(n), by itself */
static int emit_fibonacci(void)
{
    int start = here, body, small;

    call(here + 5, 1);
    op(STOP);
    body = here;
    op8(LOCAL, 0), op8(PUSH, 2), op(LT);
    small = forward(JUMP_IF);
    op8(LOCAL, 0), op8(PUSH, 1), op(SUB), call(body, 1);
    op8(LOCAL, 0), op8(PUSH, 2), op(SUB), call(body, 1);
    op(ADD), op(RETURN);
    land(small);
    op8(LOCAL, 0), op(RETURN);
    return start;
}

/* sort(count): locals 1 = end, 2 = index, 3 = exchanges */
static int emit_sort(void)
{
    int start = here, outer, done, inner, end_inner, in_order;

    op8(LOCAL, 0), op8(PUSH, 0), op8(PUSH, 0);
    outer = here;
    op8(LOCAL, 1), op8(PUSH, 1), op(GT);
    done = forward(JUMP_UNLESS);
    op8(PUSH, 1), op8(SET_LOCAL, 2);
    inner = here;
    op8(LOCAL, 2), op8(LOCAL, 1), op(LT);
    end_inner = forward(JUMP_UNLESS);
    op8(LOCAL, 2), op8(PUSH, 1), op(SUB), op(LOAD);
    op8(LOCAL, 2), op(LOAD);
    op(OVER), op(OVER), op(LE);
    in_order = forward(JUMP_IF);
    op(OVER), op8(LOCAL, 2), op(STORE);
    op(DUP), op8(LOCAL, 2), op8(PUSH, 1), op(SUB), op(STORE);
    add_local(3, 1);
    land(in_order);
    op(DROP), op(DROP);
    add_local(2, 1);
    op16(JUMP, inner);
    land(end_inner);
    add_local(1, -1);
    op16(JUMP, outer);
    land(done);
    op8(LOCAL, 3), op(STOP);
    return start;
}

/* hash(count): locals 1 = index, 2 = hash */
static int emit_hash(void)
{
    int start = here, loop, done;

    op8(PUSH, 0), op16(PUSH16, 5381);
    loop = here;
    op8(LOCAL, 1), op8(LOCAL, 0), op(GE);
    done = forward(JUMP_IF);
    op8(LOCAL, 2), op(DUP), op8(PUSH, 5), op(SHL), op(ADD);
    op8(LOCAL, 1), op(LOAD), op(XOR);
    op(DUP), op8(PUSH, 17), op(SHR), op(XOR), op(NEG);
    op16(PUSH16, 257), op(MUL), op8(SET_LOCAL, 2);
    add_local(1, 1);
    op16(JUMP, loop);
    land(done);
    op8(LOCAL, 2), op16(PUSH16, 9973), op(MOD), op8(LOCAL, 2);
    op8(PUSH, 7), op(DIV), op(SWAP), op(SUB), op(STOP);
    return start;
}

static int32_t call_with(int function, int32_t argument)
{
    stack[0] = argument;
    return interpret((uint32_t)function, 1);
}

static void fill_memory(uint64_t *random, int count, int32_t mask)
{
    for (int i = 0; i < count; i++)
        memory[i] = (int32_t)next_random(random) & mask;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;
    int primes, fibonacci, sort, hash_code;

    here = 0;
    executed = 0;
    primes = emit_primes();
    fibonacci = emit_fibonacci();
    sort = emit_sort();
    hash_code = emit_hash();
    for (uint64_t n = 0; n < iterations; n++) {
        fill_memory(&random, MEMORY_SIZE, 0);
        hash = mix(hash, (uint64_t)call_with(primes, MEMORY_SIZE));
        hash = mix(hash, (uint64_t)call_with(fibonacci, 11 + (int32_t)(random & 3)));
        fill_memory(&random, 64, 0xffff);
        hash = mix(hash, (uint64_t)call_with(sort, 64));
        hash = mix(hash, (uint64_t)call_with(hash_code, 200));
    }
    return mix(hash, executed);
}
