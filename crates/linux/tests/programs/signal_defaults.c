// What signals do to a process that has no handler, as its parent sees it.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "report.h"

static void kill_child(int number) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        raise(number);
        _exit(33);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%s: ", sigabbrev_np(number));
    if (WIFSIGNALED(status))
        printf("killed by %s\n", sigabbrev_np(WTERMSIG(status)));
    else
        printf("exited with %d\n", WEXITSTATUS(status));
}

static void stop_and_continue(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(4);
    }
    int status;
    SHOW(waitpid(child, &status, WUNTRACED) == child);
    printf("stopped %d by %s\n", WIFSTOPPED(status), sigabbrev_np(WSTOPSIG(status)));
    SHOW(waitpid(child, &status, WNOHANG | WUNTRACED));
    CALL(kill(child, SIGCONT));
    SHOW(waitpid(child, &status, WCONTINUED) == child);
    if (WIFCONTINUED(status))
        waitpid(child, &status, 0);
    printf("then exited with %d\n", WEXITSTATUS(status));
}

static void inherited(void) {
    signal(SIGUSR1, SIG_IGN);
    kill_child(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
    kill_child(SIGUSR1);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill_child(SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        abort();
    int status;
    waitpid(child, &status, 0);
    printf("abort: %s\n", sigabbrev_np(WTERMSIG(status)));
}

int main(void) {
    // Their messages from QEMU would be in the way.
    close(2);
    int numbers[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,   SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,
                     SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2,  SIGPIPE, SIGALRM, SIGTERM, SIGCHLD,
                     SIGCONT, SIGURG,  SIGXCPU, SIGWINCH, SIGIO,   SIGPWR,  SIGSYS};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        kill_child(numbers[i]);
    stop_and_continue();
    inherited();
    return 0;
}
