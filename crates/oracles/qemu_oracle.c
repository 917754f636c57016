/*
 * Runs AArch64 test cases on QEMU's user mode emulator.
 *
 * Requests arrive on stdin and results leave on stdout; the record layouts are
 * described in the Rust client that starts this program.
 *
 * Every case ends in a signal: its code is followed by a BRK, and whatever
 * stops it earlier is a signal too. One handler does all the work: it records
 * the state of the case that stopped, puts the next case into the signal
 * frame, and returns into it. There is no C library, because the guest's
 * TPIDR_EL0 replaces the pointer to the library's thread-local data.
 *
 * Limits that follow from the method:
 * - SVC would be a system call of this process, and HLT #0xF000 would be a
 *   semihosting call, so a case that contains either is answered OTHER without
 *   running it.
 * - Instructions cannot be counted. A case that runs too long is stopped by a
 *   timer. A single instruction that branches to itself is stopped in the same
 *   way and answered DONE; it has then run many times, which shows only in
 *   BLR X30 with X30 pointing to itself.
 * - Any other HLT is reported as undefined.
 */

#include <stddef.h>
#include <stdint.h>

#define MEMORY_START 0x10000ul
#define MEMORY_END 0x40000ul
#define CODE_START 0x10000ul
#define CODE_END 0x20000ul
#define CODE_LEN (CODE_END - CODE_START)
#define WINDOW_LEN 512ul
#define WINDOW_START (MEMORY_END - WINDOW_LEN)

#define NZCV_MASK 0xF0000000ul
#define BRK_WORD 0xD4200000u

enum outcome { DONE, UNDEFINED, MEMORY_FAULT, ALIGNMENT_FAULT, SVC, BRK, LIMIT, OTHER };

/* Set in the flags of a request and of its result if vectors follow the registers. */
#define VECTORS 1u

/* Requests are read where they arrive, after any number of words. */
#define RECORD __attribute__((packed, aligned(4)))

struct registers {
    uint64_t x[31];
    uint64_t sp;
    uint64_t nzcv;
    uint64_t tpidr_el0;
} RECORD;

struct vectors {
    uint64_t v[64];
    uint64_t fpcr;
    uint64_t fpsr;
} RECORD;

/* Vectors, if the flags say so, the window and the code follow. */
struct request {
    uint32_t code_words;
    uint32_t max_instructions;
    uint32_t code_address;
    uint32_t flags;
    struct registers registers;
} RECORD;

/* Vectors, if the flags say so, and the window follow. */
struct result {
    uint32_t outcome;
    uint32_t flags;
    uint64_t detail;
    uint64_t pc;
    struct registers registers;
} RECORD;

/* The kernel's interface: system call numbers, constants and structures. */

enum {
    SYS_FTRUNCATE = 46,
    SYS_READ = 63,
    SYS_WRITE = 64,
    SYS_EXIT_GROUP = 94,
    SYS_SETITIMER = 103,
    SYS_SIGALTSTACK = 132,
    SYS_RT_SIGACTION = 134,
    SYS_MMAP = 222,
    SYS_MEMFD_CREATE = 279,
};

enum { PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4 };
enum { MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20 };
enum { SIGILL = 4, SIGTRAP = 5, SIGBUS = 7, SIGSEGV = 11, SIGALRM = 14 };
enum { SA_SIGINFO = 4, SA_ONSTACK = 0x08000000 };
enum { BUS_ADRALN = 1, FPSIMD_MAGIC = 0x46508001 };

struct kernel_sigaction {
    void *handler;
    uint64_t flags;
    void *restorer;
    uint64_t mask;
};

struct stack {
    void *sp;
    int flags;
    uint64_t size;
};

struct signal_info {
    int signal;
    int error;
    int code;
    uint64_t address;
};

struct fpsimd_context {
    uint32_t magic;
    uint32_t size;
    uint32_t fpsr;
    uint32_t fpcr;
    uint64_t v[64];
};

struct user_context {
    uint64_t flags;
    void *link;
    struct stack stack;
    uint8_t signal_mask[128];
    uint64_t fault_address __attribute__((aligned(16)));
    uint64_t x[31];
    uint64_t sp;
    uint64_t pc;
    uint64_t pstate;
    struct fpsimd_context fpsimd __attribute__((aligned(16)));
};

struct interval {
    int64_t repeat_seconds, repeat_microseconds;
    int64_t seconds, microseconds;
};

static uint8_t signal_stack[1 << 16] __attribute__((aligned(16)));
static uint8_t input[1 << 18] __attribute__((aligned(16)));
static size_t input_start, input_end;
static uint8_t output[1 << 18] __attribute__((aligned(16)));
static size_t output_len;

static int code_file;
/* The code area seen through a second mapping. QEMU write-protects pages that
 * it has translated, but only at the address it translated them from, so
 * writing here costs no fault. Nor does it discard translations. */
static uint8_t *code_alias;
/* Nothing at or above this address has been translated. */
static uint64_t code_high_water;

/* The running case. Copied, because its request may be overwritten meanwhile. */
static uint64_t current_start, current_end;
static int current_single;
static uint32_t current_flags;
/* Its code, if it has few words: the next case may have the same. */
static uint32_t current_code[4];
/* The timer's period, 0 when the case needs none, and how often it has fired. */
static int64_t current_period;
static int current_alarms;

static long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

/* The compiler may call these by name. */
void *memcpy(void *to, const void *from, size_t len)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    for (; len >= 8; len -= 8, t += 8, f += 8)
        __builtin_memcpy(t, f, 8);
    while (len--)
        *t++ = *f++;
    return to;
}

void *memset(void *to, int value, size_t len)
{
    uint8_t *t = to;
    uint64_t pattern = (uint8_t)value * 0x0101010101010101ul;
    for (; len >= 8; len -= 8, t += 8)
        __builtin_memcpy(t, &pattern, 8);
    while (len--)
        *t++ = (uint8_t)value;
    return to;
}

void *memmove(void *to, const void *from, size_t len)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    if (t <= f)
        return memcpy(to, from, len);
    while (len--)
        t[len] = f[len];
    return to;
}

static _Noreturn void quit(int status)
{
    for (;;)
        system_call(SYS_EXIT_GROUP, status, 0, 0, 0, 0, 0);
}

static _Noreturn void fail(const char *message)
{
    size_t len = 0;
    while (message[len])
        len++;
    system_call(SYS_WRITE, 2, (long)message, len, 0, 0, 0);
    quit(1);
}

static void flush(void)
{
    size_t start = 0;
    while (start < output_len) {
        long n = system_call(SYS_WRITE, 1, (long)(output + start), output_len - start, 0, 0, 0);
        if (n <= 0)
            fail("cannot write to stdout\n");
        start += n;
    }
    output_len = 0;
}

/* Waits for input. All results are sent first: the client may want to see
 * them before it sends more. */
static void fill(void)
{
    flush();
    memmove(input, input + input_start, input_end - input_start);
    input_end -= input_start;
    input_start = 0;
    long n = system_call(SYS_READ, 0, (long)(input + input_end), sizeof input - input_end, 0, 0, 0);
    if (n < 0)
        fail("cannot read stdin\n");
    if (n == 0)
        quit(input_end != 0);
    input_end += n;
}

static size_t vectors_len(uint32_t flags)
{
    return flags & VECTORS ? sizeof(struct vectors) : 0;
}

static const uint8_t *window_of(const struct request *request)
{
    return (const uint8_t *)(request + 1) + vectors_len(request->flags);
}

static const uint32_t *code_of(const struct request *request)
{
    return (const uint32_t *)(window_of(request) + WINDOW_LEN);
}

static const struct request *next_request(void)
{
    for (;;) {
        const struct request *request = (const void *)(input + input_start);
        size_t available = input_end - input_start;
        if (available >= sizeof *request) {
            size_t len = sizeof *request + vectors_len(request->flags) + WINDOW_LEN
                + 4ul * request->code_words;
            if (len > sizeof input)
                fail("a request does not fit the buffer\n");
            if (len <= available) {
                input_start += len;
                return request;
            }
        }
        fill();
    }
}

static struct result *new_result(uint32_t flags)
{
    size_t len = sizeof(struct result) + vectors_len(flags) + WINDOW_LEN;
    if (output_len + len > sizeof output)
        flush();
    struct result *result = (void *)(output + output_len);
    output_len += len;
    result->flags = flags;
    result->detail = 0;
    return result;
}

static void map(uint64_t start, uint64_t end, int protection, int flags, int file)
{
    long at = system_call(SYS_MMAP, start, end - start, protection, flags | MAP_FIXED, file, 0);
    if (at != (long)start)
        fail("cannot map guest memory at 0x10000: "
             "lower the limit with sysctl vm.mmap_min_addr=4096\n");
}

/* Mapping the code area again makes QEMU discard its translations. */
static void map_code(void)
{
    memset(code_alias, 0, CODE_LEN);
    map(CODE_START, CODE_END, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, code_file);
    code_high_water = CODE_START;
}

/* Data is not executable, so that a branch into the window stops at its target. */
static void map_data(void)
{
    map(CODE_END, MEMORY_END, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void map_memory(void)
{
    code_file = (int)system_call(SYS_MEMFD_CREATE, (long)"code", 0, 0, 0, 0, 0);
    if (code_file < 0 || system_call(SYS_FTRUNCATE, code_file, CODE_LEN, 0, 0, 0, 0) < 0)
        fail("cannot create the code area\n");
    long alias = system_call(SYS_MMAP, 0, CODE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, code_file, 0);
    if (alias < 0 && alias > -4096)
        fail("cannot map the code area\n");
    code_alias = (uint8_t *)alias;
    map_code();
    map_data();
}

static int calls_outside(uint32_t word)
{
    int is_svc = (word & 0xFFE0001F) == 0xD4000001;
    int is_semihosting = word == 0xD45E0000;
    return is_svc || is_semihosting;
}

/* Branches, exception generation and system instructions. */
static int is_branch_class(uint32_t word)
{
    return (word & 0x1C000000) == 0x14000000;
}

static int contains(const struct request *request, int (*test)(uint32_t))
{
    const uint32_t *code = code_of(request);
    for (uint32_t i = 0; i < request->code_words; i++)
        if (test(code[i]))
            return 1;
    return 0;
}

static uint64_t displacement(uint32_t word, int lowest, int bits)
{
    return (uint64_t)((int64_t)((uint64_t)word << (64 - lowest - bits)) >> (64 - bits)) * 4;
}

/* Where a branch goes if it is taken; 0, which is never mapped, for the rest. */
static uint64_t branch_target(const struct request *request)
{
    uint32_t word = code_of(request)[0];
    uint64_t pc = request->code_address;
    if ((word & 0x7C000000) == 0x14000000)
        return pc + displacement(word, 0, 26);
    if ((word & 0xFE000000) == 0x54000000 || (word & 0x7E000000) == 0x34000000)
        return pc + displacement(word, 5, 19);
    if ((word & 0x7E000000) == 0x36000000)
        return pc + displacement(word, 5, 14);
    if ((word & 0xFE000000) == 0xD6000000) {
        uint32_t n = word >> 5 & 31;
        /* The top byte of an address is ignored. */
        return n == 31 ? 0 : request->registers.x[n] & 0x00FFFFFFFFFFFFFF;
    }
    return 0;
}

static int is_code(uint64_t address)
{
    return address >= CODE_START && address < CODE_END;
}

/* True if a case has the code of the case before it, in the same place. */
static int is_same_code(const struct request *request)
{
    const uint32_t *code = code_of(request);
    uint32_t words = request->code_words;
    if (request->code_address != current_start || current_start + 4ul * words != current_end
        || words > sizeof current_code / sizeof *current_code)
        return 0;
    for (uint32_t i = 0; i < words; i++)
        if (code[i] != current_code[i])
            return 0;
    return 1;
}

/* Code addresses are translated once; those used before need a new mapping,
 * unless what was translated is there again. So does a branch to code that an
 * earlier case left translated. */
static void prepare_code_area(const struct request *request)
{
    uint64_t start = request->code_address, end = start + 4ul * request->code_words;
    uint64_t target = request->max_instructions == 1 ? branch_target(request) : 0;
    int is_translated = is_same_code(request) && code_high_water == end + 4;
    if (start < code_high_water && !is_translated) {
        map_code();
        map_data();
    } else if (is_code(target) && target != end && target != start) {
        map_code();
    }
    code_high_water = end + 4;
}

static void write_code(const struct request *request)
{
    const uint32_t *from = code_of(request);
    uint32_t *code = (uint32_t *)(code_alias + (current_start - CODE_START));
    for (uint32_t i = 0; i < request->code_words; i++) {
        code[i] = from[i];
        if (i < sizeof current_code / sizeof *current_code)
            current_code[i] = from[i];
    }
    code[request->code_words] = BRK_WORD;
}

static void set_timer(int64_t microseconds)
{
    struct interval interval = {0, 0, 0, microseconds};
    system_call(SYS_SETITIMER, 0, (long)&interval, 0, 0, 0, 0);
}

/* Only a branch can make a case run for long. */
static int64_t timer_period(const struct request *request)
{
    if (current_single)
        return branch_target(request) == current_start ? 2000 : 0;
    return contains(request, is_branch_class) ? 300000 : 0;
}

static void start_timer(const struct request *request)
{
    current_alarms = 0;
    current_period = timer_period(request);
    if (current_period)
        set_timer(current_period);
}

/* True if an alarm must be ignored. The first may be left over from the case
 * before, or come before the first instruction on a busy machine. */
static int is_early_alarm(void)
{
    if (!current_period)
        return 1;
    if (++current_alarms >= 3)
        return 0;
    set_timer(current_period);
    return 1;
}

static int is_runnable(const struct request *request)
{
    uint64_t start = request->code_address, end = start + 4ul * request->code_words;
    return is_code(start) && start % 4 == 0 && request->code_words != 0 && end + 4 <= CODE_END
        && (request->max_instructions != 1 || request->code_words == 1)
        && !contains(request, calls_outside);
}

static void refuse(const struct request *request)
{
    struct result *result = new_result(request->flags);
    result->outcome = OTHER;
    result->pc = request->code_address;
    result->registers = request->registers;
    memcpy(result + 1, request + 1, vectors_len(request->flags) + WINDOW_LEN);
}

static void load_vectors(const struct request *request, struct fpsimd_context *context)
{
    const struct vectors *vectors = (const void *)(request + 1);
    if (context->magic != FPSIMD_MAGIC)
        fail("a signal does not come with the vector registers\n");
    if (!(request->flags & VECTORS)) {
        memset(&context->fpsr, 0, sizeof *context - offsetof(struct fpsimd_context, fpsr));
        return;
    }
    memcpy(context->v, vectors->v, sizeof context->v);
    context->fpcr = (uint32_t)vectors->fpcr;
    context->fpsr = (uint32_t)vectors->fpsr;
}

static void store_vectors(struct vectors *vectors, const struct fpsimd_context *context)
{
    memcpy(vectors->v, context->v, sizeof vectors->v);
    vectors->fpcr = context->fpcr;
    vectors->fpsr = context->fpsr;
}

static void load(const struct request *request, struct user_context *context)
{
    prepare_code_area(request);
    current_start = request->code_address;
    current_end = current_start + 4ul * request->code_words;
    current_single = request->max_instructions == 1;
    current_flags = request->flags;
    write_code(request);
    memcpy((void *)WINDOW_START, window_of(request), WINDOW_LEN);
    memcpy(context->x, request->registers.x, sizeof context->x);
    context->sp = request->registers.sp;
    context->pc = current_start;
    /* The other bits must be clear: BTYPE, for one, stays set after a branch. */
    context->pstate = request->registers.nzcv & NZCV_MASK;
    load_vectors(request, &context->fpsimd);
    start_timer(request);
    __asm__ volatile("msr tpidr_el0, %0" ::"r"(request->registers.tpidr_el0));
}

static int in_case(uint64_t pc)
{
    return pc >= current_start && pc < current_end;
}

static enum outcome classify(int signal, const struct signal_info *info, uint64_t pc)
{
    if (pc == current_end && signal == SIGTRAP)
        return DONE;
    /* A single instruction that branched has completed, whatever its target does. */
    if (current_single && (signal == SIGALRM || !in_case(pc)))
        return DONE;
    switch (signal) {
    case SIGTRAP:
        return BRK;
    case SIGILL:
        return UNDEFINED;
    case SIGSEGV:
        return MEMORY_FAULT;
    case SIGBUS:
        return info->code == BUS_ADRALN ? ALIGNMENT_FAULT : MEMORY_FAULT;
    case SIGALRM:
        return LIMIT;
    default:
        return OTHER;
    }
}

static void store(int signal, const struct signal_info *info, const struct user_context *context)
{
    struct result *result = new_result(current_flags);
    uint64_t pc = context->pc;
    result->outcome = classify(signal, info, pc);
    if (result->outcome == MEMORY_FAULT || result->outcome == ALIGNMENT_FAULT)
        result->detail = info->address;
    result->pc = pc;
    memcpy(result->registers.x, context->x, sizeof result->registers.x);
    result->registers.sp = context->sp;
    result->registers.nzcv = context->pstate & NZCV_MASK;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(result->registers.tpidr_el0));
    if (current_flags & VECTORS)
        store_vectors((struct vectors *)(result + 1), &context->fpsimd);
    memcpy((uint8_t *)(result + 1) + vectors_len(current_flags), (const void *)WINDOW_START,
           WINDOW_LEN);
}

static void clean_up(uint64_t pc)
{
    if (current_period)
        set_timer(0);
    /* The branch target was translated; code may come there later. */
    if (is_code(pc) && pc != current_end && !in_case(pc))
        code_high_water = CODE_END;
    memset(code_alias + (current_start - CODE_START), 0, current_end + 4 - current_start);
}

static void on_signal(int signal, struct signal_info *info, struct user_context *context)
{
    if (signal == SIGALRM && is_early_alarm())
        return;
    /* The first signal comes from the entry point, before any case. */
    if (current_end != 0) {
        store(signal, info, context);
        clean_up(context->pc);
    }
    const struct request *request = next_request();
    while (!is_runnable(request)) {
        refuse(request);
        request = next_request();
    }
    load(request, context);
}

static void handle_signals(void)
{
    static const int signals[] = {SIGILL, SIGTRAP, SIGBUS, SIGSEGV, SIGALRM};
    struct stack stack = {signal_stack, 0, sizeof signal_stack};
    struct kernel_sigaction action = {on_signal, SA_SIGINFO | SA_ONSTACK, NULL, ~0ul};
    system_call(SYS_SIGALTSTACK, (long)&stack, 0, 0, 0, 0, 0);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        system_call(SYS_RT_SIGACTION, signals[i], (long)&action, 0, sizeof action.mask, 0, 0);
}

void _start(void)
{
    map_memory();
    handle_signals();
    __asm__ volatile("brk #0");
    __builtin_unreachable();
}
