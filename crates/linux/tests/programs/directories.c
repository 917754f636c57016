// Making, listing, renaming and removing.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "report.h"

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void list(const char *path) {
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, by_name);
    printf("%s:", path);
    for (int i = 0; i < count; i++) {
        int type = entries[i]->d_type;
        printf(" %s%s", entries[i]->d_name, type == DT_DIR ? "/" : type == DT_LNK ? "@" : "");
    }
    printf("\n");
}

static void touch(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    if (fd < 0 || close(fd))
        perror(path);
}

static void make_and_remove(void) {
    CALL(mkdir("d", 0755));
    CALL(mkdir("d", 0755));
    CALL(mkdir("none/d", 0755));
    CALL(mkdir("d/", 0755));
    CALL(mkdir("d/sub/", 0755));
    CALL(mkdir("", 0755));
    CALL(mkdir("/", 0755));
    touch("d/f");
    CALL(mkdir("d/f/x", 0755));
    CALL(rmdir("d"));
    CALL(rmdir("d/f"));
    CALL(rmdir("d/sub/."));
    CALL(unlink("d/sub"));
    CALL(unlink("none"));
    CALL(unlink("d/f/"));
    CALL(unlinkat(AT_FDCWD, "d/sub", AT_REMOVEDIR));
    CALL(unlink("d/f"));
    CALL(rmdir("d"));
    CALL(rmdir("none"));
    char name[300];
    memset(name, 'n', 299);
    name[299] = 0;
    CALL(mkdir(name, 0755));
}

static void links(void) {
    CALL(mkdir("l", 0755));
    touch("l/a");
    CALL(link("l/a", "l/b"));
    CALL(link("l/a", "l/b"));
    CALL(link("l/none", "l/c"));
    CALL(link("l", "l/dir"));
    CALL(symlink("a", "l/s"));
    CALL(symlink("a", "l/s"));
    CALL(symlink("", "l/empty"));
    struct stat st;
    CALL(stat("l/a", &st));
    SHOW(st.st_nlink);
    char target[10] = "#########";
    CALL(readlink("l/s", target, sizeof target));
    printf("%.9s\n", target);
    CALL(readlink("l/a", target, sizeof target));
    CALL(symlink("a-long-target", "l/long"));
    CALL(readlink("l/long", target, 6));
    printf("%.9s\n", target);
    CALL(readlink("l/s", target, 0));
    CALL(unlink("l/a"));
    CALL(stat("l/s", &st));
    CALL(lstat("l/s", &st));
    SHOW(S_ISLNK(st.st_mode));
    SHOW(st.st_size);
    CALL(link("l/s", "l/hard-to-link"));
    list("l");
}

static void rename_things(void) {
    CALL(mkdir("r", 0755));
    CALL(mkdir("r/d", 0755));
    CALL(mkdir("r/e", 0755));
    touch("r/f");
    touch("r/g");
    CALL(rename("r/f", "r/g"));
    CALL(rename("r/f", "r/h"));
    CALL(rename("r/g", "r/d"));
    CALL(rename("r/d", "r/g"));
    CALL(rename("r/d", "r/e"));
    touch("r/e/x");
    CALL(mkdir("r/d2", 0755));
    CALL(rename("r/d2", "r/e"));
    CALL(rename("r/e", "r/e/inside"));
    CALL(rename("r/g", "r/g"));
    CALL(renameat2(AT_FDCWD, "r/g", AT_FDCWD, "r/e", RENAME_NOREPLACE));
    CALL(renameat2(AT_FDCWD, "r/g", AT_FDCWD, "r/e", RENAME_EXCHANGE));
    list("r");
    list("r/g");
    CALL(renameat2(AT_FDCWD, "r/g", AT_FDCWD, "r/none", RENAME_EXCHANGE));
    CALL(renameat2(AT_FDCWD, "r/g", AT_FDCWD, "r/h", RENAME_NOREPLACE | RENAME_EXCHANGE));
    CALL(renameat2(AT_FDCWD, "r/e", AT_FDCWD, "r/new", RENAME_NOREPLACE));
    list("r");
}

// Lists with a small buffer, so that it takes several calls.
static void many_entries(void) {
    CALL(mkdir("m", 0755));
    char path[32];
    for (int i = 0; i < 200; i++) {
        snprintf(path, sizeof path, "m/file-%03d", i);
        touch(path);
    }
    int fd = open("m", O_RDONLY | O_DIRECTORY), names = 0, calls = 0;
    char buffer[512];
    long length;
    while ((length = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
        calls++;
        for (long at = 0; at < length; names++)
            at += ((struct dirent64 *)(buffer + at))->d_reclen;
    }
    SHOW(names);
    SHOW(calls > 5);
    CALL(syscall(SYS_getdents64, fd, buffer, sizeof buffer));
    CALL(lseek(fd, 0, SEEK_SET));
    CALL(syscall(SYS_getdents64, fd, buffer, 10));
    CALL(syscall(SYS_getdents64, 1, buffer, sizeof buffer));
    close(fd);
}

static void working_directory(void) {
    char path[64];
    CALL(mkdir("w", 0755));
    CALL(chdir("w"));
    printf("%s\n", getcwd(path, sizeof path));
    OK(getcwd(path, 3) ? 0 : -1);
    CALL(chdir("none"));
    CALL(chdir("../l/long"));
    CALL(chdir(".."));
    int fd = open("w", O_RDONLY);
    CALL(fchdir(fd));
    CALL(rmdir("../w"));
    OK(open("f", O_CREAT | O_WRONLY, 0600));
    OK(getcwd(path, sizeof path) ? 0 : -1);
    CALL(chdir("/tmp/../tmp/./"));
    printf("%s\n", getcwd(path, sizeof path));
}

int main(void) {
    make_and_remove();
    links();
    rename_things();
    many_entries();
    working_directory();
    return 0;
}
