// Flags of open, and what they allow.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include "report.h"

static char buffer[64];

static void access_modes(void) {
    int fd = OK(open("f", O_WRONLY | O_CREAT, 0600));
    CALL(write(fd, "hello", 5));
    CALL(read(fd, buffer, 1));
    CALL(close(fd));
    fd = OK(open("f", O_RDONLY));
    CALL(write(fd, "x", 1));
    CALL(read(fd, buffer, 10));
    CALL(ftruncate(fd, 0));
    CALL(close(fd));
    CALL(close(fd));
    fd = OK(open("f", O_WRONLY | O_TRUNC));
    CALL(lseek(fd, 0, SEEK_END));
    CALL(close(fd));
}

static void errors(void) {
    OK(open("none", O_RDONLY));
    OK(open("f", O_CREAT | O_EXCL | O_RDWR, 0600));
    OK(open("f/x", O_RDONLY));
    OK(open("none/x", O_CREAT | O_RDWR, 0600));
    OK(open("/tmp", O_RDWR));
    OK(open("f", O_DIRECTORY));
    OK(open("", O_RDONLY));
    CALL(symlink("f", "link"));
    OK(open("link", O_NOFOLLOW));
    CALL(symlink("loop", "loop"));
    OK(open("loop", O_RDONLY));
    CALL(symlink("nowhere", "dangling"));
    OK(open("dangling", O_RDONLY));
    OK(open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0600));
    int fd = OK(open("dangling", O_CREAT | O_WRONLY, 0600));
    CALL(close(fd));
    CALL(access("nowhere", F_OK));
}

static void append(void) {
    int fd = OK(open("log", O_CREAT | O_RDWR | O_APPEND, 0600));
    CALL(write(fd, "one", 3));
    CALL(lseek(fd, 0, SEEK_SET));
    CALL(write(fd, "two", 3));
    CALL(lseek(fd, 0, SEEK_CUR));
    SHOW((fcntl(fd, F_GETFL) & O_APPEND) != 0);
    CALL(fcntl(fd, F_SETFL, 0));
    CALL(pwrite(fd, "O", 1, 0));
    CALL(pread(fd, buffer, 10, 0));
    printf("%.6s\n", buffer);
    CALL(close(fd));
}

static void unnamed(void) {
    struct stat st;
    int fd = OK(open(".", O_TMPFILE | O_RDWR, 0600));
    CALL(write(fd, "temp", 4));
    CALL(fstat(fd, &st));
    SHOW(st.st_nlink);
    SHOW(st.st_size);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CALL(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    CALL(fstat(fd, &st));
    SHOW(st.st_nlink);
    CALL(close(fd));
    CALL(access("named", F_OK));
    OK(open(".", O_TMPFILE | O_RDONLY, 0600));
}

static void paths(void) {
    int fd = OK(open("f", O_PATH));
    CALL(read(fd, buffer, 1));
    struct stat st;
    CALL(fstat(fd, &st));
    CALL(close(fd));
    int dir = OK(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    SHOW(fcntl(dir, F_GETFD));
    CALL(read(dir, buffer, 10));
    CALL(write(dir, buffer, 1));
    fd = OK(openat(dir, "f", O_RDWR));
    CALL(close(fd));
    OK(openat(999, "f", O_RDWR));
    fd = OK(openat(999, "/tmp/f", O_RDWR));
    OK(openat(fd, "f", O_RDWR));
    CALL(close(fd));
    CALL(close(dir));
    fd = OK(creat("created", 0640));
    SHOW(fcntl(fd, F_GETFL) & O_ACCMODE);
    CALL(close(fd));
}

int main(void) {
    access_modes();
    errors();
    append();
    unnamed();
    paths();
    return 0;
}
