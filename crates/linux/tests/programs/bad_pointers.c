// Addresses that are not there, in calls: EFAULT, never a signal.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include "report.h"

// The kernel's own calls: the library would touch some of the addresses first.
#define RAW(name, ...) CALL(syscall(SYS_##name, ##__VA_ARGS__))

int main(void) {
    char *bad = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *edge = bad + 4096 - 4;
    mprotect(bad + 4096, 4096, PROT_NONE);
    strcpy(edge, "abc");
    bad += 4096;
    char *read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int p[2], fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
    pipe(p);

    RAW(write, fd, bad, 4);
    RAW(write, fd, edge, 4);
    RAW(write, fd, NULL, 4);
    RAW(write, fd, NULL, 0);
    lseek(fd, 0, SEEK_SET);
    RAW(read, fd, bad, 4);
    RAW(read, fd, read_only, 4);
    RAW(read, fd, edge, 4);
    RAW(write, p[1], bad, 4);
    RAW(openat, AT_FDCWD, bad, O_RDONLY);
    RAW(openat, AT_FDCWD, NULL, O_RDONLY);
    RAW(mkdirat, AT_FDCWD, bad, 0700);
    RAW(unlinkat, AT_FDCWD, bad, 0);
    RAW(renameat2, AT_FDCWD, "f", AT_FDCWD, bad, 0);
    RAW(symlinkat, bad, AT_FDCWD, "s");
    RAW(readlinkat, AT_FDCWD, "f", bad, 0);
    RAW(newfstatat, AT_FDCWD, "f", bad, 0);
    RAW(newfstatat, AT_FDCWD, bad, edge, 0);
    RAW(fstat, fd, bad);
    RAW(fstat, fd, read_only);
    RAW(statx, AT_FDCWD, "f", 0, STATX_SIZE, bad);
    RAW(getcwd, bad, 100);
    RAW(chdir, bad);
    RAW(pipe2, bad, 0);
    struct iovec v[2] = {{edge, 2}, {bad, 4}};
    RAW(writev, p[1], v, 2);
    RAW(writev, p[1], bad, 1);
    v[0] = v[1];
    RAW(writev, p[1], v, 1);
    // nanosleep is left out: QEMU has another error.
    RAW(clock_gettime, CLOCK_REALTIME_COARSE, bad);
    RAW(uname, bad);
    RAW(getrlimit, RLIMIT_NOFILE, bad);
    RAW(getrusage, RUSAGE_SELF, bad);
    RAW(rt_sigaction, SIGUSR1, bad, NULL, 8);
    RAW(rt_sigprocmask, SIG_BLOCK, bad, NULL, 8);
    RAW(rt_sigprocmask, SIG_BLOCK, NULL, bad, 8);
    RAW(sigaltstack, bad, NULL);
    RAW(ppoll, bad, 1, NULL, NULL, 0);
    RAW(futex, bad, 0, 0, NULL, NULL, 0);
    RAW(getrandom, bad, 4, 0);
    RAW(execve, bad, NULL, NULL);
    RAW(getdents64, open(".", O_RDONLY), bad, 4096);
    RAW(faccessat, AT_FDCWD, bad, 0);
    int e = epoll_create1(0);
    RAW(epoll_ctl, e, EPOLL_CTL_ADD, p[0], bad);
    RAW(socketpair, AF_UNIX, SOCK_STREAM, 0, bad);
    struct timespec *times = (void *)bad;
    RAW(utimensat, AT_FDCWD, "f", times, 0);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    RAW(wait4, child, bad, 0, NULL);
    return 0;
}
