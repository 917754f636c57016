// Atomic operations from many threads, as exclusive pairs and as single instructions.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "report.h"

#define THREADS 4
#define ROUNDS 20000

static _Atomic uint8_t bytes;
static _Atomic uint16_t halves;
static _Atomic uint32_t words;
static _Atomic uint64_t doubles;
static __int128 wide;
static atomic_flag spin = ATOMIC_FLAG_INIT;
static long guarded;
static _Atomic(struct node *) list;

struct node {
    struct node *next;
    int value;
};

static struct node nodes[THREADS][100];

static void *work(void *argument) {
    long me = (long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&bytes, 1);
        atomic_fetch_add(&halves, 3);
        atomic_fetch_add_explicit(&words, 7, memory_order_relaxed);
        atomic_fetch_xor(&doubles, 1ull << (i % 64));
        while (atomic_flag_test_and_set(&spin))
            ;
        guarded++;
        atomic_flag_clear(&spin);
    }
    for (int i = 0; i < 100; i++) {
        struct node *node = &nodes[me][i];
        node->value = i;
        node->next = atomic_load(&list);
        while (!atomic_compare_exchange_weak(&list, &node->next, node))
            ;
    }
    return NULL;
}

// A pair of registers at once; the loop is the library's on processors that have no such instruction.
static void *work_wide(void *argument) {
    for (int i = 0; i < 2000; i++) {
        uint64_t low, high, failed;
        do
            asm volatile("ldaxp %0, %1, [%3]\n"
                         "adds %0, %0, #1\n adc %1, %1, %0\n"
                         "stlxp %w2, %0, %1, [%3]"
                         : "=&r"(low), "=&r"(high), "=&r"(failed)
                         : "r"(&wide)
                         : "memory", "cc");
        while (failed);
    }
    return argument;
}

static void all(void *(*function)(void *)) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, function, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void) {
    all(work);
    SHOW(bytes);
    SHOW(halves);
    SHOW(words);
    SHOW(doubles);
    SHOW(guarded);
    long count = 0, sum = 0;
    for (struct node *node = list; node; node = node->next)
        count++, sum += node->value;
    SHOW(count);
    SHOW(sum);
    all(work_wide);
    SHOW((long)wide);
    SHOW((long)(wide >> 64));
    return 0;
}
