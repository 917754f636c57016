// How threads end: exits, cancellation, destructors, detached ones, and the process with them.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "report.h"

static pthread_key_t key;
static __thread int own = 5;
static volatile int ready, cancelled, detached_done;

static void destroy(void *value) { printf("destructor of %s\n", (char *)value); }
static void cleanup(void *name) { printf("cleanup %s\n", (char *)name); }

static void *exits(void *argument) {
    pthread_setspecific(key, argument);
    own++;
    printf("own value %d\n", own);
    pthread_cleanup_push(cleanup, "of exit");
    pthread_exit((void *)21);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *waits(void *argument) {
    int p[2];
    char c;
    pipe(p);
    pthread_setspecific(key, argument);
    pthread_cleanup_push(cleanup, "of cancelled");
    ready = 1;
    read(p[0], &c, 1);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *spins(void *argument) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    ready = 1;
    for (;;)
        ;
    return argument;
}

static void *refuses(void *argument) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    ready = 1;
    while (!cancelled)
        usleep(1000);
    printf("still here\n");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    printf("never printed\n");
    return argument;
}

static void cancel(void *(*function)(void *)) {
    pthread_t thread;
    void *result;
    ready = cancelled = 0;
    pthread_create(&thread, NULL, function, "cancelled");
    while (!ready)
        usleep(1000);
    usleep(2000);
    int error = pthread_cancel(thread);
    cancelled = 1;
    pthread_join(thread, &result);
    SHOW(error);
    SHOW(result == PTHREAD_CANCELED);
}

static void *detached(void *argument) {
    detached_done = 1;
    return argument;
}

static void *exits_process(void *argument) {
    (void)argument;
    exit(12);
}

static void *main_is_gone(void *argument) {
    usleep(10000);
    printf("after the main thread\n");
    fflush(stdout);
    return argument;
}

static void in_child(int which) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, which ? main_is_gone : exits_process, NULL);
        if (which)
            pthread_exit(NULL);
        pause();
    }
    int status;
    waitpid(child, &status, 0);
    printf("the process exited with %d\n", WEXITSTATUS(status));
}

int main(void) {
    pthread_t thread;
    void *result;
    setvbuf(stdout, NULL, _IONBF, 0);
    pthread_key_create(&key, destroy);
    pthread_create(&thread, NULL, exits, "exits");
    pthread_join(thread, &result);
    SHOW((long)result);
    SHOW(own);
    cancel(waits);
    cancel(spins);
    cancel(refuses);
    pthread_attr_t attribute;
    pthread_attr_init(&attribute);
    pthread_attr_setdetachstate(&attribute, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attribute, 1 << 20);
    RETURNS(pthread_create(&thread, &attribute, detached, NULL));
    while (!detached_done)
        usleep(1000);
    SHOW(syscall(SYS_gettid) == getpid());
    in_child(0);
    in_child(1);
    return 0;
}
