/*
 * Reading and printing numbers in double precision, both exactly: a decimal
 * is read as the number nearest to it (the even one of two), and a number is
 * printed with as few digits as tell it from all others, of these nearest to
 * it.  Numbers look as in Python: 1.0, 0.0001, 1e-05, 1e+16.
 *
 * Short decimals are read by a product or quotient of two numbers that are
 * exact (Clinger's fast path), and integers printed as such.  The rest is
 * done with big integers: a first guess is compared with the decimal, and
 * digits are generated as by Steele and White.
 */
#ifndef DECIMAL_H
#define DECIMAL_H

#include "guest.h"

/* Longer decimals are not read. */
#define MOST_DIGITS 64

/* Room for 10^388 times a number's 54 bits, and for 10^64 times 2^1075. */
#define LIMBS 44

/* A big integer: limbs from the lowest up, the last of them not zero. */
typedef struct {
    int length;
    uint32_t limbs[LIMBS];
} big_t;

static void big_set(big_t *big, uint64_t value)
{
    big->length = 0;
    for (; value; value >>= 32)
        big->limbs[big->length++] = (uint32_t)value;
}

static void big_multiply_add(big_t *big, uint32_t factor, uint32_t carry)
{
    for (int i = 0; i < big->length; i++) {
        uint64_t product = (uint64_t)big->limbs[i] * factor + carry;

        big->limbs[i] = (uint32_t)product;
        carry = (uint32_t)(product >> 32);
    }
    if (carry)
        big->limbs[big->length++] = carry;
}

static void big_times_power_of_10(big_t *big, int power)
{
    for (; power >= 9; power -= 9)
        big_multiply_add(big, 1000000000, 0);
    for (; power > 0; power--)
        big_multiply_add(big, 10, 0);
}

static void big_shift_left(big_t *big, int bits)
{
    int limbs = bits / 32;

    if (!big->length)
        return;
    big_multiply_add(big, 1u << bits % 32, 0);
    for (int i = big->length - 1; i >= 0; i--)
        big->limbs[i + limbs] = big->limbs[i];
    for (int i = 0; i < limbs; i++)
        big->limbs[i] = 0;
    big->length += limbs;
}

/* Returns a number below zero, zero, or above zero, as a is to b. */
static int big_compare(const big_t *a, const big_t *b)
{
    if (a->length != b->length)
        return a->length - b->length;
    for (int i = a->length - 1; i >= 0; i--) {
        if (a->limbs[i] != b->limbs[i])
            return a->limbs[i] < b->limbs[i] ? -1 : 1;
    }
    return 0;
}

static void big_add(big_t *sum, const big_t *a, const big_t *b)
{
    int longest = a->length > b->length ? a->length : b->length;
    uint64_t carry = 0;

    for (int i = 0; i < longest; i++) {
        carry += (uint64_t)(i < a->length ? a->limbs[i] : 0) +
                 (i < b->length ? b->limbs[i] : 0);
        sum->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum->length = longest;
    if (carry)
        sum->limbs[sum->length++] = (uint32_t)carry;
}

/* Subtracts b, which is not above a. */
static void big_subtract(big_t *a, const big_t *b)
{
    int64_t borrow = 0;

    for (int i = 0; i < a->length; i++) {
        borrow += (int64_t)a->limbs[i] - (i < b->length ? b->limbs[i] : 0);
        a->limbs[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    while (a->length && !a->limbs[a->length - 1])
        a->length--;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double value;

    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

#define INFINITE ((uint64_t)0x7ff << 52)

/* A number that is not negative, as significand * 2^exponent. */
typedef struct {
    uint64_t significand;
    int exponent;
} binary_t;

static binary_t binary_of(uint64_t bits)
{
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    int exponent = (int)(bits >> 52);

    if (exponent == 0)
        return (binary_t){ fraction, -1074 };
    return (binary_t){ fraction | (uint64_t)1 << 52, exponent - 1075 };
}

/* A decimal in a text, without its sign: digits * 10^exponent. */
typedef struct {
    const char *text; /* its first digit that is not zero */
    int digits;       /* their number; a point may lie among them */
    int exponent;
    uint64_t leading; /* the first of the digits, LEADING at most */
} decimal_t;

#define LEADING 19

static int is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static void add_digit(decimal_t *decimal, const char *text)
{
    if (!decimal->digits && *text == '0')
        return;
    if (!decimal->digits)
        decimal->text = text;
    if (decimal->digits++ < LEADING)
        decimal->leading = decimal->leading * 10 + (uint64_t)(*text - '0');
}

/*
 * Scans a number as JSON has it, without its sign.  Returns where it ends, or
 * null if there is none, or one too long.
 */
static const char *scan(const char *text, decimal_t *decimal)
{
    *decimal = (decimal_t){ 0 };
    if (!is_digit(*text) || (*text == '0' && is_digit(text[1])))
        return NULL;
    for (; is_digit(*text); text++)
        add_digit(decimal, text);
    if (*text == '.') {
        if (!is_digit(*++text))
            return NULL;
        for (; is_digit(*text); text++, decimal->exponent--)
            add_digit(decimal, text);
    }
    if (*text == 'e' || *text == 'E') {
        int negative = *++text == '-', exponent = 0;

        text += negative || *text == '+';
        if (!is_digit(*text))
            return NULL;
        for (; is_digit(*text); text++)
            exponent = exponent < 10000 ? exponent * 10 + (*text - '0') : exponent;
        decimal->exponent += negative ? -exponent : exponent;
    }
    return decimal->digits <= MOST_DIGITS ? text : NULL;
}

static void big_of_digits(big_t *big, const decimal_t *decimal)
{
    const char *text = decimal->text;

    big_set(big, 0);
    for (int left = decimal->digits; left; text++) {
        if (*text != '.') {
            big_multiply_add(big, 10, (uint32_t)(*text - '0'));
            left--;
        }
    }
}

/* True if the decimal rounds to a number above that of these bits. */
static int is_above(const decimal_t *decimal, uint64_t bits)
{
    binary_t binary = binary_of(bits);
    big_t value, middle; /* between the number and the next */
    int order;

    big_of_digits(&value, decimal);
    big_set(&middle, 2 * binary.significand + 1);
    if (decimal->exponent >= 0)
        big_times_power_of_10(&value, decimal->exponent);
    else
        big_times_power_of_10(&middle, -decimal->exponent);
    if (binary.exponent >= 1)
        big_shift_left(&middle, binary.exponent - 1);
    else
        big_shift_left(&value, 1 - binary.exponent);

    order = big_compare(&value, &middle);
    return order > 0 || (order == 0 && (bits & 1));
}

/* Returns a number that is a few units in the last place off, at most. */
static double guess(const decimal_t *decimal)
{
    static const double powers[] = {
        1e1, 1e2, 1e4, 1e8, 1e16, 1e32, 1e64, 1e128, 1e256,
    };
    int left_out = decimal->digits > LEADING ? decimal->digits - LEADING : 0;
    int exponent = decimal->exponent + left_out;
    int size = exponent < 0 ? -exponent : exponent;
    double value = (double)decimal->leading;

    for (int i = 8; i >= 0; i--) {
        if (size >> i & 1)
            value = exponent < 0 ? value / powers[i] : value * powers[i];
    }
    return value;
}

static double read_long(const decimal_t *decimal)
{
    int magnitude = decimal->digits + decimal->exponent;
    uint64_t bits;

    if (magnitude > 310)
        return double_of(INFINITE);
    if (magnitude < -330 || !decimal->digits)
        return 0;

    bits = bits_of(guess(decimal));
    if (bits == INFINITE)
        bits--;
    while (bits && !is_above(decimal, bits - 1))
        bits--;
    while (bits != INFINITE && is_above(decimal, bits))
        bits++;
    return double_of(bits);
}

static double read_decimal(const decimal_t *decimal)
{
    static const double powers[] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    };
    int exponent = decimal->exponent;

    if (decimal->digits > LEADING || decimal->leading >> 53 ||
        exponent < -22 || exponent > 22)
        return read_long(decimal);
    return exponent < 0 ? (double)decimal->leading / powers[-exponent]
                        : (double)decimal->leading * powers[exponent];
}

/* Digits that were generated: 0.DIGITS * 10^magnitude. */
typedef struct {
    char text[17];
    int count;
    int magnitude;
} digits_t;

/*
 * The state of generating digits, all in the same unit: the rest of the
 * number, one, and how far below and above the number others round to it.
 */
typedef struct {
    big_t rest, one, below, above;
    int inclusive; /* the numbers just that far away do so too */
} generator_t;

static void times_10(generator_t *g)
{
    big_multiply_add(&g->rest, 10, 0);
    big_multiply_add(&g->below, 10, 0);
    big_multiply_add(&g->above, 10, 0);
}

static int rounds_down(const generator_t *g)
{
    return big_compare(&g->rest, &g->below) < g->inclusive;
}

static int rounds_up(const generator_t *g)
{
    big_t sum;

    big_add(&sum, &g->rest, &g->above);
    return big_compare(&sum, &g->one) > -g->inclusive;
}

/* True if the rest is nearer to one than to zero, or as near and `odd`. */
static int nearer_up(const generator_t *g, int odd)
{
    big_t twice;
    int order;

    big_add(&twice, &g->rest, &g->rest);
    order = big_compare(&twice, &g->one);
    return order > 0 || (order == 0 && odd);
}

/* Returns the magnitude of a positive number, or one less. */
static int guess_magnitude(binary_t binary)
{
    int top = binary.exponent + 63 - __builtin_clzll(binary.significand);
    double log10 = top * 0.30102999566398120;
    int whole = (int)log10;

    return whole < log10 ? whole + 1 : whole;
}

/* Prepares to generate digits; the first is that before the point. */
static void start_digits(generator_t *g, uint64_t bits, digits_t *digits)
{
    binary_t binary = binary_of(bits);
    int up = binary.exponent > 0 ? binary.exponent : 0;
    int down = binary.exponent < 0 ? -binary.exponent : 0;
    /* Below a power of two, numbers are twice as close. */
    int close = binary.significand == (uint64_t)1 << 52 && bits >> 52 > 1;

    g->inclusive = !(binary.significand & 1);
    big_set(&g->rest, 4 * binary.significand);
    big_set(&g->one, 4);
    big_set(&g->below, close ? 1 : 2);
    big_set(&g->above, 2);
    big_shift_left(&g->rest, up);
    big_shift_left(&g->below, up);
    big_shift_left(&g->above, up);
    big_shift_left(&g->one, down);

    digits->magnitude = guess_magnitude(binary);
    if (digits->magnitude >= 0) {
        big_times_power_of_10(&g->one, digits->magnitude);
    } else {
        big_times_power_of_10(&g->rest, -digits->magnitude);
        big_times_power_of_10(&g->below, -digits->magnitude);
        big_times_power_of_10(&g->above, -digits->magnitude);
    }
    if (rounds_up(g))
        digits->magnitude++;
    else
        times_10(g);
}

/* Generates the digits of a positive number. */
static void generate(uint64_t bits, digits_t *digits)
{
    generator_t g;
    int down, up;

    digits->count = 0;
    start_digits(&g, bits, digits);
    for (;; times_10(&g)) {
        int digit = 0;

        for (; big_compare(&g.rest, &g.one) >= 0; digit++)
            big_subtract(&g.rest, &g.one);
        down = rounds_down(&g);
        up = rounds_up(&g);
        if (down && up)
            up = nearer_up(&g, digit & 1);
        digits->text[digits->count++] = (char)('0' + digit + up);
        if (down || up)
            return;
    }
}

static char *print_integer(char *out, uint64_t value)
{
    char digits[20];
    int count = 0;

    do
        digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count)
        *out++ = digits[--count];
    return out;
}

/* Prints digits from `first` up to before `end`, those not there as zeros. */
static char *print_digits(char *out, const digits_t *digits, int first, int end)
{
    for (int i = first; i < end; i++)
        *out++ = i >= 0 && i < digits->count ? digits->text[i] : '0';
    return out;
}

static char *print_exponent(char *out, int exponent)
{
    int size = exponent < 0 ? -exponent : exponent;

    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    if (size < 10)
        *out++ = '0';
    return print_integer(out, (uint64_t)size);
}

/* Prints a finite number.  Returns where it ends. */
static char *print_double(char *out, double value)
{
    digits_t digits;
    int point;

    if (bits_of(value) >> 63) {
        *out++ = '-';
        value = -value;
    }
    if (value < 0x1p53 && value == (double)(uint64_t)value) {
        out = print_integer(out, (uint64_t)value);
        *out++ = '.';
        *out++ = '0';
        return out;
    }

    generate(bits_of(value), &digits);
    point = digits.magnitude;
    if (point > -4 && point <= 16) {
        int whole = point > 0 ? point : 1;

        /* A zero before the point, where there is no digit. */
        out = print_digits(out, &digits, point - whole, point);
        *out++ = '.';
        return print_digits(out, &digits, point,
                            digits.count > point ? digits.count : point + 1);
    }
    *out++ = digits.text[0];
    if (digits.count > 1) {
        *out++ = '.';
        out = print_digits(out, &digits, 1, digits.count);
    }
    return print_exponent(out, point - 1);
}

#endif
