// Semaphores in files, which processes show at different addresses.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "report.h"

enum { ROUNDS = 5 };

static long futex(uint32_t *at, int operation, uint32_t value) {
    return syscall(SYS_futex, at, operation, value, NULL, NULL, 0);
}

// Parent and child wait for each other in turn; the names of their semaphores are gone.
static void turns(void) {
    sem_t *mine = sem_open("/mine", O_CREAT | O_EXCL, 0600, 0);
    sem_t *yours = sem_open("/yours", O_CREAT | O_EXCL, 0600, 0);
    CALL(sem_unlink("/mine"));
    CALL(sem_unlink("/yours"));
    if (fork() == 0) {
        for (int i = 0; i < ROUNDS; i++) {
            sem_wait(yours);
            printf("child %d\n", i);
            fflush(stdout);
            sem_post(mine);
        }
        _exit(0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        printf("parent %d\n", i);
        fflush(stdout);
        sem_post(yours);
        sem_wait(mine);
    }
    CALL(wait(NULL) > 0);
    CALL(sem_close(mine));
    CALL(sem_close(yours));
}

// A futex is the same one wherever its file is mapped, and another one in memory of one's own.
static void mapped_twice(void) {
    int file = open("shared", O_RDWR | O_CREAT, 0600);
    CALL(ftruncate(file, 8192));
    uint32_t *here = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (fork() == 0) {
        uint32_t *there = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 4096);
        _exit(futex(&there[3], FUTEX_WAIT, 0) != 0);
    }
    uint32_t *own = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    // Long enough for the child to wait.
    usleep(100000);
    CALL(futex(&own[1024 + 3], FUTEX_WAKE, 1));
    CALL(futex(&here[3], FUTEX_WAKE, 1));
    CALL(futex(&here[1024 + 3], FUTEX_WAKE, 1));
    int status = -1;
    CALL(wait(&status) > 0);
    SHOW(status);
}

int main(void) {
    turns();
    mapped_twice();
    return 0;
}
