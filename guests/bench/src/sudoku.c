/*
 * A solver of sudoku: candidates as bits, rules applied until nothing
 * changes, then a guess at the cell with the fewest candidates.
 *
 * Each round takes a known puzzle and changes its looks: digits, rows,
 * columns and bands in another order, and perhaps turned.  Solutions are
 * counted up to two.
 */
#include "guest.h"

#define CELLS 81
#define ALL 0x1ff

struct board {
    uint16_t candidates[CELLS];
    uint16_t rows[9], columns[9], boxes[9]; /* digits that are placed */
    int empty;
    uint8_t placed[CELLS];
};

static const char *const puzzles[] = {
    "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79",
    "..9748...7.........2.1.9.....7...24..64.1.59..98...3.....8.3.2.........6...2759..",
    "1....7.9..3..2...8..96..5....53..9...1..8...26....4...3......1..4......7..7...3..",
    "4.....8.5.3..........7......2.....6.....8.4......1.......6.3.7.5..2.....1.4......",
    "....14....3....2...7..........9...3.6.1.............8.2.....1.4....5.6.....7.8...",
};

#define PUZZLES (sizeof puzzles / sizeof puzzles[0])

static uint64_t nodes;
static uint8_t solution[CELLS];

static int bits(uint32_t x)
{
    int count = 0;

    for (; x; x &= x - 1)
        count++;
    return count;
}

static int box_of(int cell)
{
    return cell / 27 * 3 + cell % 9 / 3;
}

static int place(struct board *b, int cell, uint16_t digit)
{
    int row = cell / 9, column = cell % 9, box = box_of(cell);

    if (!(b->candidates[cell] & digit) ||
        ((b->rows[row] | b->columns[column] | b->boxes[box]) & digit))
        return 0;
    b->rows[row] |= digit;
    b->columns[column] |= digit;
    b->boxes[box] |= digit;
    b->candidates[cell] = digit;
    b->placed[cell] = 1;
    b->empty--;
    return 1;
}

/* Cells with one candidate left.  Returns -1 if a cell has none. */
static int naked_singles(struct board *b)
{
    int changed = 0;

    for (int cell = 0; cell < CELLS; cell++) {
        uint16_t left;

        if (b->placed[cell])
            continue;
        left = b->candidates[cell] & (uint16_t)~(b->rows[cell / 9] |
                                                 b->columns[cell % 9] |
                                                 b->boxes[box_of(cell)]);
        if (!left)
            return -1;
        b->candidates[cell] = left;
        if (!(left & (left - 1))) {
            if (!place(b, cell, left))
                return -1;
            changed = 1;
        }
    }
    return changed;
}

static int cell_of(int kind, int group, int i)
{
    switch (kind) {
    case 0: return group * 9 + i;
    case 1: return i * 9 + group;
    default: return group / 3 * 27 + group % 3 * 3 + i / 3 * 9 + i % 3;
    }
}

/* Digits that fit in one cell of a row, column or box only. */
static int hidden_singles(struct board *b)
{
    int changed = 0;

    for (int kind = 0; kind < 3; kind++) {
        for (int group = 0; group < 9; group++) {
            uint16_t once = 0, twice = 0, there = 0;

            for (int i = 0; i < 9; i++) {
                int cell = cell_of(kind, group, i);

                twice |= once & b->candidates[cell];
                once |= b->candidates[cell];
                if (b->placed[cell])
                    there |= b->candidates[cell];
            }
            if (once != ALL)
                return -1;
            once &= (uint16_t)~(twice | there);
            for (int i = 0; i < 9 && once; i++) {
                int cell = cell_of(kind, group, i);
                uint16_t digit = b->candidates[cell] & once;

                if (!digit || b->placed[cell])
                    continue;
                if (digit & (digit - 1) || !place(b, cell, digit))
                    return -1;
                once &= (uint16_t)~digit;
                changed = 1;
            }
        }
    }
    return changed;
}

static int propagate(struct board *b)
{
    for (;;) {
        int a = naked_singles(b), c;

        if (a < 0)
            return 0;
        if (a)
            continue;
        c = hidden_singles(b);
        if (c < 0)
            return 0;
        if (!c)
            return 1;
    }
}

static int solve(struct board *b, int limit)
{
    int best = -1, fewest = 10, found = 0;
    uint16_t choices;

    nodes++;
    if (!propagate(b))
        return 0;
    if (b->empty == 0) {
        for (int cell = 0; cell < CELLS; cell++)
            solution[cell] = (uint8_t)bits(b->candidates[cell] - 1u);
        return 1;
    }
    for (int cell = 0; cell < CELLS; cell++) {
        int count = b->placed[cell] ? 10 : bits(b->candidates[cell]);

        if (count < fewest) {
            fewest = count;
            best = cell;
        }
    }
    for (choices = b->candidates[best]; choices && found < limit;
         choices &= choices - 1) {
        struct board next = *b;

        if (place(&next, best, choices & (uint16_t)-choices))
            found += solve(&next, limit - found);
    }
    return found;
}

/* An order of nine rows that keeps bands together. */
static void shuffle_lines(uint8_t *to, uint64_t r)
{
    static const uint8_t orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                          { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    const uint8_t *bands = orders[r % 6];

    for (int i = 0; i < 9; i++) {
        const uint8_t *within = orders[(r >> (8 + 8 * (i / 3)) & 255) % 6];

        to[i] = (uint8_t)(bands[i / 3] * 3 + within[i % 3]);
    }
}

static void set_up(struct board *b, const char *puzzle, uint64_t *random)
{
    uint8_t rows[9], columns[9], digits[9];
    uint64_t r = next_random(random);

    shuffle_lines(rows, next_random(random));
    shuffle_lines(columns, next_random(random));
    for (int i = 0; i < 9; i++)
        digits[i] = (uint8_t)((i + r % 9) % 9);
    *b = (struct board){ .empty = CELLS };
    for (int cell = 0; cell < CELLS; cell++)
        b->candidates[cell] = ALL;
    for (int cell = 0; cell < CELLS; cell++) {
        int from = rows[cell / 9] * 9 + columns[cell % 9];
        int to = r >> 32 & 1 ? cell % 9 * 9 + cell / 9 : cell;

        if (puzzle[from] != '.')
            place(b, to, (uint16_t)(1u << digits[puzzle[from] - '1']));
    }
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;
    struct board board;

    nodes = 0;
    for (uint64_t n = 0; n < iterations; n++) {
        set_up(&board, puzzles[(input + n) % PUZZLES], &random);
        hash = mix(hash, (uint64_t)solve(&board, 2));
        for (int cell = 0; cell < CELLS; cell++)
            hash = mix(hash, solution[cell]);
    }
    return mix(hash, nodes);
}
