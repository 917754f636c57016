// Runs itself again, with other arguments and another environment.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "report.h"

extern char **environ;

static int second(int count, char **arguments) {
    printf("argc %d:", count);
    for (int i = 1; i < count; i++)
        printf(" [%s]", arguments[i]);
    printf("\n");
    // QEMU reverses their order.
    printf("%s %s %d\n", getenv("A"), getenv("B"), environ[0] == NULL);
    CALL(fcntl(70, F_GETFD));
    CALL(fcntl(71, F_GETFD));
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    SHOW(now.sa_handler == SIG_DFL);
    sigaction(SIGUSR2, NULL, &now);
    SHOW(now.sa_handler == SIG_IGN);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    SHOW(sigismember(&mask, SIGHUP));
    sigset_t pending;
    sigpending(&pending);
    SHOW(sigismember(&pending, SIGHUP));
    return 17;
}

static void handler(int number) { (void)number; }

static void run(char *self, char **arguments, char **environment) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(1, 70);
        dup3(1, 71, O_CLOEXEC);
        signal(SIGUSR1, handler);
        signal(SIGUSR2, SIG_IGN);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGHUP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGHUP);
        execve(self, arguments, environment);
        perror("execve");
        _exit(99);
    }
    int status;
    waitpid(child, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
}

static void write_script(const char *name, const char *text) {
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0755);
    write(fd, text, strlen(text));
    close(fd);
}

static void errors(void) {
    char *arguments[] = {"x", NULL}, *environment[] = {NULL};
    CALL(execve("none", arguments, environment));
    CALL(execve("/tmp", arguments, environment));
    write_script("text", "just text\n");
    CALL(execve("text", arguments, environment));
    write_script("interpreter", "#!/no/such/interpreter\n");
    CALL(execve("interpreter", arguments, environment));
    write_script("elf", "\177ELFbroken");
    CALL(execve("elf", arguments, environment));
    write_script("empty", "");
    CALL(execve("empty", arguments, environment));
    CALL(chmod("text", 0644));
    CALL(execve("text", arguments, environment));
    CALL(execve("text/x", arguments, environment));
    CALL(execve("", arguments, environment));
}

static void script(void) {
    write_script("script", "#!/bin/sh -e\necho \"script $0 $1 $#\"\nexit 6\n");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        execl("./script", "name", "one argument", "two", NULL);
    int status;
    waitpid(child, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "second") == 0)
        return second(count, arguments);
    char *few[] = {"self", "second", "two words", "", NULL}, *one[] = {"A=1", "B=x y", NULL};
    run(arguments[0], few, one);
    char *none[] = {NULL};
    run(arguments[0], few, none);
    errors();
    script();
    return 0;
}
