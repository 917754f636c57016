// What handlers see of the interrupted code, and what they may change in it.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>
#include "report.h"

extern char undefined_at[], breakpoint_at[], load_at[];

static volatile uint64_t seen[4];
static char *expected;

static void skip(int number, siginfo_t *info, void *context) {
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
    // QEMU 7.2 has another code for undefined instructions than Linux.
    printf("%s code %d, pc %s, x19 %#lx, x20 %#lx\n", sigabbrev_np(number),
           number == SIGILL ? 0 : info->si_code,
           machine->pc == (uintptr_t)expected ? "right" : "wrong", (long)machine->regs[19],
           (long)machine->regs[20]);
    machine->pc += 4;
    machine->regs[20] = 0x1234;
}

static void undefined(void) {
    uint64_t x20;
    expected = undefined_at;
    asm volatile("mov x19, #0x11\n mov x20, #0x22\n"
                 ".globl undefined_at\nundefined_at: udf #0\n"
                 "mov %0, x20"
                 : "=r"(x20)::"x19", "x20", "memory");
    printf("after udf: %#lx\n", (long)x20);
}

static void breakpoint(void) {
    uint64_t x20;
    expected = breakpoint_at;
    asm volatile("mov x19, #0x33\n mov x20, #0x44\n"
                 ".globl breakpoint_at\nbreakpoint_at: brk #5\n"
                 "mov %0, x20"
                 : "=r"(x20)::"x19", "x20", "memory");
    printf("after brk: %#lx\n", (long)x20);
}

static void load(void) {
    uint64_t x20;
    expected = load_at;
    asm volatile("mov x19, #0\n mov x20, #0x55\n"
                 ".globl load_at\nload_at: ldr x20, [x19]\n"
                 "mov %0, x20"
                 : "=r"(x20)::"x19", "x20", "memory");
    printf("after ldr: %#lx\n", (long)x20);
}

// All registers and flags survive a signal between two instructions.
static void survive(void) {
    uint64_t flags, x9, pid = getpid();
    double d;
    asm volatile("mov x8, #129\n mov x0, %3\n mov x1, #10\n" // kill(pid, SIGUSR1)
                 "mov x9, #0x7777\n fmov d8, #1.5\n"
                 "cmp xzr, xzr\n"
                 "svc #0\n"
                 "mrs %0, nzcv\n mov %1, x9\n fmov %d2, d8"
                 : "=&r"(flags), "=&r"(x9), "=w"(d)
                 : "r"(pid)
                 : "x0", "x1", "x8", "x9", "d8", "cc", "memory");
    printf("after the signal: flags %#lx, x9 %#lx, d8 %g\n", (long)flags, (long)x9, d);
}

static void clobber(int number) {
    printf("%s\n", sigabbrev_np(number));
    asm volatile("mov x9, #0\n fmov d8, xzr\n cmn xzr, xzr" ::: "x9", "d8", "cc");
}

// The mask that a handler leaves in the context is the one that holds after it.
static void change_mask(int number, siginfo_t *info, void *context) {
    (void)info;
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    printf("in %s: itself %d, USR2 %d, HUP %d\n", sigabbrev_np(number), sigismember(&now, number),
           sigismember(&now, SIGUSR2), sigismember(&now, SIGHUP));
    sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGHUP);
}

static void masks(void) {
    struct sigaction action = {.sa_sigaction = change_mask, .sa_flags = SA_SIGINFO};
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGTERM, &action, NULL);
    raise(SIGTERM);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    printf("after: TERM %d, USR2 %d, HUP %d\n", sigismember(&now, SIGTERM),
           sigismember(&now, SIGUSR2), sigismember(&now, SIGHUP));
}

int main(void) {
    struct sigaction action = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    signal(SIGUSR1, clobber);
    undefined();
    breakpoint();
    load();
    survive();
    masks();
    return 0;
}
