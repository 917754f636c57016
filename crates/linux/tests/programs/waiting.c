// poll, select, epoll and timerfd.
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <time.h>
#include "report.h"

static int p[2];

static void polls(void) {
    struct pollfd fds[3] = {{p[0], POLLIN, 0}, {p[1], POLLOUT, 0}, {-1, POLLIN, 7}};
    CALL(poll(fds, 3, 0));
    printf("%d %d %d\n", fds[0].revents, fds[1].revents, fds[2].revents);
    CALL(poll(fds, 1, 20));
    write(p[1], "x", 1);
    CALL(poll(fds, 2, -1));
    printf("%d %d\n", fds[0].revents, fds[1].revents);
    struct timespec short_time = {0, 1000000}, bad = {0, -1};
    CALL(ppoll(fds, 1, &short_time, NULL));
    CALL(ppoll(fds, 1, &bad, NULL));
    CALL(poll(NULL, 0, 5));
}

static void selects(void) {
    fd_set in, out;
    struct timeval tv = {0, 10000};
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(p[0], &in);
    FD_SET(p[1], &out);
    CALL(select(p[1] + 1, &in, &out, NULL, &tv));
    printf("%d %d\n", !!FD_ISSET(p[0], &in), !!FD_ISSET(p[1], &out));
    char c;
    read(p[0], &c, 1);
    FD_SET(p[0], &in);
    CALL(select(p[0] + 1, &in, NULL, NULL, &tv));
    printf("%d\n", !!FD_ISSET(p[0], &in));
    CALL(select(-1, NULL, NULL, NULL, &tv));
}

static void epolls(void) {
    int e = OK(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event event = {EPOLLIN, {.u64 = 11}}, got[4];
    CALL(epoll_ctl(e, EPOLL_CTL_ADD, p[0], &event));
    CALL(epoll_ctl(e, EPOLL_CTL_ADD, p[0], &event));
    CALL(epoll_ctl(e, EPOLL_CTL_ADD, e, &event));
    CALL(epoll_ctl(e, EPOLL_CTL_ADD, 999, &event));
    CALL(epoll_ctl(e, EPOLL_CTL_MOD, p[1], &event));
    CALL(epoll_wait(e, got, 4, 10));
    write(p[1], "ab", 2);
    CALL(epoll_wait(e, got, 4, 1000));
    printf("%x %d\n", got[0].events, (int)got[0].data.u64);
    CALL(epoll_wait(e, got, 4, 0));
    event = (struct epoll_event){EPOLLIN | EPOLLET, {.u64 = 12}};
    CALL(epoll_ctl(e, EPOLL_CTL_MOD, p[0], &event));
    CALL(epoll_wait(e, got, 4, 0));
    CALL(epoll_wait(e, got, 4, 0));
    write(p[1], "c", 1);
    CALL(epoll_wait(e, got, 4, 0));
    event.events = EPOLLIN | EPOLLONESHOT;
    CALL(epoll_ctl(e, EPOLL_CTL_MOD, p[0], &event));
    CALL(epoll_wait(e, got, 4, 0));
    CALL(epoll_wait(e, got, 4, 0));
    CALL(epoll_ctl(e, EPOLL_CTL_DEL, p[0], NULL));
    CALL(epoll_ctl(e, EPOLL_CTL_DEL, p[0], NULL));
    CALL(epoll_wait(e, got, 0, 0));
    close(e);
}

static void hang_up(void) {
    int e = epoll_create1(0), q[2];
    pipe(q);
    struct epoll_event event = {EPOLLIN, {.u64 = 1}}, got;
    epoll_ctl(e, EPOLL_CTL_ADD, q[0], &event);
    close(q[1]);
    CALL(epoll_wait(e, &got, 1, 1000));
    printf("%x\n", got.events);
    struct pollfd f = {q[0], POLLIN, 0};
    CALL(poll(&f, 1, 0));
    printf("%x\n", f.revents);
    close(q[0]);
    CALL(epoll_wait(e, &got, 1, 0));
    close(e);
}

static void timers(void) {
    int t = OK(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
    uint64_t count = 0;
    CALL(read(t, &count, 8));
    struct itimerspec spec = {{0, 0}, {0, 5000000}}, old;
    CALL(timerfd_settime(t, 0, &spec, NULL));
    struct pollfd f = {t, POLLIN, 0};
    CALL(poll(&f, 1, 5000));
    CALL(read(t, &count, 8));
    SHOW(count);
    CALL(timerfd_gettime(t, &old));
    SHOW(old.it_value.tv_nsec);
    spec.it_interval.tv_nsec = spec.it_value.tv_nsec = 2000000;
    CALL(timerfd_settime(t, 0, &spec, NULL));
    usleep(30000);
    CALL(read(t, &count, 8));
    SHOW(count > 3);
    close(t);
}

int main(void) {
    pipe(p);
    polls();
    selects();
    epolls();
    hang_up();
    timers();
    return 0;
}
