// Who and where we are. Users and limits differ between systems; what must hold of them does not.
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include "report.h"

static void users(void) {
    uid_t r, e, s;
    gid_t groups[256];
    SHOW(getuid() == geteuid());
    SHOW(getgid() == getegid());
    CALL(getresuid(&r, &e, &s));
    SHOW(r == getuid() && e == r && s == r);
    SHOW(getgroups(0, NULL) >= 0);
    SHOW(getgroups(0, NULL) == getgroups(256, groups));
    volatile int negative = -1;
    CALL(getgroups(negative, groups));
    CALL(setuid(getuid()));
    CALL(setgid(getgid()));
    CALL(setreuid(-1, -1));
    CALL(setresuid(-1, -1, -1));
    SHOW(getpid() == syscall(SYS_gettid));
    SHOW(getppid() != getpid());
}

static void limits(void) {
    struct rlimit limit, old;
    int resources[] = {RLIMIT_STACK, RLIMIT_NOFILE, RLIMIT_CORE, RLIMIT_AS, RLIMIT_DATA};
    for (int i = 0; i < 5; i++) {
        CALL(getrlimit(resources[i], &limit));
        SHOW(limit.rlim_cur <= limit.rlim_max);
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 100;
    CALL(prlimit(0, RLIMIT_NOFILE, &limit, &old));
    CALL(prlimit(0, RLIMIT_NOFILE, NULL, &limit));
    SHOW(limit.rlim_cur);
    limit.rlim_cur = limit.rlim_max + 1;
    CALL(limit.rlim_max == RLIM_INFINITY ? (errno = EINVAL, -1) : setrlimit(RLIMIT_NOFILE, &limit));
    CALL(getrlimit(99, &limit));
    CALL(prlimit(0x3ffffff, RLIMIT_NOFILE, NULL, &limit));
    struct rusage usage;
    CALL(getrusage(RUSAGE_SELF, &usage));
    SHOW(usage.ru_maxrss > 0);
    CALL(getrusage(RUSAGE_CHILDREN, &usage));
    SHOW(usage.ru_utime.tv_sec);
    CALL(getrusage(99, &usage));
}

static void machine(void) {
    struct utsname name;
    CALL(uname(&name));
    printf("%s %s\n", name.sysname, name.machine);
    SHOW(strlen(name.release) > 0 && strlen(name.nodename) > 0);
    int major = atoi(name.release);
    SHOW(major >= 4);
    struct sysinfo info;
    CALL(sysinfo(&info));
    SHOW(info.uptime > 0 && info.totalram > 0 && info.mem_unit > 0);
    SHOW(info.freeram <= info.totalram);
    SHOW(sysconf(_SC_PAGESIZE));
    SHOW(sysconf(_SC_NPROCESSORS_ONLN) >= 1);
    SHOW(sysconf(_SC_CLK_TCK));
    SHOW(getpagesize());
    cpu_set_t cpus;
    SHOW(sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) >= 1);
    CALL(sched_yield());
}

static void start(void) {
    SHOW(getauxval(AT_PAGESZ));
    SHOW(getauxval(AT_CLKTCK));
    SHOW(getauxval(AT_PHDR) != 0 && getauxval(AT_PHENT) == 56 && getauxval(AT_PHNUM) > 1);
    SHOW(getauxval(AT_ENTRY) != 0);
    SHOW(getauxval(AT_RANDOM) != 0);
    SHOW(getauxval(AT_UID) == getuid());
    SHOW(getauxval(AT_SECURE));
    printf("%s\n", (char *)getauxval(AT_PLATFORM));
    SHOW(getauxval(AT_HWCAP) & 3);
}

int main(void) {
    users();
    limits();
    machine();
    start();
    return 0;
}
