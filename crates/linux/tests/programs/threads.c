// POSIX threads: creating, joining, locks and waiting for each other.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include "report.h"

#define THREADS 4

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static long counter, turn, initialised, serial;

static struct timespec soon(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += 5000000;
    if (time.tv_nsec >= 1000000000)
        time.tv_sec++, time.tv_nsec -= 1000000000;
    return time;
}

static void *count(void *argument) {
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

static void *take_turns(void *argument) {
    long me = (long)argument;
    for (int round = 0; round < 3; round++) {
        pthread_mutex_lock(&mutex);
        while (turn % THREADS != me)
            pthread_cond_wait(&changed, &mutex);
        printf("round %d thread %ld\n", round, me);
        turn++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void initialise(void) { initialised++; }

static void *meet(void *argument) {
    pthread_once(&once, initialise);
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        __atomic_add_fetch(&serial, 1, __ATOMIC_SEQ_CST);
    return argument;
}

static void *read_locked(void *argument) {
    pthread_rwlock_rdlock(&rwlock);
    // All readers are inside at the same time, or this would not return.
    pthread_barrier_wait(&barrier);
    pthread_rwlock_unlock(&rwlock);
    return argument;
}

static void *post(void *argument) {
    usleep(2000);
    sem_post(&semaphore);
    return argument;
}

static long all(void *(*function)(void *)) {
    pthread_t threads[THREADS];
    long sum = 0;
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, function, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    return sum;
}

static void mutexes(void) {
    pthread_mutexattr_t attribute;
    pthread_mutex_t checking, recursive;
    struct timespec until = soon();
    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &attribute);
    pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attribute);
    RETURNS(pthread_mutex_lock(&checking));
    RETURNS(pthread_mutex_lock(&checking));
    RETURNS(pthread_mutex_trylock(&checking));
    RETURNS(pthread_mutex_unlock(&checking));
    RETURNS(pthread_mutex_unlock(&checking));
    RETURNS(pthread_mutex_lock(&recursive));
    RETURNS(pthread_mutex_lock(&recursive));
    RETURNS(pthread_mutex_unlock(&recursive));
    RETURNS(pthread_mutex_lock(&mutex));
    RETURNS(pthread_mutex_trylock(&mutex));
    RETURNS(pthread_mutex_timedlock(&mutex, &until));
    until = soon();
    RETURNS(pthread_cond_timedwait(&changed, &mutex, &until));
    RETURNS(pthread_mutex_unlock(&mutex));
    RETURNS(pthread_rwlock_wrlock(&rwlock));
    RETURNS(pthread_rwlock_tryrdlock(&rwlock));
    RETURNS(pthread_rwlock_unlock(&rwlock));
}

static void semaphores(void) {
    struct timespec until = soon();
    CALL(sem_init(&semaphore, 0, 1));
    CALL(sem_wait(&semaphore));
    CALL(sem_trywait(&semaphore));
    CALL(sem_timedwait(&semaphore, &until));
    pthread_t thread;
    pthread_create(&thread, NULL, post, NULL);
    CALL(sem_wait(&semaphore));
    pthread_join(thread, NULL);
    int value;
    CALL(sem_getvalue(&semaphore, &value));
    SHOW(value);
}

int main(void) {
    SHOW(all(count));
    SHOW(counter);
    all(take_turns);
    pthread_barrier_init(&barrier, NULL, THREADS);
    all(meet);
    SHOW(serial);
    SHOW(initialised);
    SHOW(all(read_locked));
    mutexes();
    semaphores();
    pthread_t self = pthread_self();
    RETURNS(pthread_join(self, NULL));
    SHOW(pthread_equal(self, pthread_self()) != 0);
    return 0;
}
