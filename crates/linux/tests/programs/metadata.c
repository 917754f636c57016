// What stat and its relatives say, and what changes it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include "report.h"

static void show(const char *path) {
    struct stat st;
    if (lstat(path, &st)) {
        printf("%s: %s\n", path, strerrorname_np(errno));
        return;
    }
    printf("%s: mode %o links %d size %ld\n", path, st.st_mode, (int)st.st_nlink,
           S_ISDIR(st.st_mode) ? 0 : (long)st.st_size);
}

static void modes(void) {
    umask(022);
    close(open("f", O_CREAT | O_WRONLY, 0666));
    show("f");
    CALL(umask(077));
    CALL(umask(077));
    close(open("g", O_CREAT | O_WRONLY, 0666));
    mkdir("d", 0777);
    show("g");
    CALL(chmod("f", 0751));
    show("f");
    int fd = open("f", O_RDWR);
    CALL(fchmod(fd, 0604));
    show("f");
    CALL(fchmodat(AT_FDCWD, "d", 01755, 0));
    struct stat st;
    stat("d", &st);
    SHOW(st.st_mode == (S_IFDIR | 01755));
    CALL(chmod("none", 0600));
    symlink("f", "s");
    CALL(chmod("s", 0640));
    show("s");
    show("f");
    CALL(write(fd, "12345", 5));
    show("f");
    CALL(fstat(fd, &st));
    SHOW(st.st_blocks);
    CALL(mkfifo("p", 0644));
    CALL(stat("p", &st));
    SHOW(S_ISFIFO(st.st_mode));
    close(fd);
}

static void special(void) {
    struct stat st;
    CALL(stat("/dev/null", &st));
    printf("character %d, %d:%d\n", S_ISCHR(st.st_mode), major(st.st_rdev), minor(st.st_rdev));
    CALL(stat("/dev/zero", &st));
    printf("character %d, %d:%d\n", S_ISCHR(st.st_mode), major(st.st_rdev), minor(st.st_rdev));
    CALL(stat("/", &st));
    SHOW(S_ISDIR(st.st_mode));
    CALL(stat("/bin", &st));
    SHOW(S_ISDIR(st.st_mode));
    CALL(lstat("/bin", &st));
    SHOW(S_ISLNK(st.st_mode));
    SHOW(st.st_size);
    struct statvfs vfs;
    CALL(statvfs("/tmp", &vfs));
    SHOW(vfs.f_namemax);
    CALL(statvfs("/none", &vfs));
}

static void extended(void) {
    struct statx sx;
    CALL(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &sx));
    printf("mode %o size %ld links %d\n", sx.stx_mode, (long)sx.stx_size, sx.stx_nlink);
    SHOW((sx.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
    CALL(statx(AT_FDCWD, "s", AT_SYMLINK_NOFOLLOW, STATX_MODE, &sx));
    SHOW(S_ISLNK(sx.stx_mode));
    int fd = open("f", O_RDONLY);
    CALL(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &sx));
    SHOW(sx.stx_size);
    CALL(statx(fd, "", 0, STATX_SIZE, &sx));
    CALL(statx(AT_FDCWD, "none", 0, STATX_SIZE, &sx));
    struct stat st;
    CALL(fstatat(fd, "", &st, AT_EMPTY_PATH));
    CALL(fstatat(AT_FDCWD, "f/", &st, 0));
    CALL(fstatat(AT_FDCWD, "d/../f", &st, 0));
    close(fd);
}

static void times(void) {
    struct timespec set[2] = {{1000000000, 123456789}, {1500000000, 987654321}};
    struct stat st;
    CALL(utimensat(AT_FDCWD, "f", set, 0));
    stat("f", &st);
    printf("%ld.%09ld %ld.%09ld\n", (long)st.st_atim.tv_sec, st.st_atim.tv_nsec,
           (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    set[0].tv_nsec = UTIME_OMIT;
    set[1].tv_sec = 5;
    CALL(utimensat(AT_FDCWD, "f", set, 0));
    stat("f", &st);
    printf("%ld %ld.%09ld\n", (long)st.st_atim.tv_sec, (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    CALL(utimensat(AT_FDCWD, "f", NULL, 0));
    stat("f", &st);
    SHOW(st.st_mtim.tv_sec > 1600000000);
    SHOW(st.st_ctim.tv_sec >= st.st_mtim.tv_sec);
    set[1].tv_nsec = 2000000000;
    CALL(utimensat(AT_FDCWD, "f", set, 0));
    CALL(utimensat(AT_FDCWD, "none", NULL, 0));
    int fd = open("f", O_RDWR);
    set[0] = set[1] = (struct timespec){7, 0};
    CALL(futimens(fd, set));
    fstat(fd, &st);
    SHOW(st.st_mtim.tv_sec);
    write(fd, "x", 1);
    fstat(fd, &st);
    SHOW(st.st_mtim.tv_sec > 1600000000);
    close(fd);
}

static void permissions(void) {
    CALL(access("f", F_OK));
    CALL(access("f", R_OK | W_OK));
    CALL(chmod("f", 0600));
    CALL(access("f", X_OK));
    CALL(access("none", F_OK));
    CALL(access("f/x", F_OK));
    CALL(access("f", 99));
    CALL(faccessat(AT_FDCWD, "d", X_OK, 0));
    CALL(faccessat(AT_FDCWD, "f", R_OK, AT_EACCESS));
    CALL(chown("f", -1, -1));
    CALL(chown("none", -1, -1));
    CALL(lchown("s", getuid(), getgid()));
}

int main(void) {
    modes();
    special();
    extended();
    times();
    permissions();
    return 0;
}
