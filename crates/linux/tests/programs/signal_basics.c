// Handlers, masks and pending signals.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include "report.h"

static volatile sig_atomic_t depth;

static void handler(int number) {
    depth++;
    printf("handler %s at depth %d\n", sigabbrev_np(number), (int)depth);
    if (number == SIGUSR1 && depth == 1)
        raise(SIGUSR2);
    if (number == SIGHUP && depth < 3)
        raise(SIGHUP);
    depth--;
}

static void details(int number, siginfo_t *info, void *context) {
    (void)context;
    printf("%s code %d, pid %s, value %d\n", number == SIGRTMIN ? "RTMIN" : sigabbrev_np(number),
           info->si_code, info->si_pid == getpid() ? "ours" : "another",
           info->si_code == SI_QUEUE ? info->si_value.sival_int : 0);
}

static void set(int number, void (*function)(int), int flags) {
    struct sigaction action = {.sa_handler = function, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    CALL(sigaction(number, &action, NULL));
}

static int pending(int number) {
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, number);
}

static void masks(void) {
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGKILL);
    CALL(sigprocmask(SIG_BLOCK, &set, &old));
    SHOW(sigismember(&old, SIGUSR1));
    CALL(sigprocmask(SIG_BLOCK, NULL, &old));
    SHOW(sigismember(&old, SIGUSR1));
    SHOW(sigismember(&old, SIGKILL));
    SHOW(pending(SIGUSR1));
    CALL(raise(SIGUSR1));
    CALL(raise(SIGUSR1));
    SHOW(pending(SIGUSR1));
    printf("unblocking\n");
    CALL(sigprocmask(SIG_UNBLOCK, &set, NULL));
    SHOW(pending(SIGUSR1));
    CALL(sigprocmask(99, &set, NULL));
    // A signal that is ignored does not stay pending.
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_IGN);
    SHOW(pending(SIGUSR1));
    signal(SIGUSR1, handler);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void flags(void) {
    struct sigaction now;
    set(SIGHUP, handler, SA_NODEFER);
    raise(SIGHUP);
    set(SIGINT, handler, SA_RESETHAND);
    raise(SIGINT);
    sigaction(SIGINT, NULL, &now);
    SHOW(now.sa_handler == SIG_DFL);
    sigaction(SIGHUP, NULL, &now);
    SHOW(now.sa_handler == handler && now.sa_flags & SA_NODEFER);
    set(SIGKILL, handler, 0);
    set(SIGSTOP, handler, 0);
    CALL(sigaction(99, NULL, &now));
}

static void information(void) {
    struct sigaction action = {.sa_sigaction = details, .sa_flags = SA_SIGINFO};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    CALL(kill(getpid(), SIGTERM));
    CALL(raise(SIGTERM));
    CALL(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 123}));
    // Real-time signals queue.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 1; i <= 3; i++)
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
    printf("unblocking\n");
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CALL(syscall(SYS_tgkill, getpid(), getpid(), SIGTERM));
    CALL(syscall(SYS_tgkill, getpid(), -5, SIGTERM));
    CALL(kill(getpid(), 0));
    CALL(kill(getpid(), 99));
    CALL(kill(0x3ffffff, SIGTERM));
}

static void synchronous(void) {
    sigset_t set, empty;
    siginfo_t info;
    struct timespec zero = {0, 0}, little = {0, 5000000};
    sigemptyset(&set), sigemptyset(&empty);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    CALL(sigtimedwait(&set, &info, &zero));
    CALL(sigtimedwait(&set, &info, &little));
    raise(SIGUSR2);
    SHOW(sigwaitinfo(&set, &info) == SIGUSR2);
    int number = 0;
    raise(SIGUSR2);
    RETURNS(sigwait(&set, &number));
    SHOW(number == SIGUSR2);
    raise(SIGUSR2);
    printf("suspending\n");
    CALL(sigsuspend(&empty));
    CALL(syscall(SYS_rt_sigsuspend, &empty, 4));
    CALL(syscall(SYS_rt_sigtimedwait, &empty, NULL, NULL, 16));
    CALL(syscall(SYS_rt_sigpending, &empty, 16));
    SHOW(pending(SIGUSR2));
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    set(SIGUSR1, handler, 0);
    set(SIGUSR2, handler, 0);
    CALL(raise(SIGUSR1));
    masks();
    flags();
    information();
    synchronous();
    return 0;
}
