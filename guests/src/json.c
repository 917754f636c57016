/*
 * Reading JSON and printing it again.
 *
 * Each round makes a document with eight numbers in many forms, strings and
 * literals.  The document is read and printed without spaces; its numbers are
 * read in double precision and printed as decimal.h says.  Then the same is
 * done with what was printed, which must give the same text and numbers.  The
 * result is a checksum of the texts printed, or zero if one was wrong.
 */
#include "decimal.h"

#define RECORDS 2
#define NUMBERS 4
#define DEEPEST 4
/* Documents take less than 500 bytes. */
#define TEXT_BYTES 512

static char document[TEXT_BYTES];
static char printed[TEXT_BYTES];

/* Where to read and to write next. */
static const char *in;
static char *out;

/* A checksum of the numbers read. */
static uint64_t numbers;

static void put_text(const char *text)
{
    while (*text)
        *out++ = *text++;
}

static void put_integer(uint64_t value)
{
    out = print_integer(out, value);
}

/* Writes random digits; the first is not zero. */
static void put_digits(int count, uint64_t *random)
{
    *out++ = (char)('1' + next_random(random) % 9);
    while (--count)
        *out++ = (char)('0' + next_random(random) % 10);
}

/* The forms of numbers: digits before and after the point, largest exponent. */
static const struct {
    uint8_t whole, fraction;
    uint16_t exponent;
} forms[] = {
    { 1, 0, 0 }, { 4, 0, 0 }, { 3, 2, 0 }, { 1, 6, 0 },
    { 1, 16, 0 }, { 1, 16, 290 }, { 21, 4, 0 }, { 2, 0, 30 },
};

static void put_number(uint64_t *random)
{
    uint64_t bits = next_random(random);
    int form = bits & 7;

    if (bits >> 3 & 1)
        *out++ = '-';
    if ((bits >> 4 & 7) == 0) {
        /* Halfway between two numbers of double precision. */
        put_integer((uint64_t)1 << 53 | next_random(random) >> 11 | 1);
        return;
    }
    put_digits(forms[form].whole, random);
    if (forms[form].fraction) {
        *out++ = '.';
        put_digits(forms[form].fraction, random);
    }
    if (forms[form].exponent) {
        put_text(bits >> 7 & 1 ? "e-" : "E");
        put_integer(next_random(random) % (forms[form].exponent + 1u));
    }
}

static void put_record(uint64_t *random)
{
    static const char literals[4][6] = { "true", "false", "null", "{}" };
    uint64_t bits = next_random(random);

    put_text("{\"id\": ");
    put_integer(bits >> 48);
    put_text(", \"name\": \"na\\u00efve \\\"");
    *out++ = (char)('a' + (bits & 15));
    put_text("\\\"\\n\", \"flag\": ");
    put_text(literals[bits >> 4 & 3]);
    put_text(",\n\t\"values\": [");
    for (int i = 0; i < NUMBERS; i++) {
        if (i)
            put_text(", ");
        put_number(random);
    }
    put_text("]}");
}

static void make_document(uint64_t *random)
{
    out = document;
    put_text("[");
    for (int i = 0; i < RECORDS; i++) {
        if (i)
            put_text(",\n");
        put_record(random);
    }
    put_text("]\n");
    *out = 0;
}

static void skip_spaces(void)
{
    while (*in == ' ' || *in == '\t' || *in == '\n' || *in == '\r')
        in++;
}

/*
 * The functions from here on read something and print it.  They return false
 * if it is not there.
 */

static int copy_letter(char letter)
{
    skip_spaces();
    if (*in != letter)
        return 0;
    *out++ = *in++;
    return 1;
}

static int copy_literal(const char *literal)
{
    for (; *literal; literal++) {
        if (*in++ != *literal)
            return 0;
        *out++ = *literal;
    }
    return 1;
}

static int is_hex_digit(char letter)
{
    return is_digit(letter) || (letter >= 'a' && letter <= 'f') ||
           (letter >= 'A' && letter <= 'F');
}

/* What follows a backslash. */
static int copy_escaped(void)
{
    static const char simple[] = "\"\\/bfnrt";

    if (*in == 'u') {
        *out++ = *in++;
        for (int i = 0; i < 4; i++) {
            if (!is_hex_digit(*in))
                return 0;
            *out++ = *in++;
        }
        return 1;
    }
    for (const char *letter = simple; *letter; letter++) {
        if (*in == *letter) {
            *out++ = *in++;
            return 1;
        }
    }
    return 0;
}

static int copy_string(void)
{
    if (!copy_letter('"'))
        return 0;
    while (*in != '"') {
        char letter = *in;

        if ((unsigned char)letter < ' ')
            return 0;
        *out++ = *in++;
        if (letter == '\\' && !copy_escaped())
            return 0;
    }
    return copy_letter('"');
}

static int copy_number(void)
{
    int negative = *in == '-';
    decimal_t decimal;
    double value;

    in = scan(in + negative, &decimal);
    if (!in)
        return 0;
    value = read_decimal(&decimal);
    if (negative)
        value = -value;
    numbers = mix(numbers, bits_of(value));
    out = print_double(out, value);
    return 1;
}

static int copy_value(int depth);

/* An array, or an object, whose members have names. */
static int copy_members(char open, char close, int depth)
{
    if (!depth || !copy_letter(open))
        return 0;
    if (copy_letter(close))
        return 1;
    do {
        if (open == '{' && !(copy_string() && copy_letter(':')))
            return 0;
        if (!copy_value(depth - 1))
            return 0;
    } while (copy_letter(','));
    return copy_letter(close);
}

static int copy_value(int depth)
{
    skip_spaces();
    switch (*in) {
    case '{':
        return copy_members('{', '}', depth);
    case '[':
        return copy_members('[', ']', depth);
    case '"':
        return copy_string();
    case 't':
        return copy_literal("true");
    case 'f':
        return copy_literal("false");
    case 'n':
        return copy_literal("null");
    default:
        return copy_number();
    }
}

/* Reads one text and prints it as another.  Returns its length, or zero. */
static size_t copy(const char *from, char *to)
{
    in = from;
    out = to;
    numbers = MIX_START;
    if (!copy_value(DEEPEST))
        return 0;
    skip_spaces();
    if (*in)
        return 0;
    *out = 0;
    return (size_t)(out - to);
}

/* The round trip.  Returns the length of the text, or zero if it failed. */
static size_t copy_twice(void)
{
    size_t length = copy(document, printed);
    uint64_t first_numbers = numbers;

    if (!length || copy(printed, document) != length || numbers != first_numbers)
        return 0;
    for (size_t i = 0; i < length; i++) {
        if (document[i] != printed[i])
            return 0;
    }
    return length;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    for (uint64_t n = 0; n < iterations; n++) {
        size_t length;

        make_document(&random);
        length = copy_twice();
        if (!length)
            return 0;
        for (size_t i = 0; i < length; i++)
            hash = mix(hash, (uint8_t)printed[i]);
    }
    return hash;
}
