// Mutexes that inherit priorities, and the futexes below them.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include "report.h"

static pthread_mutex_t mutex;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static uint32_t word, first, second;
static int count, handled;

static long futex(uint32_t *at, int operation, const void *time) {
    return syscall(SYS_futex, at, operation, 0, time, NULL, 0);
}

static void make(pthread_mutex_t *at, int type, int robust) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    RETURNS(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT));
    RETURNS(pthread_mutexattr_settype(&attributes, type));
    RETURNS(pthread_mutexattr_setrobust(&attributes, robust));
    RETURNS(pthread_mutex_init(at, &attributes));
}

static void *add(void *unused) {
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        int now = count;
        if (i % 500 == 0)
            usleep(1000);
        count = now + 1;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void counting(void) {
    pthread_t threads[4];
    make(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    SHOW(count);
    RETURNS(pthread_mutex_destroy(&mutex));
}

static void *hold(void *unused) {
    pthread_mutex_lock(&mutex);
    usleep(400000);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void trying(void) {
    pthread_t thread;
    struct timespec soon;
    make(&mutex, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED);
    RETURNS(pthread_mutex_lock(&mutex));
    RETURNS(pthread_mutex_lock(&mutex));
    RETURNS(pthread_mutex_trylock(&mutex));
    RETURNS(pthread_mutex_unlock(&mutex));
    RETURNS(pthread_mutex_unlock(&mutex));
    pthread_create(&thread, NULL, hold, NULL);
    usleep(50000);
    RETURNS(pthread_mutex_trylock(&mutex));
    RETURNS(pthread_mutex_unlock(&mutex));
    clock_gettime(CLOCK_REALTIME, &soon);
    RETURNS(pthread_mutex_timedlock(&mutex, &soon));
    soon.tv_nsec += 10000000;
    if (soon.tv_nsec >= 1000000000)
        soon.tv_sec++, soon.tv_nsec -= 1000000000;
    RETURNS(pthread_mutex_timedlock(&mutex, &soon));
    soon.tv_sec += 10;
    RETURNS(pthread_mutex_timedlock(&mutex, &soon));
    RETURNS(pthread_mutex_unlock(&mutex));
    pthread_join(thread, NULL);
}

static void *die(void *unused) {
    pthread_mutex_lock(&mutex);
    usleep(200000);
    return unused;
}

static void dying(void) {
    pthread_t thread;
    make(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
    // Somebody waits when it does.
    pthread_create(&thread, NULL, die, NULL);
    usleep(50000);
    RETURNS(pthread_mutex_lock(&mutex));
    RETURNS(pthread_mutex_consistent(&mutex));
    RETURNS(pthread_mutex_unlock(&mutex));
    RETURNS(pthread_mutex_lock(&mutex));
    RETURNS(pthread_mutex_unlock(&mutex));
    pthread_join(thread, NULL);
}

static void *produce(void *unused) {
    for (int i = 0; i < 3; i++) {
        usleep(1000);
        pthread_mutex_lock(&mutex);
        count++;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void conditions(void) {
    pthread_t thread;
    count = 0;
    make(&mutex, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED);
    pthread_create(&thread, NULL, produce, NULL);
    pthread_mutex_lock(&mutex);
    while (count < 3)
        pthread_cond_wait(&condition, &mutex);
    RETURNS(pthread_mutex_lock(&mutex));
    RETURNS(pthread_mutex_unlock(&mutex));
    RETURNS(pthread_mutex_unlock(&mutex));
    pthread_join(thread, NULL);
    SHOW(count);
}

static void *crossed(void *unused) {
    futex(&second, FUTEX_LOCK_PI, NULL);
    CALL(futex(&first, FUTEX_LOCK_PI, NULL));
    futex(&first, FUTEX_UNLOCK_PI, NULL);
    futex(&second, FUTEX_UNLOCK_PI, NULL);
    return unused;
}

static void deadlocks(void) {
    pthread_t thread;
    futex(&first, FUTEX_LOCK_PI, NULL);
    pthread_create(&thread, NULL, crossed, NULL);
    // Long enough for the other to wait.
    usleep(200000);
    CALL(futex(&second, FUTEX_LOCK_PI, NULL));
    futex(&first, FUTEX_UNLOCK_PI, NULL);
    pthread_join(thread, NULL);
}

static void on_signal(int number) {
    (void)number;
    handled++;
}

static void *take(void *unused) {
    CALL(futex(&word, FUTEX_LOCK_PI, NULL));
    CALL(futex(&word, FUTEX_UNLOCK_PI, NULL));
    return unused;
}

static void raw(void) {
    struct timespec past = {1, 0}, bad = {0, 2000000000};
    pthread_t thread;
    CALL(futex(&word, FUTEX_TRYLOCK_PI, NULL));
    SHOW(word == (uint32_t)gettid());
    CALL(futex(&word, FUTEX_TRYLOCK_PI, NULL));
    CALL(futex(&word, FUTEX_LOCK_PI, NULL));
    CALL(futex(&word, FUTEX_LOCK_PI, &bad));
    CALL(futex(&word, FUTEX_UNLOCK_PI, NULL));
    SHOW(word);
    CALL(futex(&word, FUTEX_UNLOCK_PI, NULL));
    CALL(futex((uint32_t *)((char *)&word + 2), FUTEX_LOCK_PI, NULL));
    CALL(futex(NULL, FUTEX_LOCK_PI, NULL));
    word = 0x3ffffff0;
    CALL(futex(&word, FUTEX_LOCK_PI, &past));
    word = FUTEX_OWNER_DIED;
    CALL(futex(&word, FUTEX_LOCK_PI, NULL));
    SHOW(word == ((uint32_t)gettid() | FUTEX_OWNER_DIED));
    word = gettid();
    // A signal does not end the waiting.
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, take, NULL);
    usleep(100000);
    SHOW(word == ((uint32_t)gettid() | FUTEX_WAITERS));
    pthread_kill(thread, SIGUSR1);
    usleep(100000);
    SHOW(handled);
    futex(&word, FUTEX_UNLOCK_PI, NULL);
    pthread_join(thread, NULL);
    SHOW(word);
}

int main(void) {
    counting();
    trying();
    dying();
    conditions();
    deadlocks();
    raw();
    return 0;
}
