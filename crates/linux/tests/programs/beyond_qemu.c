// What QEMU 7.2 does not do as Linux does. The expected output is that of the same program on Linux itself.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include "report.h"

#define PAGE 4096L

extern char **environ;

static pthread_mutex_t robust;

static void *dies_with_lock(void *argument) {
    pthread_mutex_lock(&robust);
    return argument;
}

static void robust_lock(int protocol) {
    pthread_mutexattr_t attribute;
    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
    RETURNS(pthread_mutexattr_setprotocol(&attribute, protocol));
    pthread_mutex_init(&robust, &attribute);
    pthread_t thread;
    pthread_create(&thread, NULL, dies_with_lock, NULL);
    pthread_join(thread, NULL);
    RETURNS(pthread_mutex_lock(&robust));
    RETURNS(pthread_mutex_consistent(&robust));
    RETURNS(pthread_mutex_unlock(&robust));
    RETURNS(pthread_mutex_lock(&robust));
    RETURNS(pthread_mutex_unlock(&robust));
    pthread_create(&thread, NULL, dies_with_lock, NULL);
    pthread_join(thread, NULL);
    RETURNS(pthread_mutex_lock(&robust));
    RETURNS(pthread_mutex_unlock(&robust));
    RETURNS(pthread_mutex_lock(&robust));
}

static void memory(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *m = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    OK(mmap(m, PAGE, PROT_READ, flags | MAP_FIXED_NOREPLACE, -1, 0));
    OK(mremap(m, PAGE, 0, 0));
    munmap(m, 2 * PAGE);
    CALL(syscall(SYS_nanosleep, m, NULL));
}

static void subreaper(void) {
    CALL(prctl(PR_SET_CHILD_SUBREAPER, 1));
    fflush(stdout);
    if (fork() == 0) {
        // Its child outlives it, and becomes ours.
        if (fork() == 0) {
            usleep(30000);
            _exit(44);
        }
        _exit(0);
    }
    int status, codes = 0;
    while (wait(&status) > 0)
        codes += WEXITSTATUS(status);
    SHOW(codes);
}

int main(int count, char **arguments) {
    if (count > 1) {
        for (char **variable = environ; *variable; variable++)
            printf("%s\n", *variable);
        return 0;
    }
    robust_lock(PTHREAD_PRIO_NONE);
    robust_lock(PTHREAD_PRIO_INHERIT);
    memory();
    subreaper();
    int fd = open("f", O_CREAT | O_RDWR, 0600);
    CALL(ioctl(fd, 0x12345678, 0));
    char *again[] = {arguments[0], "again", NULL}, *variables[] = {"Z=1", "A=2", "M=3", NULL};
    fflush(stdout);
    execve(arguments[0], again, variables);
    return 1;
}
