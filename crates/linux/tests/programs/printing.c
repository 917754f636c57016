// Floating point, formats and variable arguments.
#define _GNU_SOURCE
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include "report.h"

static double sum(int count, ...) {
    va_list list;
    double total = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        total += i % 2 ? va_arg(list, int) : va_arg(list, double);
    va_end(list);
    return total;
}

// More arguments than there are registers, of all kinds.
static void many(const char *format, ...) {
    char text[256];
    va_list list, copy;
    volatile size_t limit = 10;
    va_start(list, format);
    va_copy(copy, list);
    int length = vsnprintf(text, limit, format, list);
    printf("%d %s\n", length, text);
    vsnprintf(text, sizeof text, format, copy);
    printf("%s\n", text);
    va_end(copy);
    va_end(list);
}

static void numbers(void) {
    double values[] = {0.0, -0.0, 1.0 / 3, 1e300 * 1e10, -1.5, 0.1 + 0.2, DBL_MIN / 4, 123456789.0};
    for (int i = 0; i < 8; i++)
        printf("%g %e %.17g %a %10.3f|%-12.2e|%+.0f\n", values[i], values[i], values[i], values[i],
               values[i], values[i], values[i]);
    printf("%Lf %.30Lg\n", 1.0L / 3, 2.0L / 7);
    printf("%d %u %ld %llx %#o %hhd %5.3d|%-6d|%+d|% d|%06d|%c|%.2s|%%\n", -5, 5u, -1L, 255ull, 8, 300,
           7, 42, 42, 42, -42, 'x', "abc");
    printf("%*d|%-*d|%.*f\n", 6, 1, 6, 2, 3, 3.14159265);
}

static void functions(void) {
    volatile double x = 0.7, y = 2.5;
    printf("%.15g %.15g %.15g %.15g\n", sin(x), cos(x), tan(x), atan2(x, y));
    printf("%.15g %.15g %.15g %.15g\n", exp(y), log(y), pow(y, x), sqrt(y));
    printf("%.15g %.15g %.15g %.15g\n", fmod(y, x), cbrt(y), tgamma(y), erf(x));
    printf("%g %g %g %g %g\n", floor(-y), ceil(-y), round(y), trunc(-y), rint(y));
    printf("%g %d %g\n", frexp(10.0, &(int){0}), ilogb(10.0), ldexp(0.5, 4));
    volatile float f = 16777217.0f, g = 1.0f / 3;
    printf("%.9g %.9g %d %u\n", f, g, (int)-g, (unsigned)(f * 2));
    volatile double huge = 1e30, none = NAN;
    printf("%ld %lu %d\n", (long)huge, (unsigned long)huge, (int)none);
    printf("%d %d %d\n", isnan(none) != 0, none == none, isinf(huge * 1e300) != 0);
}

static void environment(void) {
    volatile double one = 1, three = 3, zero = 0;
    int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 4; i++) {
        fesetround(modes[i]);
        volatile double quotient = one / three;
        fesetround(FE_TONEAREST);
        printf("%.20g\n", quotient);
    }
    feclearexcept(FE_ALL_EXCEPT);
    volatile double infinite = one / zero;
    (void)infinite;
    printf("%d %d\n", !!fetestexcept(FE_DIVBYZERO), !!fetestexcept(FE_INVALID));
}

static void scanning(void) {
    int a;
    double b;
    char word[16];
    unsigned long c;
    printf("%d", sscanf("42 2.5e3 hello ff", "%d %lf %15s %lx", &a, &b, word, &c));
    printf(" %d %g %s %lu\n", a, b, word, c);
    char *end;
    printf("%g %s\n", strtod("0x1.8p3rest", &end), end);
    printf("%ld %s\n", strtol("  -077xyz", &end, 0), end);
    errno = 0;
    printf("%ld %s\n", strtol("99999999999999999999", NULL, 10), strerrorname_np(errno));
}

int main(void) {
    printf("%g\n", sum(6, 1.5, 2, 3.25, 4, 5.125, 6));
    many("%d %s %g %ld %c %g %d %d %d %d %d %s %g", 1, "two", 3.5, 4L, '5', 6.25, 7, 8, 9, 10, 11, "twelve",
         13.5);
    numbers();
    functions();
    environment();
    scanning();
    return 0;
}
