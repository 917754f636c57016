// Accesses that are not allowed: the signal, its code and whether its address is that of the access.
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include "report.h"

#define PAGE 4096L

static sigjmp_buf back;
static volatile int signal_number, code;
static void *volatile address;

static void caught(int number, siginfo_t *info, void *context) {
    (void)context;
    signal_number = number, code = info->si_code, address = info->si_addr;
    siglongjmp(back, 1);
}

static const char *code_name(void) {
    if (signal_number == SIGSEGV)
        return code == SEGV_MAPERR ? "SEGV_MAPERR" : code == SEGV_ACCERR ? "SEGV_ACCERR" : "?";
    if (signal_number == SIGBUS)
        return code == BUS_ADRERR ? "BUS_ADRERR" : code == BUS_ADRALN ? "BUS_ADRALN" : "?";
    return "?";
}

static void attempt(const char *what, volatile char *at, int write) {
    if (sigsetjmp(back, 1) == 0) {
        if (write)
            *at = 1;
        else
            (void)*at;
        printf("%s: allowed\n", what);
        return;
    }
    printf("%s: SIG%s %s, address %s\n", what, sigabbrev_np(signal_number), code_name(),
           address == at ? "right" : "wrong");
}

static void execute(const char *what, void *at) {
    if (sigsetjmp(back, 1) == 0) {
        ((void (*)(void))at)();
        printf("%s: returned\n", what);
        return;
    }
    printf("%s: SIG%s %s, address %s\n", what, sigabbrev_np(signal_number), code_name(),
           address == at ? "right" : "wrong");
}

static char *map(int protection) {
    return mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void files(void) {
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(fd, "data", 4);
    char *m = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    attempt("read after the file's end, in its page", m + 100, 0);
    attempt("read after the file's last page", m + PAGE, 0);
    ftruncate(fd, PAGE + 1);
    attempt("the same when the file has grown", m + PAGE, 1);
    ftruncate(fd, 0);
    attempt("read when the file is empty", m, 0);
    close(fd);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    attempt("read at 0", NULL, 0);
    attempt("write at 8", (char *)8, 1);
    // An access beyond the address space is left out: QEMU gives another address.
    char *none = map(PROT_NONE), *readable = map(PROT_READ), *gone = map(PROT_READ);
    attempt("read PROT_NONE", none, 0);
    attempt("write PROT_NONE", none + 5, 1);
    attempt("read PROT_READ", readable, 0);
    attempt("write PROT_READ", readable + PAGE - 1, 1);
    attempt("write a constant", (char *)"constant", 1);
    attempt("write code", (char *)main, 1);
    munmap(gone, PAGE);
    attempt("read unmapped", gone, 0);
    mprotect(readable, PAGE, PROT_READ | PROT_WRITE);
    attempt("write after mprotect", readable, 1);
    // RET
    *(unsigned *)readable = 0xd65f03c0;
    execute("execute without PROT_EXEC", readable);
    mprotect(readable, PAGE, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(readable, readable + 4);
    execute("execute with PROT_EXEC", readable);
    execute("execute unmapped", gone);
    execute("execute at 0", NULL);
    files();
    // Bytes of one access in two pages, of which the second is not there.
    char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(two + PAGE, PAGE);
    if (sigsetjmp(back, 1) == 0)
        *(volatile long *)(two + PAGE - 4) = -1;
    printf("write across the end: %s\n", code_name());
    return 0;
}
