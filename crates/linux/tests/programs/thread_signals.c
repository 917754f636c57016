// Signals and threads: to one, to any, masks of each, faults in the thread that caused them.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include "report.h"

static pthread_t worker;
static volatile int ready, done, in_worker;
static __thread sigjmp_buf back;

static void handler(int number) {
    (void)number;
    in_worker = pthread_equal(pthread_self(), worker);
    done = 1;
}

static void fault(int number) { siglongjmp(back, number); }

static void wait_until(volatile int *flag) {
    while (!*flag)
        usleep(1000);
    *flag = 0;
}

static void *sleeper(void *argument) {
    ready = 1;
    while (!*(volatile int *)argument)
        usleep(1000);
    return NULL;
}

static void *faulter(void *argument) {
    int number = sigsetjmp(back, 1);
    if (number == 0)
        *(volatile int *)argument = 1;
    return (void *)(long)number;
}

static void *waiter(void *argument) {
    int number = 0;
    ready = 1;
    sigwait(argument, &number);
    return (void *)(long)number;
}

int main(void) {
    volatile int stop = 0;
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    signal(SIGUSR1, handler);
    signal(SIGSEGV, fault);

    pthread_create(&worker, NULL, sleeper, (void *)&stop);
    wait_until(&ready);
    RETURNS(pthread_kill(worker, SIGUSR1));
    wait_until(&done);
    SHOW(in_worker);
    RETURNS(pthread_kill(pthread_self(), SIGUSR1));
    wait_until(&done);
    SHOW(in_worker);

    // Only the worker can take it.
    RETURNS(pthread_sigmask(SIG_BLOCK, &set, &old));
    CALL(kill(getpid(), SIGUSR1));
    wait_until(&done);
    SHOW(in_worker);
    stop = 1;
    pthread_join(worker, NULL);

    // Threads inherit the mask: nobody can take it, so it stays pending.
    void *result;
    pthread_create(&worker, NULL, waiter, &set);
    wait_until(&ready);
    CALL(kill(getpid(), SIGUSR1));
    pthread_join(worker, &result);
    SHOW((long)result == SIGUSR1);
    pthread_create(&worker, NULL, faulter, NULL);
    pthread_join(worker, &result);
    SHOW((long)result == SIGSEGV);
    RETURNS(pthread_sigmask(SIG_SETMASK, &old, NULL));
    RETURNS(pthread_kill(pthread_self(), 0));
    RETURNS(pthread_kill(pthread_self(), 999));
    return 0;
}
