// setjmp, longjmp and contexts.
#define _GNU_SOURCE
#include <setjmp.h>
#include <ucontext.h>
#include "report.h"

static jmp_buf buffers[3];
static ucontext_t main_context, contexts[2];
static char stacks[2][65536];

__attribute__((noinline)) static void deep(int depth, int target) {
    if (depth == 0)
        longjmp(buffers[target], 10 + target);
    if (depth > 0)
        deep(depth - 1, target);
    printf("never\n");
}

static void jumps(void) {
    double kept = 2.5;
    volatile int count = 0;
    for (volatile int target = 0; target < 3; target++) {
        int value = setjmp(buffers[target]);
        if (value == 0)
            deep(20, target);
        printf("jumped with %d, kept %g\n", value, kept);
    }
    int value = setjmp(buffers[0]);
    if (count < 3) {
        count++;
        longjmp(buffers[0], 0);
    }
    printf("longjmp with 0 gives %d, %d times\n", value, count);
}

static void coroutine(int me) {
    for (int i = 0; i < 3; i++) {
        printf("context %d step %d\n", me, i);
        swapcontext(&contexts[me], &contexts[1 - me]);
    }
    printf("context %d ends\n", me);
}

static void switches(void) {
    for (int i = 0; i < 2; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = sizeof stacks[i];
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
    }
    swapcontext(&main_context, &contexts[0]);
    printf("back in main\n");
}

int main(void) {
    jumps();
    switches();
    return 0;
}
