/*
 * Cellular automata drawn as text: the Game of Life on a torus of bytes,
 * Wireworld, and Langton's ant; frames are drawn, compressed by runs and
 * compared with frames before.
 */
#include "guest.h"

#define WIDTH 64
#define HEIGHT 48
#define ANTS 3

static uint8_t cells[HEIGHT][WIDTH], sums[HEIGHT][WIDTH];
static uint8_t wires[2][HEIGHT][WIDTH];
static uint8_t trail[HEIGHT][WIDTH];
static char frame[HEIGHT * (WIDTH + 1) + 1], before[HEIGHT * (WIDTH + 1) + 1];
static char runs[2 * sizeof frame];

struct ant {
    int x, y, direction;
};

static struct ant ants[ANTS];

/* --- Life --- */

/* Sums of three cells in a row. */
static void sum_rows(void)
{
    for (int y = 0; y < HEIGHT; y++) {
        const uint8_t *row = cells[y];

        sums[y][0] = (uint8_t)(row[WIDTH - 1] + row[0] + row[1]);
        for (int x = 1; x < WIDTH - 1; x++)
            sums[y][x] = (uint8_t)(row[x - 1] + row[x] + row[x + 1]);
        sums[y][WIDTH - 1] = (uint8_t)(row[WIDTH - 2] + row[WIDTH - 1] + row[0]);
    }
}

static void live(void)
{
    sum_rows();
    for (int y = 0; y < HEIGHT; y++) {
        const uint8_t *above = sums[(y + HEIGHT - 1) % HEIGHT];
        const uint8_t *here = sums[y], *below = sums[(y + 1) % HEIGHT];

        for (int x = 0; x < WIDTH; x++) {
            uint8_t all = (uint8_t)(above[x] + here[x] + below[x]);

            cells[y][x] = all == 3 || (all == 4 && cells[y][x]);
        }
    }
}

/* --- Wireworld: 0 nothing, 1 wire, 2 head of an electron, 3 its tail --- */

static int heads_around(uint8_t from[HEIGHT][WIDTH], int y, int x)
{
    int count = 0;

    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++)
            count += from[(y + dy + HEIGHT) % HEIGHT][(x + dx + WIDTH) % WIDTH] == 2;
    }
    return count;
}

static void conduct(uint8_t from[HEIGHT][WIDTH], uint8_t to[HEIGHT][WIDTH])
{
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            int heads;

            switch (from[y][x]) {
            case 0:
                to[y][x] = 0;
                break;
            case 1:
                heads = heads_around(from, y, x);
                to[y][x] = heads == 1 || heads == 2 ? 2 : 1;
                break;
            case 2:
                to[y][x] = 3;
                break;
            default:
                to[y][x] = 1;
            }
        }
    }
}

/* --- Langton's ants --- */

static void walk(struct ant *ant)
{
    static const int8_t steps[4][2] = { { 0, -1 }, { 1, 0 }, { 0, 1 }, { -1, 0 } };
    uint8_t *cell = &trail[ant->y][ant->x];

    ant->direction = (ant->direction + (*cell ? 3 : 1)) & 3;
    *cell ^= 1;
    ant->x = (ant->x + steps[ant->direction][0] + WIDTH) % WIDTH;
    ant->y = (ant->y + steps[ant->direction][1] + HEIGHT) % HEIGHT;
}

/* --- frames --- */

static int draw(uint8_t wire[HEIGHT][WIDTH])
{
    char *to = frame;

    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++)
            *to++ = cells[y][x] ? '#' : trail[y][x] ? '+' : " .oO"[wire[y][x]];
        *to++ = '\n';
    }
    return (int)(to - frame);
}

/* Runs of a character as a number and the character. */
static int compress(int length)
{
    char *to = runs;

    for (int i = 0; i < length;) {
        int run = 1;

        while (i + run < length && frame[i + run] == frame[i] && run < 99)
            run++;
        if (run >= 10)
            *to++ = (char)('0' + run / 10);
        if (run > 1)
            *to++ = (char)('0' + run % 10);
        *to++ = frame[i];
        i += run;
    }
    return (int)(to - runs);
}

static int changes(int length)
{
    int count = 0;

    for (int i = 0; i < length; i++) {
        count += frame[i] != before[i];
        before[i] = frame[i];
    }
    return count;
}

/* --- the start --- */

static void scatter(uint64_t *random)
{
    for (int y = 0; y < HEIGHT; y++) {
        uint64_t row = next_random(random) & next_random(random);

        for (int x = 0; x < WIDTH; x++) {
            cells[y][x] = row >> x & 1;
            trail[y][x] = 0;
            /* Rings of wire. */
            wires[0][y][x] = (y % 8 == 1 || y % 8 == 6) && x % 16 < 14 ? 1
                             : (x % 16 == 0 || x % 16 == 13) && y % 8 > 0 && y % 8 < 7;
        }
        if (y % 8 == 1) {
            wires[0][y][(row >> 8) % 12 + 1] = 2;
            wires[0][y][(row >> 8) % 12 + 2] = 3;
        }
    }
    for (int i = 0; i < ANTS; i++)
        ants[i] = (struct ant){ (int)(next_random(random) % WIDTH),
                                (int)(next_random(random) % HEIGHT), i };
    for (size_t i = 0; i < sizeof before; i++)
        before[i] = 0;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    scatter(&random);
    for (uint64_t n = 0; n < iterations; n++) {
        int length, packed;

        /* Something new now and then, for what has died. */
        cells[n % HEIGHT][random % WIDTH] ^= 1;
        next_random(&random);
        live();
        conduct(wires[n & 1], wires[~n & 1]);
        for (int i = 0; i < 30; i++)
            walk(&ants[i % ANTS]);
        length = draw(wires[~n & 1]);
        packed = compress(length);
        hash = mix(mix(hash, (uint64_t)packed), (uint64_t)changes(length));
        for (int i = 0; i < packed; i += 13)
            hash = mix(hash, (uint8_t)runs[i]);
    }
    return hash;
}
