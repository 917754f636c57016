// Calls that signals interrupt, with and without SA_RESTART.
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include "report.h"

static int p[2];
static volatile sig_atomic_t count;

// The third signal writes, so that a restarted read ends.
static void handler(int number) {
    (void)number;
    if (++count == 3)
        write(p[1], "x", 1);
}

static void arm(int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 5000}, {0, 5000}};
    count = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void disarm(void) {
    struct itimerval timer = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(void) {
    char c;
    pipe(p);
    arm(0);
    count = -1000;
    CALL(read(p[0], &c, 1));
    disarm();
    arm(SA_RESTART);
    CALL(read(p[0], &c, 1));
    disarm();
    SHOW(count >= 3);
    // These are interrupted in any case.
    arm(SA_RESTART);
    struct pollfd f = {p[0], POLLIN, 0};
    count = -1000;
    CALL(poll(&f, 1, 5000));
    struct timespec time = {5, 0};
    CALL(nanosleep(&time, NULL));
    disarm();
    arm(0);
    count = -1000;
    pid_t child = fork();
    if (child == 0) {
        disarm();
        sleep(100);
        _exit(0);
    }
    CALL(wait(NULL));
    disarm();
    kill(child, SIGKILL);
    arm(SA_RESTART);
    count = -1000;
    int status;
    SHOW(waitpid(child, &status, 0) == child);
    SHOW(WTERMSIG(status));
    return 0;
}
