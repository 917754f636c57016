// Descriptors and credentials that go through pairs of sockets.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "report.h"

static union {
    struct cmsghdr header;
    char bytes[4096];
} control;

static char buffer[100];

static struct msghdr message(const char *text, size_t control_len) {
    static struct iovec part;
    part = (struct iovec){(char *)text, strlen(text)};
    return (struct msghdr){.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = control_len};
}

// Sends a text with descriptors.
static long send_files(int to, const char *text, const int *files, int count) {
    struct msghdr m = message(text, CMSG_SPACE(count * sizeof(int)));
    control.header = (struct cmsghdr){CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), files, count * sizeof(int));
    return sendmsg(to, &m, MSG_NOSIGNAL);
}

// Receives up to so many bytes, and shows them with all that comes along. Descriptors are read from and closed.
static void receive(int from, size_t room, size_t control_room, int how) {
    struct iovec part = {buffer, room};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = control_room};
    memset(&control, 0, sizeof control);
    errno = 0;
    long len = recvmsg(from, &m, how);
    printf("received %ld %s \"%.*s\" flags %#x, %zu:", len, len < 0 ? strerrorname_np(errno) : "",
           len < 0 ? 0 : (int)len, buffer, m.msg_flags & ~MSG_CMSG_CLOEXEC, len < 0 ? 0 : m.msg_controllen);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); len >= 0 && c; c = CMSG_NXTHDR(&m, c)) {
        size_t size = c->cmsg_len - CMSG_LEN(0);
        if (c->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(c), sizeof who);
            printf(" from %s %d %d", who.pid == getpid() ? "myself" : who.pid ? "another" : "nobody", who.uid, who.gid);
            continue;
        }
        for (size_t i = 0; i < size / sizeof(int); i++) {
            int fd;
            char text[9] = "";
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            long got = pread(fd, text, 8, 0);
            printf(" %s%s", got < 0 ? strerrorname_np(errno) : text, fcntl(fd, F_GETFD) ? " (closes)" : "");
            close(fd);
        }
    }
    printf("\n");
    fflush(stdout);
}

static int file(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(fd, name, strlen(name));
    return fd;
}

// Receives descriptors where there is no number for all of them, and closes those that there are.
static void receive_some(int from) {
    struct rlimit old, limit;
    getrlimit(RLIMIT_NOFILE, &old);
    limit = (struct rlimit){50, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
    struct iovec part = {buffer, sizeof buffer};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    CALL(recvmsg(from, &m, 0));
    setrlimit(RLIMIT_NOFILE, &old);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    printf("%d %#x\n", count > 30 && count < 50, m.msg_flags);
    for (int i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        close(fd);
    }
}

static void pass(int type) {
    int s[2], ends[2];
    printf("type %d\n", type);
    socketpair(AF_UNIX, type, 0, s);
    int files[] = {file("one"), file("two"), file("three")};
    CALL(send_files(s[0], "hello", files, 1));
    receive(s[1], 100, sizeof control, 0);
    CALL(send_files(s[0], "several", files, 3));
    receive(s[1], 100, sizeof control, MSG_PEEK);
    receive(s[1], 100, sizeof control, MSG_CMSG_CLOEXEC);
    // It stays open while it is under way.
    CALL(send_files(s[0], "closed", files + 1, 1));
    close(files[1]);
    receive(s[1], 100, sizeof control, 0);
    // Too little room, or none.
    CALL(send_files(s[0], "room", files, 1));
    receive(s[1], 100, 0, 0);
    CALL(send_files(s[0], "plain", files, 1));
    CALL(recv(s[1], buffer, 100, 0));
    pipe(ends);
    CALL(send_files(s[0], "pipe", ends + 1, 1));
    close(ends[1]);
    CALL(read(s[1], buffer, 100));
    // It was closed when it was not received.
    CALL(read(ends[0], buffer, 100));
    close(ends[0]);
    // Wrong ones.
    CALL(send_files(s[0], "bad", (int[]){files[0], 77}, 2));
    CALL(send_files(s[0], "closed", files + 1, 1));
    int many[300];
    for (int i = 0; i < 300; i++)
        many[i] = files[0];
    CALL(send_files(s[0], "most", many, 253));
    receive_some(s[1]);
    CALL(send_files(s[0], "too many", many, 254));
    CALL(recv(s[1], buffer, 100, MSG_DONTWAIT));
    close(files[0]);
    close(files[2]);
    close(s[0]);
    close(s[1]);
}

// What came with a stream ends what is received at once.
static void stream(void) {
    int s[2], one = file("one"), two = file("two");
    socketpair(AF_UNIX, SOCK_STREAM, 0, s);
    send(s[0], "before ", 7, 0);
    send_files(s[0], "with one ", &one, 1);
    send(s[0], "between ", 8, 0);
    send_files(s[0], "with two ", &two, 1);
    send(s[0], "after", 5, 0);
    receive(s[1], 3, sizeof control, 0);
    receive(s[1], 100, sizeof control, MSG_PEEK);
    receive(s[1], 9, sizeof control, 0);
    receive(s[1], 100, sizeof control, 0);
    receive(s[1], 100, sizeof control, 0);
    send_files(s[0], "x", &one, 1);
    CALL(recv(s[1], buffer, 0, 0));
    shutdown(s[0], SHUT_WR);
    receive(s[1], 100, sizeof control, 0);
    receive(s[1], 100, sizeof control, 0);
    close(s[0]);
    close(s[1]);
    // More than there is room for, received by another process.
    static char much[300000];
    socketpair(AF_UNIX, SOCK_STREAM, 0, s);
    fflush(stdout);
    if (fork() == 0) {
        struct iovec part = {much, sizeof much};
        struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
        m.msg_controllen = CMSG_SPACE(sizeof(int));
        control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &one, sizeof one);
        memset(much, 'm', sizeof much);
        _exit(sendmsg(s[0], &m, 0) != sizeof much);
    }
    receive(s[1], 5, sizeof control, MSG_PEEK);
    receive(s[1], 5, sizeof control, 0);
    CALL(recv(s[1], much, sizeof much - 5, MSG_WAITALL));
    int status;
    wait(&status);
    SHOW(status);
    close(s[0]);
    close(s[1]);
}

static void credentials(int type) {
    int s[2], on = 1, value = 7;
    struct ucred who;
    socklen_t len = sizeof who;
    socketpair(AF_UNIX, type, 0, s);
    CALL(getsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &who, &len));
    printf("%d %d %d %d\n", len, who.pid == getpid(), who.uid, who.gid);
    send(s[0], "unknown", 7, 0);
    CALL(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    len = sizeof value;
    CALL(getsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &value, &len));
    SHOW(value);
    receive(s[1], 100, sizeof control, 0);
    send(s[0], "known", 5, 0);
    receive(s[1], 100, sizeof control, 0);
    send(s[0], "no room", 7, 0);
    receive(s[1], 100, 0, 0);
    struct msghdr m = message("told", CMSG_SPACE(sizeof who));
    control.header = (struct cmsghdr){CMSG_LEN(sizeof who), SOL_SOCKET, SCM_CREDENTIALS};
    who = (struct ucred){getpid(), 0, 0};
    memcpy(CMSG_DATA(&control.header), &who, sizeof who);
    CALL(sendmsg(s[0], &m, 0));
    receive(s[1], 100, sizeof control, 0);
    // Those of different senders stay apart.
    send(s[0], "mine", 4, 0);
    if (fork() == 0) {
        send(s[0], "child's", 7, 0);
        _exit(0);
    }
    wait(NULL);
    int one = file("one");
    send_files(s[0], "both", &one, 1);
    receive(s[1], 100, sizeof control, 0);
    receive(s[1], 100, sizeof control, 0);
    receive(s[1], 100, sizeof control, 0);
    close(one);
    close(s[0]);
    close(s[1]);
}

// Sockets that are in each other's messages, and that nobody can receive any more, are closed.
static void cycles(void) {
    int a[2], b[2], ends[2];
    pipe(ends);
    socketpair(AF_UNIX, SOCK_STREAM, 0, a);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, b);
    send_files(a[0], "b", b, 2);
    send_files(b[0], "a", a, 2);
    send_files(b[1], "pipe", ends + 1, 1);
    close(ends[1]);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
    // Linux looks for them when a socket is closed.
    socketpair(AF_UNIX, SOCK_STREAM, 0, a);
    close(a[0]);
    close(a[1]);
    CALL(read(ends[0], buffer, 1));
    close(ends[0]);
    // One that is its own message, but can still be received.
    socketpair(AF_UNIX, SOCK_DGRAM, 0, a);
    CALL(send_files(a[0], "myself", a + 1, 1));
    int kept = dup(a[1]);
    close(a[1]);
    receive(kept, 100, sizeof control, 0);
    close(kept);
    close(a[0]);
}

// A child gets a descriptor that it could not open.
static void to_child(void) {
    int s[2], fd = file("gone");
    unlink("gone");
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s);
    fflush(stdout);
    if (fork() == 0) {
        close(fd);
        close(s[0]);
        receive(s[1], 100, sizeof control, 0);
        _exit(0);
    }
    close(s[1]);
    send_files(s[0], "take it", &fd, 1);
    close(fd);
    wait(NULL);
    close(s[0]);
}

int main(void) {
    pass(SOCK_STREAM);
    pass(SOCK_DGRAM);
    stream();
    credentials(SOCK_STREAM);
    credentials(SOCK_SEQPACKET);
    cycles();
    to_child();
    return 0;
}
