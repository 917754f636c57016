// The library's string and memory functions at every alignment: many use vectors and read past the end.
#define _GNU_SOURCE
#include <ctype.h>
#include <stdint.h>
#include <sys/mman.h>
#include "report.h"

static char *last; // The end of a page before one that is not there.

static uint32_t hash(uint32_t h, const void *data, size_t length) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++)
        h = (h ^ bytes[i]) * 16777619;
    return h;
}

static uint32_t searches(void) {
    uint32_t h = 2166136261;
    for (int length = 0; length < 100; length++) {
        char *s = last - length - 1;
        memset(s, 'a', length);
        s[length] = 0;
        if (length > 3)
            s[length / 2] = 'b';
        char *b = strchr(s, 'b'), *r = strrchr(s, 'a');
        long numbers[] = {strlen(s), b ? b - s : -1, r ? r - s : -1, strcspn(s, "b"), strspn(s, "a"),
                          strnlen(s, 50), memchr(s, 'b', length) ? 1 : 0, strchrnul(s, 'z') - s};
        h = hash(h, numbers, sizeof numbers);
    }
    return h;
}

static uint32_t copies(void) {
    char from[300], to[300];
    uint32_t h = 2166136261;
    for (int i = 0; i < 300; i++)
        from[i] = i * 7 + 1;
    for (int offset = 0; offset < 17; offset++)
        for (int length = 0; length < 200; length += 7) {
            memset(to, offset, sizeof to);
            memcpy(to + offset, from + 16 - offset, length);
            memmove(to + 3, to + offset, length);
            memmove(to + offset, to + 3, length);
            h = hash(h, to, sizeof to);
        }
    return h;
}

static uint32_t comparisons(void) {
    uint32_t h = 2166136261;
    char a[80], b[80];
    for (int at = 0; at < 70; at++) {
        memset(a, 'x', 79), memset(b, 'x', 79);
        a[79] = b[79] = 0;
        b[at] = at % 2 ? 'y' : 'w';
        int signs[] = {strcmp(a, b) < 0, memcmp(a, b, 79) < 0, strncmp(a, b, at), strcasecmp(a, b) < 0,
                       memcmp(a + 1, b + 1, 60) < 0};
        h = hash(h, signs, sizeof signs);
    }
    return h;
}

static void words(void) {
    char text[] = "one, two;three  four", *state;
    for (char *w = strtok_r(text, ",; ", &state); w; w = strtok_r(NULL, ",; ", &state))
        printf("[%s]", w);
    printf("\n%s\n", strstr("haystack with a needle in it", "needle"));
    char buffer[20] = "abc";
    printf("%s %s\n", strcat(buffer, "def"), strncat(buffer, "gh", 3));
    printf("%s|%.5s|\n", strncpy(buffer, "xy", 10), stpcpy(buffer + 10, "end") - 3);
    printf("%d %s %s\n", (int)strlen(strdup("copied")), strpbrk("a-b+c", "+-"), strerror(ENOENT));
    int upper = 0, digits = 0;
    for (int c = 0; c < 256; c++)
        upper += isupper(c) != 0, digits += isxdigit(c) != 0;
    printf("%d %d %c\n", upper, digits, toupper('q'));
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void sorting(void) {
    int values[1000], key;
    uint32_t state = 1;
    for (int i = 0; i < 1000; i++)
        values[i] = (state = state * 1664525 + 1013904223) >> 16;
    qsort(values, 1000, sizeof *values, by_value);
    key = values[321];
    int *found = bsearch(&key, values, 1000, sizeof *values, by_value);
    printf("%d %d %d %d\n", values[0], values[500], values[999], *found == key);
}

int main(void) {
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    last = page + 4096;
    printf("%08x %08x %08x\n", searches(), copies(), comparisons());
    words();
    sorting();
    return 0;
}
