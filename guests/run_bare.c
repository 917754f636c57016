/*
 * Runs a bare guest under Linux on AArch64 (or qemu-aarch64), to check the
 * images in bin/ without a bare machine:
 *
 *     run_bare IMAGE [X0 [X1 ...]]
 *
 * Maps the machine's memory from 0x10000 up, loads the image there and jumps
 * to it with the arguments (decimal) in x0 to x7.  HLT is an illegal
 * instruction to Linux; its signal handler prints x0 as 16 hexadecimal digits
 * and then, for mandelbrot, checksums of the two buffers it fills.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define BASE 0x10000ul
#define TOP 0x100000ul
#define COUNTS 0x40000ul
#define SQUARES 0x42000ul

static char handler_stack[65536];

static uint64_t checksum(uintptr_t address)
{
    const volatile uint16_t *row = (const volatile uint16_t *)address;
    uint64_t hash = 0xcbf29ce484222325u;

    for (int i = 0; i < 4096; i++)
        hash = (hash ^ row[i]) * 0x100000001b3u;
    return hash;
}

static void halted(int signal, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;

    if (signal != SIGILL) {
        fprintf(stderr, "signal %d at pc %llx, address %p\n", signal,
                (unsigned long long)uc->uc_mcontext.pc, info->si_addr);
        _exit(1);
    }
    printf("%016llx\n", (unsigned long long)uc->uc_mcontext.regs[0]);
    printf("%016" PRIx64 "\n", checksum(COUNTS));
    printf("%016" PRIx64 "\n", checksum(SQUARES));
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    void (*enter)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                  uint64_t, uint64_t) = (void *)BASE;
    stack_t stack = { .ss_sp = handler_stack, .ss_size = sizeof handler_stack };
    struct sigaction action = { .sa_sigaction = halted,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK };
    uint64_t x[8] = { 0 };
    FILE *image;

    if (argc < 2 || !(image = fopen(argv[1], "rb"))) {
        fprintf(stderr, "usage: run_bare IMAGE [X0 [X1 ...]]\n");
        return 2;
    }
    if (mmap((void *)BASE, TOP - BASE, PROT_READ | PROT_WRITE | PROT_EXEC,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
             0) != (void *)BASE) {
        perror("mmap");
        return 1;
    }
    fread((void *)BASE, 1, TOP - BASE, image);
    __builtin___clear_cache((char *)BASE, (char *)TOP);
    for (int i = 0; i < 8 && i + 2 < argc; i++)
        x[i] = argv[i + 2][0] == '-' ? (uint64_t)strtoll(argv[i + 2], NULL, 10)
                                     : strtoull(argv[i + 2], NULL, 10);

    sigaltstack(&stack, NULL);
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    enter(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
    return 1;
}
