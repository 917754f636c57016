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

static uint32_t gate;
static int got;

static long wait_at_gate(uint32_t expected, const void *until) {
    return syscall(SYS_futex, &gate, FUTEX_WAIT_REQUEUE_PI, expected, until, &word, 0);
}

static long open_gate(uint32_t wakes, uint32_t most, uint32_t expected) {
    return syscall(SYS_futex, &gate, FUTEX_CMP_REQUEUE_PI, wakes, (long)most, &word, expected);
}

static void *pass_gate(void *unused) {
    if (wait_at_gate(7, NULL) == 0 && (word & FUTEX_TID_MASK) == (uint32_t)gettid())
        got++;
    futex(&word, FUTEX_UNLOCK_PI, NULL);
    return unused;
}

// Threads wait for one futex, and then for another to be their own.
static void requeueing(void) {
    struct timespec past = {1, 0};
    pthread_t threads[4];
    word = 0;
    gate = 7;
    CALL(wait_at_gate(8, NULL));
    CALL(wait_at_gate(7, &past));
    CALL(syscall(SYS_futex, &gate, FUTEX_WAIT_REQUEUE_PI, 7, NULL, &gate, 0));
    CALL(open_gate(1, 10, 8));
    CALL(open_gate(2, 10, 7));
    CALL(open_gate(1, 10, 7));
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, pass_gate, NULL);
    usleep(200000);
    CALL(syscall(SYS_futex, &gate, FUTEX_WAKE, 1, NULL, NULL, 0));
    CALL(syscall(SYS_futex, &gate, FUTEX_CMP_REQUEUE_PI, 1, 10L, &first, 7));
    // Nobody has the other: the first gets it, and the second waits.
    CALL(open_gate(1, 1, 7));
    usleep(200000);
    SHOW(got);
    futex(&word, FUTEX_LOCK_PI, NULL);
    CALL(open_gate(1, 10, 7));
    usleep(100000);
    SHOW(got);
    SHOW(word == ((uint32_t)gettid() | FUTEX_WAITERS));
    futex(&word, FUTEX_UNLOCK_PI, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    SHOW(got);
    SHOW(word);
}

int main(void) {
    counting();
    trying();
    dying();
    conditions();
    deadlocks();
    raw();
    requeueing();
    return 0;
}
