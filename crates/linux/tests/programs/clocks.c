// Clocks, sleeping, and what limits both.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include "report.h"

static long nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void forward(const char *name, clockid_t clock) {
    long last = nanoseconds(clock), back = 0;
    for (int i = 0; i < 1000; i++) {
        long now = nanoseconds(clock);
        back += now < last;
        last = now;
    }
    printf("%s went back %ld times\n", name, back);
}

static void sleeps(void) {
    struct timespec time = {0, 5000000}, left = {9, 9};
    long start = nanoseconds(CLOCK_MONOTONIC);
    CALL(nanosleep(&time, &left));
    SHOW(nanoseconds(CLOCK_MONOTONIC) - start >= 5000000);
    SHOW(left.tv_sec);
    time.tv_nsec = 1000000000;
    CALL(nanosleep(&time, NULL));
    time = (struct timespec){-1, 0};
    CALL(nanosleep(&time, NULL));
    long until = nanoseconds(CLOCK_MONOTONIC) + 5000000;
    time = (struct timespec){until / 1000000000, until % 1000000000};
    RETURNS(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL));
    SHOW(nanoseconds(CLOCK_MONOTONIC) >= until);
    time.tv_sec -= 5;
    RETURNS(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL));
    RETURNS(clock_nanosleep(1234, 0, &time, NULL));
    CALL(usleep(1000));
}

int main(void) {
    forward("CLOCK_MONOTONIC", CLOCK_MONOTONIC);
    forward("CLOCK_MONOTONIC_RAW", CLOCK_MONOTONIC_RAW);
    forward("CLOCK_BOOTTIME", CLOCK_BOOTTIME);
    forward("CLOCK_PROCESS_CPUTIME_ID", CLOCK_PROCESS_CPUTIME_ID);
    forward("CLOCK_THREAD_CPUTIME_ID", CLOCK_THREAD_CPUTIME_ID);
    struct timespec t;
    CALL(clock_gettime(CLOCK_REALTIME_COARSE, &t));
    CALL(clock_gettime(1234, &t));
    CALL(clock_getres(CLOCK_MONOTONIC, &t));
    SHOW(t.tv_sec == 0 && t.tv_nsec > 0);
    CALL(clock_getres(1234, &t));
    struct timeval tv;
    CALL(gettimeofday(&tv, NULL));
    long difference = tv.tv_sec - time(NULL);
    // time() may be behind by a tick.
    SHOW(labs(difference) <= 1);
    SHOW(tv.tv_sec > 1600000000 && tv.tv_usec < 1000000);
    SHOW(labs(nanoseconds(CLOCK_REALTIME) / 1000000000 - tv.tv_sec) <= 2);
    struct tms tms;
    SHOW(times(&tms) != -1);
    clockid_t own;
    RETURNS(clock_getcpuclockid(getpid(), &own));
    SHOW(nanoseconds(own) > 0);
    RETURNS(pthread_getcpuclockid(pthread_self(), &own));
    SHOW(nanoseconds(own) > 0);
    struct timespec turn;
    CALL(sched_rr_get_interval(0, &turn));
    CALL(sched_rr_get_interval(0x7fffffff, &turn));
    sleeps();
    time_t then = 1000000000;
    struct tm *broken = gmtime(&then);
    printf("%d-%d-%d %d:%d:%d, day %d\n", broken->tm_year + 1900, broken->tm_mon + 1,
           broken->tm_mday, broken->tm_hour, broken->tm_min, broken->tm_sec, broken->tm_yday);
    return 0;
}
