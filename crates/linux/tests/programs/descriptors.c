// Descriptors: duplicates, flags, limits and the errors of bad ones.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include "report.h"

static char buffer[16];

static void duplicates(void) {
    int fd = OK(open("f", O_RDWR | O_CREAT, 0600));
    CALL(write(fd, "abcdef", 6));
    int copy = OK(dup(fd));
    CALL(lseek(copy, 2, SEEK_SET));
    CALL(read(fd, buffer, 2));
    printf("%.2s\n", buffer);
    SHOW(dup2(fd, 50));
    CALL(lseek(50, 0, SEEK_CUR));
    SHOW(dup2(fd, fd) == fd);
    CALL(dup3(fd, fd, 0));
    SHOW(dup3(fd, 51, O_CLOEXEC));
    SHOW(fcntl(51, F_GETFD));
    SHOW(fcntl(50, F_GETFD));
    SHOW(fcntl(fd, F_DUPFD, 60));
    SHOW(fcntl(fd, F_DUPFD, 60));
    SHOW(fcntl(fd, F_DUPFD_CLOEXEC, 60));
    SHOW(fcntl(62, F_GETFD));
    CALL(fcntl(fd, F_SETFL, O_NONBLOCK));
    SHOW((fcntl(60, F_GETFL) & O_NONBLOCK) != 0);
    CALL(fcntl(62, F_SETFD, 0));
    SHOW(fcntl(62, F_GETFD));
    CALL(close(fd));
    CALL(read(copy, buffer, 10));
    CALL(dup2(copy, -1));
    CALL(dup2(copy, 1 << 30));
    CALL(dup3(copy, 70, 12345));
    CALL(fcntl(copy, F_DUPFD, -1));
    CALL(fcntl(copy, 9999));
}

static void bad_descriptors(void) {
    struct stat st;
    struct statfs fs;
    struct iovec v = {buffer, 1};
    CALL(read(-1, buffer, 1));
    CALL(write(999, buffer, 1));
    CALL(pread(999, buffer, 1, 0));
    CALL(readv(999, &v, 1));
    CALL(writev(999, &v, 1));
    CALL(lseek(999, 0, SEEK_SET));
    CALL(close(-1));
    CALL(dup(999));
    CALL(dup2(999, 5));
    CALL(fcntl(999, F_GETFD));
    CALL(fstat(999, &st));
    CALL(fstatfs(999, &fs));
    CALL(ftruncate(999, 0));
    CALL(fsync(999));
    CALL(fchmod(999, 0600));
    CALL(fchown(999, 0, 0));
    CALL(fchdir(999));
    CALL(ioctl(999, FIONREAD, buffer));
    CALL(unlinkat(999, "f", 0));
    CALL(mkdirat(999, "d", 0700));
    OK(mmap(0, 4096, PROT_READ, MAP_PRIVATE, 999, 0));
    struct pollfd p = {999, POLLIN, 0};
    CALL(poll(&p, 1, 0));
    SHOW(p.revents == POLLNVAL);
}

static void limits(void) {
    struct rlimit limit;
    CALL(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 64;
    CALL(setrlimit(RLIMIT_NOFILE, &limit));
    int fd, last = -1;
    while ((fd = dup(1)) >= 0)
        last = fd;
    printf("the last is %d, then %s\n", last, strerrorname_np(errno));
    OK(open("f", O_RDONLY));
    int ends[2];
    CALL(pipe(ends));
    CALL(close(last));
    SHOW(dup(1));
    CALL(dup2(1, 64));
}

static void ranges(void) {
    SHOW(dup2(1, 20) + dup2(1, 21) + dup2(1, 25));
    CALL(close_range(20, 22, 0));
    CALL(fcntl(20, F_GETFD));
    CALL(fcntl(25, F_GETFD));
    CALL(close_range(22, 20, 0));
}

int main(void) {
    duplicates();
    bad_descriptors();
    ranges();
    limits();
    return 0;
}
