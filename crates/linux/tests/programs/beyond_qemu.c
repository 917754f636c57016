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

// A mapping that reaches behind the end of its file, made shorter and longer.
static void resized(void) {
    int fd = open("f", O_CREAT | O_RDWR | O_TRUNC, 0600);
    ftruncate(fd, 2 * PAGE);
    pwrite(fd, "second", 6, PAGE);
    char *m = mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    SHOW(mremap(m, 6 * PAGE, 5 * PAGE, 0) == m);
    m = mremap(m, 5 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    SHOW(m != MAP_FAILED);
    printf("%s\n", m + PAGE);
    pwrite(fd, "last", 4, 7 * PAGE);
    printf("%s\n", m + 7 * PAGE);
    SHOW(mremap(m, 8 * PAGE, PAGE, 0) == m);
    munmap(m, PAGE);
    close(fd);
}

// Addresses that no process has.
static void far(void) {
    char *there = (char *)(1L << 50);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    CALL(mmap(there, PAGE, PROT_READ, flags | MAP_FIXED, -1, 0));
    CALL(mmap(there, PAGE, PROT_READ, flags | MAP_FIXED_NOREPLACE, -1, 0));
    char *elsewhere = mmap(there, PAGE, PROT_READ, flags, -1, 0);
    SHOW(elsewhere != MAP_FAILED && elsewhere < there);
    CALL(mmap(NULL, 1L << 50, PROT_NONE, flags | MAP_NORESERVE, -1, 0));
    CALL(munmap(there, PAGE));
    CALL(mprotect(there, PAGE, PROT_READ));
    CALL(mremap(elsewhere, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, there));
}

static void groups(void) {
    gid_t some[] = {70, 5}, found[4] = {0};
    CALL(syscall(SYS_setgroups, 2, some));
    CALL(syscall(SYS_getgroups, 0, NULL));
    CALL(syscall(SYS_getgroups, 1, found));
    CALL(syscall(SYS_getgroups, 4, found));
    printf("%d %d\n", found[0], found[1]);
    CALL(syscall(SYS_setgroups, 2, NULL));
    CALL(syscall(SYS_setgroups, -1, some));
    CALL(syscall(SYS_setgroups, 0, NULL));
    CALL(syscall(SYS_getgroups, 4, found));
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
    resized();
    far();
    groups();
    int fd = open("f", O_CREAT | O_RDWR, 0600);
    CALL(ioctl(fd, 0x12345678, 0));
    char *again[] = {arguments[0], "again", NULL}, *variables[] = {"Z=1", "A=2", "M=3", NULL};
    fflush(stdout);
    execve(arguments[0], again, variables);
    return 1;
}
