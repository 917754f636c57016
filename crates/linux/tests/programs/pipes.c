// Pipes, named ones too, eventfd and socket pairs.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "report.h"

static char buffer[70000];

static void basics(void) {
    int p[2], count;
    CALL(pipe(p));
    CALL(write(p[1], "hello", 5));
    CALL(ioctl(p[0], FIONREAD, &count));
    SHOW(count);
    CALL(read(p[0], buffer, 3));
    CALL(read(p[0], buffer, 100));
    CALL(write(p[0], "x", 1));
    CALL(read(p[1], buffer, 1));
    CALL(lseek(p[0], 0, SEEK_CUR));
    CALL(pread(p[0], buffer, 1, 0));
    CALL(write(p[1], "last", 4));
    CALL(close(p[1]));
    CALL(read(p[0], buffer, 100));
    CALL(read(p[0], buffer, 100));
    CALL(close(p[0]));
}

static void nonblocking(void) {
    int p[2];
    CALL(pipe2(p, O_NONBLOCK | O_CLOEXEC));
    SHOW(fcntl(p[0], F_GETFD));
    CALL(read(p[0], buffer, 1));
    CALL(fcntl(p[1], F_GETPIPE_SZ));
    long total = 0, wrote;
    while ((wrote = write(p[1], buffer, 4096)) > 0)
        total += wrote;
    printf("full after %ld: %s\n", total, strerrorname_np(errno));
    CALL(read(p[0], buffer, 4096));
    CALL(write(p[1], buffer, 100));
    CALL(read(p[0], buffer, sizeof buffer));
    close(p[0]);
    signal(SIGPIPE, SIG_IGN);
    CALL(write(p[1], "x", 1));
    close(p[1]);
    CALL(pipe2(p, 0x12345));
}

static void named(void) {
    CALL(mkfifo("fifo", 0600));
    CALL(mkfifo("fifo", 0600));
    OK(open("fifo", O_WRONLY | O_NONBLOCK));
    int r = OK(open("fifo", O_RDONLY | O_NONBLOCK));
    int w = OK(open("fifo", O_WRONLY));
    CALL(read(r, buffer, 1));
    CALL(write(w, "named", 5));
    CALL(read(r, buffer, 10));
    close(w);
    CALL(read(r, buffer, 10));
    close(r);
}

static void events(void) {
    uint64_t value = 5;
    int e = OK(eventfd(3, EFD_NONBLOCK));
    CALL(write(e, &value, 8));
    CALL(read(e, &value, 8));
    SHOW(value);
    CALL(read(e, &value, 8));
    CALL(read(e, &value, 4));
    value = UINT64_MAX;
    CALL(write(e, &value, 8));
    value = UINT64_MAX - 1;
    CALL(write(e, &value, 8));
    value = 1;
    CALL(write(e, &value, 8));
    close(e);
    e = OK(eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK));
    CALL(read(e, &value, 8));
    SHOW(value);
    CALL(read(e, &value, 8));
    CALL(read(e, &value, 8));
    close(e);
}

static void sockets(void) {
    int s[2];
    CALL(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CALL(write(s[0], "ping", 4));
    CALL(read(s[1], buffer, 10));
    CALL(send(s[1], "pong", 4, 0));
    CALL(recv(s[0], buffer, 10, MSG_PEEK));
    CALL(recv(s[0], buffer, 2, 0));
    CALL(recv(s[0], buffer, 10, 0));
    CALL(recv(s[0], buffer, 10, MSG_DONTWAIT));
    CALL(shutdown(s[0], SHUT_WR));
    CALL(read(s[1], buffer, 10));
    close(s[0]);
    close(s[1]);
}

static void copying(void) {
    int p[2], fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
    pipe(p);
    write(p[1], "through the pipe", 16);
    CALL(splice(p[0], NULL, fd, NULL, 7, 0));
    CALL(read(p[0], buffer, 100));
    CALL(lseek(fd, 0, SEEK_SET));
    CALL(read(fd, buffer, 100));
    printf("%.7s\n", buffer);
}

int main(void) {
    basics();
    nonblocking();
    named();
    events();
    sockets();
    copying();
    return 0;
}
