// Locks on files, between processes and between descriptors.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include "report.h"

static struct flock lock(short type, long start, long length) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

static void in_child(int fd) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct flock l = lock(F_WRLCK, 5, 10);
        CALL(fcntl(fd, F_SETLK, &l));
        CALL(fcntl(fd, F_GETLK, &l));
        printf("type %d, from %ld, %ld, %s\n", l.l_type == F_WRLCK, (long)l.l_start, (long)l.l_len,
               l.l_pid == getppid() ? "the parent's" : "another's");
        l = lock(F_RDLCK, 100, 10);
        CALL(fcntl(fd, F_SETLK, &l));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void records(void) {
    int fd = OK(open("f", O_RDWR | O_CREAT, 0600));
    struct flock l = lock(F_WRLCK, 0, 10);
    CALL(fcntl(fd, F_SETLK, &l));
    CALL(fcntl(fd, F_SETLK, &l));
    in_child(fd);
    // Closing any descriptor of the file drops the lock.
    close(dup(fd));
    in_child(fd);
    l = lock(F_UNLCK, 0, 0);
    CALL(fcntl(fd, F_SETLK, &l));
    l.l_type = 77;
    CALL(fcntl(fd, F_SETLK, &l));
    int other = open("f", O_RDONLY);
    l = lock(F_WRLCK, 0, 1);
    CALL(fcntl(other, F_SETLK, &l));
    close(other);
    close(fd);
}

static void whole_files(void) {
    int a = open("g", O_RDWR | O_CREAT, 0600), b = open("g", O_RDWR);
    CALL(flock(a, LOCK_EX));
    CALL(flock(b, LOCK_EX | LOCK_NB));
    CALL(flock(b, LOCK_SH | LOCK_NB));
    CALL(flock(a, LOCK_SH));
    CALL(flock(b, LOCK_SH | LOCK_NB));
    CALL(flock(a, LOCK_EX | LOCK_NB));
    CALL(flock(b, LOCK_UN));
    CALL(flock(a, LOCK_EX | LOCK_NB));
    close(a);
    CALL(flock(b, LOCK_EX | LOCK_NB));
}

int main(void) {
    records();
    whole_files();
    return 0;
}
