// Alternate stacks, recursion down to the guard page, and long jumps out of handlers.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include "report.h"

static char stack[65536];
static sigjmp_buf back;
static volatile int on_stack;

static void overflow(int number, siginfo_t *info, void *context) {
    (void)info, (void)context;
    char here;
    on_stack = &here >= stack && &here < stack + sizeof stack;
    siglongjmp(back, number);
}

static void flags_inside(int number) {
    stack_t now;
    sigaltstack(NULL, &now);
    printf("%s: on the stack %d\n", sigabbrev_np(number), now.ss_flags == SS_ONSTACK);
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    CALL(sigaltstack(&other, NULL));
}

__attribute__((noinline)) static long recurse(long depth) {
    volatile char frame[4096];
    frame[depth % 4096] = 1;
    return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

__attribute__((noinline)) static int big_frame(void) {
    volatile char frame[3 << 20];
    for (unsigned i = 0; i < sizeof frame; i += 4096)
        frame[i] = 1;
    return frame[4096] + frame[sizeof frame - 4096];
}

static void errors(void) {
    stack_t small = {.ss_sp = stack, .ss_size = 100}, bad = {.ss_sp = stack, .ss_flags = 99};
    CALL(sigaltstack(&small, NULL));
    bad.ss_size = sizeof stack;
    CALL(sigaltstack(&bad, NULL));
    stack_t none = {.ss_flags = SS_DISABLE}, old;
    CALL(sigaltstack(&none, &old));
    SHOW(old.ss_sp == stack && old.ss_size == sizeof stack);
    CALL(sigaltstack(NULL, &old));
    SHOW(old.ss_flags == SS_DISABLE);
}

int main(void) {
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    CALL(sigaltstack(&alternate, NULL));
    struct sigaction action = {.sa_sigaction = overflow, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    SHOW(big_frame());
    for (int i = 0; i < 3; i++) {
        int number = sigsetjmp(back, 1);
        if (number == 0)
            recurse(0);
        printf("overflow: %s, on the stack %d\n", sigabbrev_np(number), on_stack);
    }
    action.sa_sigaction = (void *)flags_inside;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    // Without saving the mask, the signal stays blocked.
    action.sa_sigaction = overflow;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR2, &action, NULL);
    if (sigsetjmp(back, 0) == 0)
        raise(SIGUSR2);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    SHOW(sigismember(&now, SIGUSR2));
    SHOW(on_stack);
    errors();
    return 0;
}
