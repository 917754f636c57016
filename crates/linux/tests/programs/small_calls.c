// Calls with little to them: prctl, getrandom, terminals that are none, and numbers that are no call.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <termios.h>
#include "report.h"

static void names(void) {
    char name[17] = "";
    CALL(prctl(PR_SET_NAME, "a name that is too long"));
    CALL(prctl(PR_GET_NAME, name));
    printf("%s\n", name);
    int fd = open("/proc/self/comm", O_RDONLY);
    char text[32] = "";
    read(fd, text, 31);
    printf("%s", text);
    close(fd);
}

static void process_controls(void) {
    int number = -1;
    CALL(prctl(PR_GET_DUMPABLE));
    CALL(prctl(PR_SET_PDEATHSIG, SIGTERM));
    CALL(prctl(PR_GET_PDEATHSIG, &number));
    SHOW(number);
    CALL(prctl(PR_SET_PDEATHSIG, 0));
    CALL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CALL(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    // PR_SET_CHILD_SUBREAPER is left out: QEMU 7.2 does not know it.
}

static void random_bytes(void) {
    unsigned char a[64] = {0}, b[64] = {0};
    CALL(getrandom(a, sizeof a, 0));
    CALL(getrandom(b, sizeof b, GRND_NONBLOCK));
    SHOW(memcmp(a, b, sizeof a) != 0);
    CALL(getrandom(a, 0, 0));
    CALL(getrandom(a, 1, 0x1234));
    CALL(getentropy(a, 16));
    volatile size_t many = 300;
    CALL(getentropy(a, many));
}

static void terminals(void) {
    struct termios termios;
    struct winsize size;
    int p[2], fd = open("f", O_CREAT | O_RDWR, 0600), null = open("/dev/null", O_RDWR);
    pipe(p);
    CALL(isatty(fd));
    SHOW(errno == ENOTTY);
    CALL(tcgetattr(p[0], &termios));
    CALL(tcgetattr(fd, &termios));
    CALL(ioctl(fd, TIOCGWINSZ, &size));
    CALL(ioctl(null, TCGETS, &termios));
    CALL(ioctl(fd, TIOCGPGRP, &size));
    CALL(isatty(99));
    SHOW(errno == EBADF);
    SHOW(ttyname(fd) == NULL);
    // An unknown ioctl is left out: QEMU has another error.
}

static void devices(void) {
    char text[8] = "xxxxxxx";
    int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR),
        full = open("/dev/full", O_RDWR), random = open("/dev/urandom", O_RDONLY);
    CALL(read(null, text, 8));
    CALL(write(null, text, 8));
    CALL(read(zero, text, 4));
    printf("%d%d%c\n", text[0], text[3], text[4]);
    CALL(write(zero, text, 8));
    CALL(write(full, text, 8));
    CALL(read(random, text, 8));
    CALL(lseek(null, 5, SEEK_SET));
}

static void priorities(void) {
    CALL(setpriority(PRIO_PROCESS, 0, 5));
    CALL(getpriority(PRIO_PROCESS, 0));
    CALL(nice(50));
    CALL(getpriority(PRIO_PROCESS, getpid()));
    CALL(setpriority(PRIO_PROCESS, 0x7fffffff, 5));
    CALL(setpriority(7, 0, 5));
    CALL(getpriority(PRIO_PGRP, 0x7fffffff));
}

int main(void) {
    names();
    process_controls();
    random_bytes();
    terminals();
    devices();
    priorities();
    CALL(syscall(9999));
    CALL(syscall(-1));
    CALL(syscall(SYS_set_tid_address, NULL) == getpid());
    return 0;
}
