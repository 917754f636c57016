/*
 * The functions that the compiler may call on its own, even in freestanding
 * code.  Built so that their loops are not turned into calls of themselves.
 */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    unsigned char *t = to;
    const unsigned char *f = from;

    while (count--)
        *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t count)
{
    unsigned char *t = to;
    const unsigned char *f = from;

    if (t <= f) {
        while (count--)
            *t++ = *f++;
    } else {
        while (count--)
            t[count] = f[count];
    }
    return to;
}

void *memset(void *to, int value, size_t count)
{
    unsigned char *t = to;

    while (count--)
        *t++ = (unsigned char)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t count)
{
    const unsigned char *x = a, *y = b;

    for (; count--; x++, y++) {
        if (*x != *y)
            return *x < *y ? -1 : 1;
    }
    return 0;
}
