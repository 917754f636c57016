// Memory that shows a file or is shared with other processes, and what is written to it in many ways.
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "report.h"

enum { PAGE = 4096 };

static char *file(int pages, int *fd) {
    *fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
    ftruncate(*fd, pages * PAGE);
    return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

static int in_file(int fd, long at) {
    char byte = 0;
    pread(fd, &byte, 1, at);
    return byte;
}

// Every page is written once, and some of them again and again.
static void many_pages(void) {
    enum { PAGES = 4096 };
    int fd, wrong = 0;
    char *m = file(PAGES, &fd);
    for (int i = 0; i < PAGES; i++) {
        m[i * PAGE + i % PAGE] = i;
        wrong += i % 7 == 0 && in_file(fd, i * PAGE + i % PAGE) != (char)i;
    }
    for (int i = 0; i < 1000; i++) {
        int page = i * i % 5 * 100;
        m[page * PAGE + 5] = i;
        wrong += in_file(fd, page * PAGE + 5) != (char)i;
    }
    SHOW(wrong);
    // Nobody has written for long.
    for (int i = 0; i < 100; i++)
        in_file(fd, 0);
    m[9] = 'l';
    printf("%c\n", in_file(fd, 9));
    munmap(m, PAGES * PAGE);
    close(fd);
}

// Stores that reach into another page, and those of other kinds.
static void stores(void) {
    int fd;
    char *m = file(4, &fd);
    *(volatile uint64_t *)(m + PAGE - 3) = 0x0807060504030201;
    printf("%d %d\n", in_file(fd, PAGE - 1), in_file(fd, PAGE));
    __atomic_fetch_add((int *)(m + 2 * PAGE), 7, __ATOMIC_SEQ_CST);
    printf("%d\n", in_file(fd, 2 * PAGE));
    memset(m + PAGE, 'x', 2 * PAGE);
    printf("%c %c\n", in_file(fd, PAGE), in_file(fd, 3 * PAGE - 1));
    int ends[2];
    pipe(ends);
    write(ends[1], "from a pipe", 11);
    CALL(readv(ends[0], (struct iovec[]){{m + PAGE - 5, 11}}, 1));
    printf("%c %c\n", in_file(fd, PAGE - 5), in_file(fd, PAGE + 5));
    munmap(m, 4 * PAGE);
    close(fd);
}

// Rights that change, and mappings that move, between writes.
static void changes(void) {
    int fd;
    char *m = file(4, &fd);
    m[0] = 'a';
    CALL(mprotect(m, PAGE, PROT_READ));
    printf("%c\n", in_file(fd, 0));
    CALL(mprotect(m, PAGE, PROT_READ | PROT_WRITE));
    m[0] = 'b';
    printf("%c\n", in_file(fd, 0));
    m[PAGE] = 'c';
    char *moved = mremap(m, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    moved[1] = 'd';
    moved[2 * PAGE] = 'e';
    printf("%c%c%c%c\n", in_file(fd, 0), in_file(fd, 1), in_file(fd, PAGE), in_file(fd, 2 * PAGE));
    ftruncate(fd, 6 * PAGE);
    moved[5 * PAGE] = 'f';
    printf("%c\n", in_file(fd, 5 * PAGE));
    CALL(madvise(moved, PAGE, MADV_DONTNEED));
    printf("%c\n", moved[1]);
    munmap(moved, 8 * PAGE);
    printf("%c\n", in_file(fd, PAGE));
    close(fd);
}

static sigjmp_buf after;

static void on_fault(int signal) {
    siglongjmp(after, signal);
}

// The first byte of a page, or a dot if there is none.
__attribute__((noinline)) static int first_byte(const char *page) {
    if (sigsetjmp(after, 1))
        return '.';
    char byte = *(volatile const char *)page;
    return byte ? byte : '0';
}

static void show(const char *m, int pages) {
    signal(SIGBUS, on_fault);
    for (int i = 0; i < pages; i++)
        putchar(first_byte(m + i * PAGE));
    putchar('\n');
    signal(SIGBUS, SIG_DFL);
}

// Mappings of a file that become longer and shorter, beyond its end, too.
static void resized(int type) {
    char page[PAGE];
    for (int blocked = 0; blocked < 2; blocked++) {
        int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
        for (int i = 0; i < 4; i++) {
            memset(page, 'a' + i, PAGE);
            write(fd, page, PAGE);
        }
        char *m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, type, fd, 0);
        m[0] = 'm';
        if (blocked)
            mmap(m + PAGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        m = mremap(m, PAGE, 6 * PAGE, MREMAP_MAYMOVE);
        show(m, 6);
        CALL(write(fd, m + 3 * PAGE, PAGE));
        ftruncate(fd, 2 * PAGE);
        show(m, 6);
        ftruncate(fd, 3 * PAGE);
        show(m, 6);
        close(fd);
    }
}

// Several processes write to the same pages, each to bytes of its own.
static void processes(void) {
    enum { PAGES = 64, CHILDREN = 4 };
    char *m = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(m, '.', PAGES * PAGE);
    fflush(stdout);
    for (int child = 0; child < CHILDREN; child++) {
        if (fork() == 0) {
            for (int i = 0; i < PAGES; i++)
                m[i * PAGE + child] = 'a' + child;
            __atomic_fetch_add((int *)(m + PAGE + 100), 1, __ATOMIC_SEQ_CST);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    int right = 0;
    for (int i = 0; i < PAGES; i++)
        right += memcmp(m + i * PAGE, "abcd.", 5) == 0;
    printf("%d %d\n", right, *(int *)(m + PAGE + 100) - 0x2e2e2e2e);
    // A parent that has written alone for some time.
    m[7] = 'p';
    fflush(stdout);
    if (fork() == 0) {
        printf("child: %c\n", m[7]);
        m[8] = 'q';
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    printf("parent: %c\n", m[8]);
}

int main(void) {
    many_pages();
    stores();
    changes();
    processes();
    resized(MAP_SHARED);
    resized(MAP_PRIVATE);
    return 0;
}
