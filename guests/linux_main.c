/*
 * A guest as a Linux program: up to eight decimal arguments are passed to
 * run(), as the host would pass them in x0 to x7; its result is printed as 16
 * hexadecimal digits.
 */
#include <stdint.h>

#define SYS_WRITE 64
#define SYS_EXIT 93
#define ARGUMENTS 8

/* A guest looks at as many of the arguments as it has. */
uint64_t run(uint64_t, uint64_t, uint64_t, uint64_t,
             uint64_t, uint64_t, uint64_t, uint64_t);

/* A guest may have more to print. */
__attribute__((weak)) void report(void (*print)(uint64_t));

static long syscall3(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;

    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2)
                     : "memory");
    return x0;
}

static uint64_t parse(const char *text)
{
    int negative = *text == '-';
    uint64_t value = 0;

    for (text += negative; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return negative ? -value : value;
}

static void print(uint64_t value)
{
    char line[17];

    for (int i = 0; i < 16; i++)
        line[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
    line[16] = '\n';
    syscall3(SYS_WRITE, 1, (long)line, sizeof line);
}

void linux_main(uint64_t argc, char **argv)
{
    uint64_t args[ARGUMENTS] = { 0 };

    for (uint64_t i = 0; i < ARGUMENTS && i + 1 < argc; i++)
        args[i] = parse(argv[i + 1]);
    print(run(args[0], args[1], args[2], args[3],
              args[4], args[5], args[6], args[7]));
    if (report)
        report(print);
    for (;;)
        syscall3(SYS_EXIT, 0, 0, 0);
}
