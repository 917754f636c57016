// The futex call itself.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include "report.h"

static uint32_t word, other;
static int woken;

static long futex(uint32_t *at, int operation, uint32_t value, const void *time, uint32_t *second,
                  uint32_t third) {
    return syscall(SYS_futex, at, operation, value, time, second, third);
}

static void *wait_on(void *argument) {
    long result = futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, (uint32_t)(long)argument);
    if (result == 0)
        __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void start(pthread_t *threads, int count, const uint32_t *bits) {
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, wait_on, (void *)(long)bits[i]);
    // Long enough for all to wait.
    usleep(100000);
}

static void timeouts(void) {
    struct timespec little = {0, 2000000}, bad = {0, 2000000000}, past = {1, 0};
    CALL(futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0));
    CALL(futex(&word, FUTEX_WAIT, 0, &little, NULL, 0));
    CALL(futex(&word, FUTEX_WAIT, 0, &bad, NULL, 0));
    CALL(futex(&word, FUTEX_WAIT_BITSET, 0, &past, NULL, FUTEX_BITSET_MATCH_ANY));
    CALL(futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &past, NULL, 1));
    CALL(futex(&word, FUTEX_WAIT_BITSET, 0, &little, NULL, 0));
    CALL(futex((uint32_t *)((char *)&word + 1), FUTEX_WAIT, 0, &little, NULL, 0));
    CALL(futex(NULL, FUTEX_WAIT, 0, &little, NULL, 0));
    CALL(futex(&word, 99, 0, NULL, NULL, 0));
    CALL(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0));
}

static void wakes(void) {
    pthread_t threads[3];
    uint32_t any[] = {~0u, ~0u, ~0u}, bits[] = {1, 2, 4};
    start(threads, 3, any);
    CALL(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
    CALL(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    SHOW(woken);
    start(threads, 3, bits);
    CALL(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 8));
    CALL(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 2));
    pthread_join(threads[1], NULL);
    CALL(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 5));
    pthread_join(threads[0], NULL);
    pthread_join(threads[2], NULL);
    SHOW(woken);
}

static void requeues(void) {
    pthread_t threads[3];
    uint32_t any[] = {~0u, ~0u, ~0u};
    start(threads, 3, any);
    CALL(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)10, &other, 7));
    CALL(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)10, &other, 0));
    CALL(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
    CALL(futex(&other, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    SHOW(woken);
}

static void operations(void) {
    word = 5, other = 10;
    int add = FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_GT, 9);
    CALL(futex(&word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &other, add));
    SHOW(other);
    SHOW(word);
}

int main(void) {
    timeouts();
    wakes();
    requeues();
    operations();
    return 0;
}
