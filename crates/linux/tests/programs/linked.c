// What dynamic linking does: constructors, weak symbols, relocated data, and a library loaded while running.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include "report.h"

extern int nowhere(void) __attribute__((weak));

static __thread int own = 3;
static int value = 5, *pointer = &value;
static const char *const names[] = {"zero", "one", "two"};

__attribute__((constructor(101))) static void first(void) { printf("constructor 1\n"); }
__attribute__((constructor(102))) static void second(void) { printf("constructor 2\n"); }
__attribute__((destructor)) static void last(void) { printf("destructor\n"); }

static int add(int a, int b) { return a + b; }
static int multiply(int a, int b) { return a * b; }
static int (*const operations[])(int, int) = {add, multiply};

#ifndef STATIC
// A static program cannot load libraries.
static void load(void) {
    void *library = dlopen("libz.so.1", RTLD_NOW);
    unsigned long (*crc)(unsigned long, const char *, unsigned) = dlsym(library, "crc32");
    printf("%lx\n", crc(0, "kvrm", 4));
    SHOW(dlsym(library, "no_such_symbol") == NULL);
    SHOW(dlclose(library));
    SHOW(dlopen("libnone.so", RTLD_NOW) == NULL);
    SHOW(dlsym(RTLD_DEFAULT, "printf") != NULL);
}
#endif

int main(void) {
    printf("%d %d %s %d %d\n", own, *pointer, names[own - 2], operations[0](3, 4), operations[1](3, 4));
    SHOW(nowhere == NULL);
    volatile double x = 2;
    printf("%.15g\n", sqrt(x) + pow(x, 0.5));
#ifndef STATIC
    load();
#endif
    return 0;
}
