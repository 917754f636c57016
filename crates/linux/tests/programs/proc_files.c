// What /proc says about the process itself.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include "report.h"

static char text[65536];

static const char *contents(const char *path) {
    int fd = open(path, O_RDONLY);
    long length = 0, got;
    while (fd >= 0 && (got = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += got;
    text[length] = 0;
    close(fd);
    return fd < 0 ? NULL : text;
}

// True if a line of the map describes this address, with these permissions.
static int mapped(void *at, const char *permissions) {
    unsigned long from, to;
    char found[8];
    contents("/proc/self/maps");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (sscanf(line, "%lx-%lx %4s", &from, &to, found) == 3 && from <= (unsigned long)at &&
            (unsigned long)at < to)
            return strcmp(found, permissions) == 0;
    return -1;
}

static void descriptors(void) {
    char path[64], target[64] = "";
    int fd = open("/tmp/some-file", O_CREAT | O_RDWR, 0600);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CALL(readlink(path, target, sizeof target));
    printf("%s\n", target);
    write(fd, "text", 4);
    int again = OK(open(path, O_RDONLY));
    CALL(read(again, target, 10));
    DIR *dir = opendir("/proc/self/fd");
    int found = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        found += atoi(entry->d_name) == fd;
    closedir(dir);
    SHOW(found);
    CALL(unlink("/tmp/some-file"));
    memset(target, 0, sizeof target);
    readlink(path, target, sizeof target - 1);
    printf("%s\n", target);
}

int main(int count, char **arguments) {
    char path[256] = "", own[64];
    (void)count;
    readlink("/proc/self/exe", path, sizeof path - 1);
    SHOW(strcmp(path, arguments[0]) == 0);
    memset(path, 0, sizeof path);
    readlink("/proc/self/cwd", path, sizeof path - 1);
    printf("%s\n", path);
    snprintf(own, sizeof own, "%d", getpid());
    memset(path, 0, sizeof path);
    readlink("/proc/self", path, sizeof path - 1);
    SHOW(strcmp(path, own) == 0);
    SHOW(strcmp(contents("/proc/self/cmdline"), arguments[0]) == 0);
    SHOW(atoi(contents("/proc/self/stat")) == getpid());
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SHOW(mapped(page, "r--p"));
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    SHOW(mapped(page, "rw-p"));
    munmap(page, 4096);
    SHOW(mapped(page, "rw-p"));
    SHOW(mapped(&count, "rw-p"));
    SHOW(mapped(main, "r-xp"));
    SHOW(strstr(contents("/proc/self/maps"), "[stack]") != NULL);
    SHOW(contents("/proc/self/none") == NULL);
    SHOW(contents("/proc/meminfo") && strstr(text, "MemTotal:") != NULL);
    SHOW(contents("/proc/version") && strncmp(text, "Linux version ", 14) == 0);
    descriptors();
    return 0;
}
