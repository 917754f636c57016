// Without a C library: the stack at the start, and a few calls. Built with -nostdlib.
#define SYS_WRITE 64
#define SYS_EXIT_GROUP 94

static long call(long number, long a, long b, long c) {
    register long x8 asm("x8") = number, x0 asm("x0") = a, x1 asm("x1") = b, x2 asm("x2") = c;
    asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}

static long length(const char *text) {
    long n = 0;
    while (text[n])
        n++;
    return n;
}

static void print(const char *text) { call(SYS_WRITE, 1, (long)text, length(text)); }

static void print_number(long value) {
    char digits[24], *at = digits + 23;
    *at = 0;
    do
        *--at = '0' + value % 10;
    while (value /= 10);
    print(at);
    print("\n");
}

static unsigned zeros[5000];
static unsigned table[4] = {1, 2, 3, 4};

__attribute__((used)) static void start(long *stack) {
    char **arguments = (char **)(stack + 1), **environment = arguments + stack[0] + 1;
    print("hello\n");
    print_number(stack[0]);
    print(arguments[0]);
    print("\n");
    print_number(arguments[stack[0]] == 0);
    long variables = 0;
    while (environment[variables])
        variables++;
    print_number(variables);
    long page = 0;
    for (long *pair = (long *)(environment + variables + 1); pair[0]; pair += 2)
        page = pair[0] == 6 ? pair[1] : page; // AT_PAGESZ
    print_number(page);
    print_number((long)stack % 16);
    unsigned sum = 0;
    for (int i = 0; i < 5000; i++)
        sum += zeros[i] + table[i % 4];
    print_number(sum);
    print_number(-call(9999, 0, 0, 0));
    call(SYS_EXIT_GROUP, 5, 0, 0);
}

asm(".globl _start\n_start: mov x29, #0\n mov x30, #0\n mov x0, sp\n b start");
