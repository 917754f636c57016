// Pairs of sockets that keep messages apart, and those that do not.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "report.h"

static char buffer[300000];

static void polled(const char *when, int fd) {
    struct pollfd p = {fd, POLLIN | POLLOUT | POLLRDHUP, 0};
    poll(&p, 1, 0);
    printf("%s:%s%s%s%s%s\n", when, p.revents & POLLIN ? " in" : "", p.revents & POLLOUT ? " out" : "",
           p.revents & POLLRDHUP ? " rdhup" : "", p.revents & POLLHUP ? " hup" : "", p.revents & POLLERR ? " err" : "");
}

static void received(int fd, size_t room, int how) {
    struct iovec parts[2] = {{buffer, room / 2}, {buffer + 100, room - room / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_controllen = 5, .msg_control = buffer + 1000};
    memset(buffer, '.', 200);
    CALL(recvmsg(fd, &message, how));
    printf("  \"%.4s\" \"%.4s\" flags %#x, %zu\n", buffer, buffer + 100, message.msg_flags, message.msg_controllen);
}

static void messages(int type) {
    int s[2], value;
    socklen_t len = sizeof value;
    CALL(socketpair(AF_UNIX, type, 0, s));
    CALL(getsockopt(s[0], SOL_SOCKET, SO_TYPE, &value, &len));
    SHOW(value);
    CALL(getsockopt(s[0], SOL_SOCKET, SO_DOMAIN, &value, &len));
    SHOW(value);
    polled("empty", s[0]);
    CALL(send(s[0], "first", 5, 0));
    CALL(write(s[0], "second one", 10));
    CALL(send(s[0], "", 0, 0));
    CALL(send(s[0], "last", 4, MSG_EOR));
    CALL(ioctl(s[1], FIONREAD, &value));
    SHOW(value);
    polled("full", s[1]);
    CALL(recv(s[1], buffer, 100, MSG_PEEK));
    CALL(read(s[1], buffer, 3));
    printf("%.3s\n", buffer);
    CALL(recv(s[1], buffer, 4, MSG_TRUNC));
    CALL(recv(s[1], buffer, 100, 0));
    received(s[1], 4, 0);
    CALL(recv(s[1], buffer, 100, MSG_DONTWAIT));
    CALL(fcntl(s[1], F_SETFL, O_NONBLOCK));
    CALL(read(s[1], buffer, 100));
    polled("empty again", s[1]);

    struct iovec parts[2] = {{"scat", 4}, {"tered", 5}};
    CALL(writev(s[0], parts, 2));
    received(s[1], 6, 0);
    CALL(sendmsg(s[0], &(struct msghdr){.msg_iov = parts, .msg_iovlen = 2}, 0));
    received(s[1], 20, MSG_PEEK);
    received(s[1], 20, 0);
    CALL(read(s[1], buffer, 0));
    CALL(write(s[0], "message", 7));
    CALL(read(s[1], buffer, 0));
    CALL(recv(s[1], buffer, 0, 0));
    CALL(recv(s[1], buffer, 10, 0));
    CALL(send(s[0], buffer, sizeof buffer, 0));
    CALL(send(s[0], buffer, 100000, 0));
    CALL(recv(s[1], buffer, sizeof buffer, 0));
    CALL(send(s[0], (void *)8, 10, 0));
    CALL(send(s[0], "kept", 4, 0));
    CALL(lseek(s[0], 0, SEEK_SET));
    CALL(pread(s[1], buffer, 10, 0));
    CALL(recv(s[1], buffer, 10, 0));

    fcntl(s[0], F_SETFL, O_NONBLOCK);
    int sent = 0;
    while (send(s[0], buffer, 5000, 0) == 5000)
        sent++;
    printf("full: %d %s\n", sent > 2, strerrorname_np(errno));
    while (recv(s[1], buffer, 10000, 0) == 5000)
        sent--;
    SHOW(sent);

    CALL(send(s[1], "before", 6, 0));
    CALL(close(s[1]));
    polled("closed", s[0]);
    CALL(recv(s[0], buffer, 100, 0));
    CALL(recv(s[0], buffer, 100, 0));
    CALL(send(s[0], "x", 1, 0));
    close(s[0]);
}

static void shut(int type) {
    int s[2];
    char one[10];
    CALL(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, s));
    SHOW(fcntl(s[0], F_GETFD));
    CALL(send(s[0], "one", 3, 0));
    CALL(shutdown(s[0], SHUT_WR));
    CALL(send(s[0], "two", 3, MSG_NOSIGNAL));
    CALL(send(s[1], "back", 4, 0));
    CALL(recv(s[0], one, 10, 0));
    CALL(recv(s[1], one, 10, 0));
    CALL(recv(s[1], one, 10, 0));
    polled("after shutdown", s[1]);
    CALL(shutdown(s[0], 3));
    close(s[0]);
    close(s[1]);
}

// A parent and a child that wait for each other.
static void conversation(int type) {
    int s[2];
    char text[20];
    socketpair(AF_UNIX, type, 0, s);
    if (fork() == 0) {
        close(s[0]);
        for (int i = 0; i < 5; i++) {
            ssize_t len = recv(s[1], text, sizeof text, 0);
            for (int j = 0; j < len; j++)
                text[j] -= 32;
            send(s[1], text, len, 0);
        }
        _exit(0);
    }
    close(s[1]);
    for (int i = 0; i < 5; i++) {
        send(s[0], "question", 4 + i, 0);
        ssize_t len = recv(s[0], text, sizeof text, 0);
        printf("%.*s\n", (int)len, text);
    }
    wait(NULL);
    close(s[0]);
}

// More than fits: the sender waits for the receiver.
static void flood(int type) {
    int s[2];
    socketpair(AF_UNIX, type, 0, s);
    fflush(stdout);
    if (fork() == 0) {
        for (int i = 0; i < 300; i++)
            send(s[1], buffer, 4000, 0);
        _exit(0);
    }
    long total = 0;
    while (total < 300 * 4000)
        total += recv(s[0], buffer, 4000, 0);
    wait(NULL);
    SHOW(total);
    close(s[0]);
    close(s[1]);
}

int main(void) {
    int types[] = {SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM}, s[2];
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 2; i++) {
        printf("type %d\n", types[i]);
        messages(types[i]);
    }
    for (int i = 0; i < 3; i++) {
        printf("type %d\n", types[i]);
        shut(types[i]);
        conversation(types[i]);
        flood(types[i]);
    }
    CALL(socketpair(AF_UNIX, SOCK_RDM, 0, s));
    CALL(socketpair(AF_UNIX, 77, 0, s));
    return 0;
}
