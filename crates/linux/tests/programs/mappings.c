// mmap and its relatives, on memory and on files.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include "report.h"

#define PAGE 4096L

static char *map(size_t pages, int protection) {
    return mmap(NULL, pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void anonymous(void) {
    char *m = map(4, PROT_READ | PROT_WRITE);
    SHOW(m != MAP_FAILED);
    SHOW((long)m % PAGE);
    SHOW(m[0] | m[4 * PAGE - 1]);
    memset(m, 7, 4 * PAGE);
    CALL(munmap(m + PAGE, PAGE));
    SHOW(m[0] + m[2 * PAGE]);
    char *hole = mmap(m + PAGE, PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    SHOW(hole == m + PAGE);
    SHOW(hole[0]);
    // That MAP_FIXED_NOREPLACE fails where something is mapped is left out: QEMU 7.2 replaces it.
    SHOW(mmap(m, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == m);
    SHOW(m[0] + m[2 * PAGE]);
    CALL(munmap(m, 4 * PAGE));
    CALL(munmap(m, 4 * PAGE));
    CALL(munmap(m + 1, PAGE));
    CALL(munmap(m, 0));
    OK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OK(mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0));
    OK(mmap(m + 1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    OK(mmap(NULL, 1L << 60, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void files(void) {
    char text[16] = {0};
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(fd, "0123456789", 10);
    char *private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    printf("%.10s %d\n", shared, shared[10]);
    private[0] = 'p';
    pread(fd, text, 10, 0);
    printf("%s\n", text);
    shared[1] = 's';
    pread(fd, text, 10, 0);
    printf("%s %c\n", text, shared[0]);
    pwrite(fd, "W", 1, 5);
    printf("%c\n", shared[5]);
    CALL(msync(shared, PAGE, MS_SYNC));
    CALL(msync(shared + 1, PAGE, MS_SYNC));
    CALL(munmap(shared, PAGE));
    CALL(msync(shared, PAGE, MS_SYNC));
    CALL(close(fd));
    printf("%.10s\n", private);
    fd = open("f", O_RDONLY);
    OK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    SHOW(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 100));
    close(fd);
    fd = open("f", O_WRONLY);
    OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
    close(fd);
    int dir = open("/tmp", O_RDONLY);
    OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, dir, 0));
    close(dir);
}

static void second_page(void) {
    int fd = open("g", O_RDWR | O_CREAT | O_TRUNC, 0600);
    ftruncate(fd, 3 * PAGE);
    pwrite(fd, "two", 3, 2 * PAGE);
    char *m = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
    printf("%d %s\n", m[0], m + PAGE);
    char *memory = memfd_create("memory", 0) >= 0 ? "yes" : "no";
    printf("memfd %s\n", memory);
    munmap(m, 2 * PAGE);
    close(fd);
}

static void remaps(void) {
    char *m = map(2, PROT_READ | PROT_WRITE);
    strcpy(m + PAGE, "kept");
    char *grown = mremap(m, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    SHOW(grown != MAP_FAILED);
    printf("%s %d\n", grown + PAGE, grown[63 * PAGE]);
    SHOW(mremap(grown, 64 * PAGE, 2 * PAGE, 0) == grown);
    printf("%s\n", grown + PAGE);
    char *target = map(2, PROT_READ | PROT_WRITE);
    SHOW(mremap(grown, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
    printf("%s\n", target + PAGE);
    OK(mremap(target + 1, PAGE, PAGE, 0));
    // The error of a new size of 0 is left out: QEMU has another.
    char *blocked = map(2, PROT_READ | PROT_WRITE);
    OK(mremap(blocked, PAGE, 2 * PAGE, 0));
}

static void advice(void) {
    char *m = map(2, PROT_READ | PROT_WRITE);
    memset(m, 5, 2 * PAGE);
    CALL(madvise(m, PAGE, MADV_DONTNEED));
    printf("%d %d\n", m[0], m[PAGE]);
    CALL(madvise(m, PAGE, MADV_WILLNEED));
    CALL(madvise(m + 1, PAGE, MADV_DONTNEED));
    CALL(mprotect(m + 1, PAGE, PROT_READ));
    CALL(mprotect(m, PAGE, PROT_READ));
    CALL(mlock(m, PAGE));
    CALL(munlock(m, PAGE));
    munmap(m, 2 * PAGE);
    CALL(mprotect(m, PAGE, PROT_READ));
}

static void heap(void) {
    char *start = sbrk(0);
    SHOW(sbrk(10 * PAGE) == start);
    start[10 * PAGE - 1] = 1;
    SHOW(sbrk(0) == start + 10 * PAGE);
    SHOW(brk(start) == 0 && sbrk(0) == start);
    SHOW(sbrk(PAGE) == start && start[0] == 0);
}

int main(void) {
    anonymous();
    files();
    second_page();
    remaps();
    advice();
    heap();
    return 0;
}
