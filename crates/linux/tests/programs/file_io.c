// Reading, writing and positions of files.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/uio.h>
#include "report.h"

static char buffer[64];

static void show(const char *what, long length) {
    printf("%s: %ld \"%.*s\"\n", what, length, length > 0 ? (int)length : 0, buffer);
}

static void positions(int fd) {
    CALL(write(fd, "0123456789", 10));
    CALL(lseek(fd, 0, SEEK_CUR));
    CALL(lseek(fd, -3, SEEK_END));
    show("read", read(fd, buffer, sizeof buffer));
    CALL(read(fd, buffer, 4));
    CALL(lseek(fd, 2, SEEK_SET));
    CALL(lseek(fd, -5, SEEK_CUR));
    CALL(lseek(fd, 3, SEEK_CUR));
    show("read", read(fd, buffer, 2));
    CALL(lseek(fd, 0, 99));
    CALL(pwrite(fd, "AB", 2, 4));
    show("pread", pread(fd, buffer, 8, 1));
    CALL(pread(fd, buffer, 8, 100));
    CALL(pread(fd, buffer, 8, -1));
    CALL(lseek(fd, 0, SEEK_CUR));
}

static void vectors(int fd) {
    char a[3], b[5], c[64];
    struct iovec out[] = {{"one ", 4}, {"", 0}, {"two ", 4}, {"three", 5}};
    struct iovec in[] = {{a, sizeof a}, {b, sizeof b}, {c, sizeof c}};
    CALL(lseek(fd, 0, SEEK_SET));
    CALL(writev(fd, out, 4));
    CALL(lseek(fd, 0, SEEK_SET));
    CALL(readv(fd, in, 3));
    printf("%.3s|%.5s|%.5s\n", a, b, c);
    CALL(pwritev(fd, out, 1, 20));
    CALL(preadv(fd, in, 2, 19));
    printf("%d %.2s|%.5s\n", a[0], a + 1, b);
    volatile int negative = -1, many = 2000;
    CALL(writev(fd, out, negative));
    CALL(writev(fd, out, 0));
    CALL(readv(fd, in, many));
}

static void holes(void) {
    int fd = OK(open("holes", O_RDWR | O_CREAT | O_TRUNC, 0644));
    CALL(pwrite(fd, "end", 3, 1 << 20));
    CALL(lseek(fd, 0, SEEK_END));
    show("pread", pread(fd, buffer, 3, 1 << 20));
    CALL(pread(fd, buffer, 4, 1000));
    SHOW(buffer[0] | buffer[1] | buffer[2] | buffer[3]);
    CALL(lseek(fd, 1 << 20, SEEK_DATA));
    CALL(lseek(fd, 1 << 20, SEEK_HOLE));
    CALL(lseek(fd, (1 << 20) + 3, SEEK_DATA));
    CALL(lseek(fd, (1 << 20) + 3, SEEK_HOLE));
    CALL(close(fd));
}

static void lengths(int fd) {
    CALL(ftruncate(fd, 5));
    CALL(lseek(fd, 0, SEEK_END));
    CALL(ftruncate(fd, 12));
    CALL(pread(fd, buffer, 20, 0));
    printf("%.5s %d%d\n", buffer, buffer[5], buffer[11]);
    CALL(truncate("data", 3));
    CALL(lseek(fd, 0, SEEK_END));
    CALL(truncate("data", -1));
    CALL(truncate("none", 1));
    CALL(truncate("/tmp", 1));
    CALL(fallocate(fd, 0, 0, 100));
    CALL(lseek(fd, 0, SEEK_END));
    CALL(fsync(fd));
    CALL(fdatasync(fd));
}

int main(void) {
    int fd = OK(open("data", O_RDWR | O_CREAT | O_EXCL, 0644));
    positions(fd);
    vectors(fd);
    lengths(fd);
    CALL(close(fd));
    holes();
    return 0;
}
