/*
 * Work with strings: formatting in the manner of printf, reading numbers
 * back, counting words, Base64 both ways, and lines in columns.
 *
 * A round formats records as lines, parses them again and compares, counts
 * and sorts their words, and sends them through Base64.  The result is zero if
 * something does not come back.
 */
#include <stdarg.h>

#include "guest.h"

#define RECORDS 24
#define TEXT 4096
#define WORDS 128

struct record {
    int32_t number;
    uint32_t colour;
    uint64_t size;
    const char *name, *city;
    char grade;
};

static char lines[TEXT], coded[TEXT * 4 / 3 + 8], decoded[TEXT];
static struct record records[RECORDS];

/* --- formatting --- */

struct output {
    char *at, *end;
};

static void put(struct output *out, char c)
{
    if (out->at < out->end)
        *out->at++ = c;
}

static int length_of(const char *s)
{
    int length = 0;

    while (s[length])
        length++;
    return length;
}

struct field {
    int width, precision;
    int left, zero, plus, is_long;
};

static void put_field(struct output *out, const struct field *f, const char *sign,
                      const char *body, int length)
{
    int fill = f->width - length - length_of(sign);

    if (!f->left && !f->zero) {
        for (; fill > 0; fill--)
            put(out, ' ');
    }
    while (*sign)
        put(out, *sign++);
    if (!f->left) {
        for (; fill > 0; fill--)
            put(out, '0');
    }
    for (int i = 0; i < length; i++)
        put(out, body[i]);
    for (; fill > 0; fill--)
        put(out, ' ');
}

static void put_number(struct output *out, struct field *f, uint64_t value,
                       uint32_t base, const char *sign)
{
    char digits[24];
    int at = 24;

    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    while (24 - at < f->precision)
        digits[--at] = '0';
    if (f->left)
        f->zero = 0;
    put_field(out, f, sign, digits + at, 24 - at);
}

static const char *parse_field(const char *format, struct field *f, va_list *args)
{
    *f = (struct field){ .precision = -1 };
    for (;; format++) {
        if (*format == '-')
            f->left = 1;
        else if (*format == '0')
            f->zero = 1;
        else if (*format == '+')
            f->plus = 1;
        else
            break;
    }
    if (*format == '*') {
        f->width = va_arg(*args, int);
        format++;
    }
    for (; *format >= '0' && *format <= '9'; format++)
        f->width = f->width * 10 + *format - '0';
    if (*format == '.') {
        f->precision = 0;
        for (format++; *format >= '0' && *format <= '9'; format++)
            f->precision = f->precision * 10 + *format - '0';
    }
    if (*format == 'l') {
        f->is_long = 1;
        format++;
    }
    return format;
}

static void put_conversion(struct output *out, char conversion, struct field *f,
                           va_list *args)
{
    char character;
    const char *string;
    int64_t value;
    int length;

    switch (conversion) {
    case 'd':
        value = f->is_long ? va_arg(*args, int64_t) : va_arg(*args, int);
        put_number(out, f, value < 0 ? -(uint64_t)value : (uint64_t)value, 10,
                   value < 0 ? "-" : f->plus ? "+" : "");
        break;
    case 'u':
    case 'x':
    case 'o':
        put_number(out, f, f->is_long ? va_arg(*args, uint64_t) : va_arg(*args, uint32_t),
                   conversion == 'u' ? 10 : conversion == 'x' ? 16 : 8, "");
        break;
    case 's':
        string = va_arg(*args, const char *);
        length = length_of(string);
        if (f->precision >= 0 && length > f->precision)
            length = f->precision;
        put_field(out, f, "", string, length);
        break;
    case 'c':
        character = (char)va_arg(*args, int);
        put_field(out, f, "", &character, 1);
        break;
    default:
        put(out, conversion);
    }
}

static void print(struct output *out, const char *format, ...)
{
    va_list args;
    struct field field;

    va_start(args, format);
    for (; *format; format++) {
        if (*format != '%') {
            put(out, *format);
            continue;
        }
        format = parse_field(format + 1, &field, &args);
        put_conversion(out, *format, &field, &args);
    }
    va_end(args);
}

/* --- reading --- */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t read_number(const char **at, int base)
{
    uint64_t value = 0;
    int negative;

    while (**at == ' ')
        (*at)++;
    negative = **at == '-';
    if (**at == '-' || **at == '+')
        (*at)++;
    for (;; (*at)++) {
        int digit = is_digit(**at)                 ? **at - '0'
                    : **at >= 'a' && **at <= 'f' ? **at - 'a' + 10
                                                 : 99;

        if (digit >= base)
            return (int64_t)(negative ? -value : value);
        value = value * (uint64_t)base + (uint64_t)digit;
    }
}

static const char *after(const char *at, char c)
{
    while (*at && *at != c)
        at++;
    return *at ? at + 1 : at;
}

static int starts_with(const char *at, const char *word)
{
    while (*word) {
        if (*at++ != *word++)
            return 0;
    }
    return 1;
}

/* --- records --- */

static void make_records(uint64_t *random)
{
    static const char *const names[] = { "Ada", "Grace", "Edsger", "Barbara",
                                         "Donald", "Niklaus", "Frances", "Alan" };
    static const char *const cities[] = { "Paris", "Oslo", "Lima", "Kyoto", "Accra" };

    for (int i = 0; i < RECORDS; i++) {
        uint64_t r = next_random(random);

        records[i] = (struct record){
            .number = (int32_t)(r & 0xffff) - 0x8000,
            .colour = (uint32_t)(r >> 16) & 0xffffff,
            .size = r >> (r & 31),
            .name = names[r >> 40 & 7],
            .city = cities[(r >> 44) % 5],
            .grade = (char)('A' + (r >> 50) % 6),
        };
    }
}

static int print_records(void)
{
    struct output out = { lines, lines + TEXT - 1 };

    for (int i = 0; i < RECORDS; i++) {
        const struct record *r = &records[i];

        print(&out, "%03d|%-10s|%8.3s|%+6d|#%06x|%lu|%c|%*u|%o%%\n", i, r->name,
              r->city, r->number, r->colour, r->size, r->grade, 5 + i % 4,
              r->colour % 1000, r->colour & 511);
    }
    *out.at = 0;
    return (int)(out.at - lines);
}

static int parse_records(void)
{
    const char *at = lines;

    for (int i = 0; i < RECORDS; i++) {
        const struct record *r = &records[i];

        if (read_number(&at, 10) != i || !starts_with(++at, r->name))
            return 0;
        at = after(after(at, '|'), '|');
        if (read_number(&at, 10) != r->number)
            return 0;
        at = after(at, '#');
        if (read_number(&at, 16) != r->colour)
            return 0;
        at++;
        if ((uint64_t)read_number(&at, 10) != r->size || at[1] != r->grade)
            return 0;
        at = after(at, '\n');
    }
    return 1;
}

/* --- words --- */

struct word {
    const char *start;
    int length, count;
};

static struct word words[WORDS];
static int word_count;

static int compare_words(const struct word *a, const struct word *b)
{
    for (int i = 0; i < a->length && i < b->length; i++) {
        int x = a->start[i] | 32, y = b->start[i] | 32; /* small letters */

        if (x != y)
            return x - y;
    }
    return a->length - b->length;
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Finds a word's place among the sorted ones, and counts or inserts it. */
static void count_word(struct word word)
{
    int low = 0, high = word_count;

    while (low < high) {
        int middle = (low + high) / 2, order = compare_words(&words[middle], &word);

        if (order == 0) {
            words[middle].count++;
            return;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (word_count == WORDS)
        return;
    for (int i = word_count++; i > low; i--)
        words[i] = words[i - 1];
    words[low] = word;
}

static uint64_t count_words(uint64_t hash)
{
    const char *at = lines;

    word_count = 0;
    while (*at) {
        struct word word = { at, 0, 1 };

        while (is_letter(*at))
            at++;
        word.length = (int)(at - word.start);
        if (word.length)
            count_word(word);
        else
            at++;
    }
    for (int i = 0; i < word_count; i++)
        hash = mix(hash, (uint64_t)words[i].count << 8 | (uint8_t)words[i].start[0]);
    return hash;
}

/* --- Base64 --- */

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int encode(int length)
{
    char *to = coded;

    for (int i = 0; i < length; i += 3) {
        int left = length - i;
        uint32_t group = (uint32_t)(uint8_t)lines[i] << 16;

        if (left > 1)
            group |= (uint32_t)(uint8_t)lines[i + 1] << 8;
        if (left > 2)
            group |= (uint8_t)lines[i + 2];
        *to++ = alphabet[group >> 18];
        *to++ = alphabet[group >> 12 & 63];
        *to++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
        *to++ = left > 2 ? alphabet[group & 63] : '=';
    }
    return (int)(to - coded);
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (is_digit(c))
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static int decode(int length)
{
    uint32_t held = 0;
    int bits = 0, to = 0;

    for (int i = 0; i < length && coded[i] != '='; i++) {
        held = held << 6 | (uint32_t)value_of(coded[i]);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            decoded[to++] = (char)(held >> bits);
        }
    }
    return to;
}

static uint64_t one_round(uint64_t *random, uint64_t hash)
{
    int length, coded_length;

    make_records(random);
    length = print_records();
    if (!parse_records())
        return 0;
    hash = count_words(hash);
    coded_length = encode(length);
    if (decode(coded_length) != length)
        return 0;
    for (int i = 0; i < length; i++) {
        if (lines[i] != decoded[i])
            return 0;
    }
    for (int i = 0; i < coded_length; i += 7)
        hash = mix(hash, (uint8_t)coded[i]);
    return hash;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    for (uint64_t n = 0; n < iterations && hash; n++)
        hash = one_round(&random, hash);
    return hash;
}
