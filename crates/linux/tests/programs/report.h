// What the programs print: every call, and what it returned. Nothing that differs between systems or runs is
// printed: no addresses, process numbers, times or numbers of files.
#ifndef REPORT_H
#define REPORT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Prints a call and its result, or the name of the error.
static inline long report(const char *call, long result, int error) {
    if (result == -1)
        printf("%s: %s\n", call, strerrorname_np(error) ? strerrorname_np(error) : "?");
    else
        printf("%s: %ld\n", call, result);
    fflush(stdout);
    return result;
}

// The same for results that only succeed or fail, such as descriptors and addresses.
static inline long succeeds(const char *call, long result, int error) {
    if (result == -1)
        return report(call, result, error);
    printf("%s: ok\n", call);
    fflush(stdout);
    return result;
}

// For functions that return the error instead of setting errno.
static inline int returned(const char *call, int error) {
    printf("%s: %s\n", call, error ? strerrorname_np(error) : "ok");
    fflush(stdout);
    return error;
}

#define CALL(call) ({ errno = 0; long result_ = (long)(call); report(#call, result_, errno); })
#define OK(call) ({ errno = 0; long result_ = (long)(call); succeeds(#call, result_, errno); })
#define RETURNS(call) returned(#call, (call))
#define SHOW(value) printf("%s is %ld\n", #value, (long)(value))

#endif
