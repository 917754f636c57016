// Timers that send signals: setitimer, alarm and timer_create.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include "report.h"

static volatile sig_atomic_t count;
static volatile int code, value;

static void handler(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    count++;
    code = info->si_code;
    value = info->si_value.sival_int;
}

// Waits for a number of signals, but not for ever.
static void wait_for(int wanted) {
    for (int i = 0; i < 5000 && count < wanted; i++)
        usleep(1000);
    printf("at least %d: %d\n", wanted, count >= wanted);
}

static void interval(void) {
    struct itimerval timer = {{0, 2000}, {0, 2000}}, old;
    count = 0;
    CALL(setitimer(ITIMER_REAL, &timer, NULL));
    wait_for(3);
    timer = (struct itimerval){{0, 0}, {0, 0}};
    CALL(setitimer(ITIMER_REAL, &timer, &old));
    SHOW(old.it_interval.tv_usec);
    count = 0;
    usleep(10000);
    SHOW(count);
    timer.it_value.tv_sec = 100;
    CALL(setitimer(ITIMER_REAL, &timer, NULL));
    CALL(getitimer(ITIMER_REAL, &old));
    SHOW(old.it_value.tv_sec >= 98);
    CALL(alarm(50));
    CALL(alarm(0));
    timer.it_value.tv_usec = 1000000;
    CALL(setitimer(ITIMER_REAL, &timer, NULL));
    CALL(setitimer(99, &timer, NULL));
}

static void interrupts(void) {
    struct itimerval timer = {{0, 0}, {0, 10000}};
    struct timespec time = {10, 0}, left;
    setitimer(ITIMER_REAL, &timer, NULL);
    CALL(nanosleep(&time, &left));
    SHOW(left.tv_sec);
    setitimer(ITIMER_REAL, &timer, NULL);
    CALL(pause());
    int p[2];
    char c;
    pipe(p);
    setitimer(ITIMER_REAL, &timer, NULL);
    CALL(read(p[0], &c, 1));
}

static void posix(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    event.sigev_value.sival_int = 77;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    CALL(sigaction(SIGRTMIN, &action, NULL));
    timer_t timer;
    count = 0;
    CALL(timer_create(CLOCK_MONOTONIC, &event, &timer));
    struct itimerspec spec = {{0, 2000000}, {0, 1000000}}, now;
    CALL(timer_settime(timer, 0, &spec, NULL));
    wait_for(2);
    SHOW(code == SI_TIMER);
    SHOW(value);
    CALL(timer_gettime(timer, &now));
    SHOW(now.it_interval.tv_nsec);
    CALL(timer_delete(timer));
    CALL(timer_create(1234, &event, &timer));
}

static void cpu_time(void) {
    struct itimerval timer = {{0, 0}, {0, 5000}};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    CALL(sigaction(SIGPROF, &action, NULL));
    count = 0;
    CALL(setitimer(ITIMER_PROF, &timer, NULL));
    for (volatile long i = 0; count == 0 && i < 4000000000; i++)
        ;
    SHOW(count);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    CALL(sigaction(SIGALRM, &action, NULL));
    interval();
    interrupts();
    posix();
    cpu_time();
    return 0;
}
