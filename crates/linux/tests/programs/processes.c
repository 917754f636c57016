// fork, vfork, clone, wait and exit.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "report.h"

static void describe(const char *what, int status) {
    if (WIFEXITED(status))
        printf("%s: exited with %d\n", what, WEXITSTATUS(status));
    else
        printf("%s: killed by %s\n", what, sigabbrev_np(WTERMSIG(status)));
    fflush(stdout);
}

static void codes(void) {
    int values[] = {0, 1, 42, 255, 256, -1};
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(values[i]);
        int status;
        waitpid(child, &status, 0);
        describe("child", status);
    }
}

static void memory(void) {
    static int own = 1;
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        own = 2;
        *shared = 3;
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("own %d, shared %d\n", own, *shared);
    child = vfork();
    if (child == 0) {
        own = 5;
        _exit(0);
    }
    waitpid(child, NULL, 0);
    // vfork may share memory, and need not.
    SHOW(own == 5 || own == 1);
}

static void files(void) {
    char text[16];
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(fd, "0123456789", 10);
    lseek(fd, 2, SEEK_SET);
    pid_t child = fork();
    if (child == 0) {
        read(fd, text, 3);
        close(fd);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    CALL(lseek(fd, 0, SEEK_CUR));
    int p[2];
    pipe(p);
    if ((child = fork()) == 0) {
        close(p[0]);
        for (int i = 0; i < 3; i++)
            dprintf(p[1], "part %d.", i);
        _exit(0);
    }
    close(p[1]);
    char all[64] = "";
    long length;
    while ((length = read(p[0], text, 5)) > 0)
        strncat(all, text, length);
    printf("%s\n", all);
    waitpid(child, NULL, 0);
}

static void waits(void) {
    int status;
    siginfo_t info;
    CALL(wait(&status));
    CALL(waitpid(-1, &status, WNOHANG));
    CALL(waitpid(0x3ffffff, &status, 0));
    pid_t child = fork();
    if (child == 0) {
        usleep(20000);
        _exit(9);
    }
    CALL(waitpid(child, &status, WNOHANG));
    CALL(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
    printf("code %d, status %d, pid %s\n", info.si_code == CLD_EXITED, info.si_status,
           info.si_pid == child ? "right" : "wrong");
    // It stays a zombie until someone waits for it.
    CALL(kill(child, 0));
    SHOW(waitpid(child, &status, 0) == child);
    CALL(kill(child, 0));
    CALL(waitid(P_PID, child, &info, WEXITED));
    CALL(waitid(P_ALL, 0, &info, 0));
    CALL(waitpid(child, &status, 0x1234));
}

static void order(void) {
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        if ((children[i] = fork()) == 0)
            _exit(i + 10);
    for (int i = 3; i >= 0; i--) {
        int status;
        waitpid(children[i], &status, 0);
        describe("in reverse", status);
    }
}

static void orphans(void) {
    int p[2];
    pipe(p);
    if (fork() == 0) {
        pid_t parent = getpid();
        if (fork() == 0) {
            while (getppid() == parent)
                usleep(1000);
            write(p[1], "adopted", 7);
            _exit(0);
        }
        _exit(0);
    }
    wait(NULL);
    char text[16] = "";
    close(p[1]);
    read(p[0], text, 15);
    printf("%s\n", text);
}

static int cloned(void *argument) {
    *(int *)argument = 7;
    return 21;
}

static void clones(void) {
    static char stack[65536];
    int value = 1, status;
    pid_t child = clone(cloned, stack + sizeof stack, SIGCHLD, &value);
    waitpid(child, &status, 0);
    describe("clone", status);
    SHOW(value);
    CALL(clone(cloned, stack + sizeof stack, CLONE_THREAD | SIGCHLD, &value));
}

static void groups(void) {
    SHOW(getpgrp() == getpgid(0));
    pid_t child = fork();
    if (child == 0) {
        CALL(setpgid(0, 0));
        SHOW(getpgrp() == getpid());
        CALL(setsid());
        pid_t grandchild = fork();
        if (grandchild == 0) {
            SHOW(getpgrp() == getppid());
            SHOW(setsid() == getpid());
            SHOW(getsid(0) == getpid() && getpgrp() == getpid());
            _exit(0);
        }
        waitpid(grandchild, NULL, 0);
        pause();
    }
    while (getpgid(child) != child)
        usleep(1000);
    usleep(50000);
    CALL(kill(-child, SIGTERM));
    int status;
    waitpid(-child, &status, 0);
    describe("group", status);
    CALL(getpgid(0x3ffffff));
    CALL(setpgid(0x3ffffff, 0));
}

static void at_exit(void) { printf("at exit\n"); }

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    codes();
    memory();
    files();
    waits();
    order();
    orphans();
    clones();
    groups();
    atexit(at_exit);
    exit(3);
}
