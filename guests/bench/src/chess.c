/*
 * Chess: a generator of legal moves with bitboards, and perft, which counts
 * the positions after some moves.
 *
 * The start makes tables of attacks.  Each round plays a few random moves
 * from one of several positions, then counts two moves deep.  The result is
 * zero if known counts are wrong.
 */
#include "guest.h"

enum kind { PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING, KINDS, NONE = KINDS };

#define WHITE 0
#define BLACK 1
#define MOST_MOVES 256
#define NO_SQUARE 64

struct position {
    uint64_t pieces[2][KINDS];
    uint64_t of[2]; /* all of a colour */
    uint8_t turn;
    uint8_t castling;   /* bit 2 * colour: short; the next: long */
    uint8_t en_passant; /* the square behind a pawn that moved two, or 64 */
};

struct move {
    uint8_t from, to, kind, captured, promotion, special;
};

enum special { ORDINARY, TWO_STEPS, PASSING, CASTLING };

struct list {
    struct move moves[MOST_MOVES];
    int count;
};

static uint64_t knight_attacks[64], king_attacks[64], pawn_attacks[2][64];
static uint64_t rays[8][64];

/* Directions: the first four go up in squares. */
static const int8_t steps[8][2] = { { 0, 1 }, { 1, 0 }, { 1, 1 }, { -1, 1 },
                                    { 0, -1 }, { -1, 0 }, { -1, -1 }, { 1, -1 } };

static const char *const positions[] = {
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq -",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - -",
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - -",
};

#define POSITIONS (sizeof positions / sizeof positions[0])

/* --- tables --- */

static uint64_t bit_at(int file, int rank)
{
    return file >= 0 && file < 8 && rank >= 0 && rank < 8
               ? 1ull << (8 * rank + file)
               : 0;
}

static void make_tables(void)
{
    static const int8_t jumps[8][2] = { { 1, 2 }, { 2, 1 }, { 2, -1 }, { 1, -2 },
                                        { -1, -2 }, { -2, -1 }, { -2, 1 }, { -1, 2 } };

    for (int square = 0; square < 64; square++) {
        int file = square & 7, rank = square >> 3;

        knight_attacks[square] = king_attacks[square] = 0;
        for (int i = 0; i < 8; i++) {
            int df = steps[i][0], dr = steps[i][1];

            knight_attacks[square] |= bit_at(file + jumps[i][0], rank + jumps[i][1]);
            king_attacks[square] |= bit_at(file + df, rank + dr);
            rays[i][square] = 0;
            for (int n = 1; n < 8; n++)
                rays[i][square] |= bit_at(file + n * df, rank + n * dr);
        }
        pawn_attacks[WHITE][square] = bit_at(file - 1, rank + 1) | bit_at(file + 1, rank + 1);
        pawn_attacks[BLACK][square] = bit_at(file - 1, rank - 1) | bit_at(file + 1, rank - 1);
    }
}

/* --- attacks --- */

static int lowest(uint64_t bits)
{
    return __builtin_ctzll(bits);
}

static uint64_t ray_attacks(int direction, int square, uint64_t occupied)
{
    uint64_t ray = rays[direction][square], hit = ray & occupied;

    if (!hit)
        return ray;
    square = direction < 4 ? lowest(hit) : 63 - __builtin_clzll(hit);
    return ray ^ rays[direction][square];
}

static uint64_t rook_attacks(int square, uint64_t occupied)
{
    return ray_attacks(0, square, occupied) | ray_attacks(1, square, occupied) |
           ray_attacks(4, square, occupied) | ray_attacks(5, square, occupied);
}

static uint64_t bishop_attacks(int square, uint64_t occupied)
{
    return ray_attacks(2, square, occupied) | ray_attacks(3, square, occupied) |
           ray_attacks(6, square, occupied) | ray_attacks(7, square, occupied);
}

static uint64_t attacks_of(enum kind kind, int square, uint64_t occupied)
{
    switch (kind) {
    case KNIGHT: return knight_attacks[square];
    case BISHOP: return bishop_attacks(square, occupied);
    case ROOK: return rook_attacks(square, occupied);
    case QUEEN: return bishop_attacks(square, occupied) | rook_attacks(square, occupied);
    default: return king_attacks[square];
    }
}

static int is_attacked(const struct position *p, int square, int by)
{
    const uint64_t *them = p->pieces[by];
    uint64_t occupied = p->of[WHITE] | p->of[BLACK];

    return (pawn_attacks[!by][square] & them[PAWN]) ||
           (knight_attacks[square] & them[KNIGHT]) ||
           (king_attacks[square] & them[KING]) ||
           (bishop_attacks(square, occupied) & (them[BISHOP] | them[QUEEN])) ||
           (rook_attacks(square, occupied) & (them[ROOK] | them[QUEEN]));
}

/* --- moves --- */

static int kind_at(const struct position *p, int colour, int square)
{
    int kind = 0;

    while (kind < KINDS && !(p->pieces[colour][kind] >> square & 1))
        kind++;
    return kind;
}

static void add(struct list *list, const struct position *p, int from, int to,
                int kind, int promotion, int special)
{
    int captured = special == PASSING ? PAWN : kind_at(p, !p->turn, to);

    list->moves[list->count++] =
        (struct move){ (uint8_t)from,     (uint8_t)to,        (uint8_t)kind,
                       (uint8_t)captured, (uint8_t)promotion, (uint8_t)special };
}

static void add_pawn(struct list *list, const struct position *p, int from,
                     int to, int special)
{
    if (to < 8 || to >= 56) {
        for (int promotion = KNIGHT; promotion <= QUEEN; promotion++)
            add(list, p, from, to, PAWN, promotion, special);
    } else {
        add(list, p, from, to, PAWN, NONE, special);
    }
}

static void pawn_moves(const struct position *p, struct list *list)
{
    int us = p->turn, forward = us == WHITE ? 8 : -8;
    uint64_t occupied = p->of[WHITE] | p->of[BLACK];

    for (uint64_t pawns = p->pieces[us][PAWN]; pawns; pawns &= pawns - 1) {
        int from = lowest(pawns), to = from + forward;
        uint64_t captures = pawn_attacks[us][from];

        if (!(occupied >> to & 1)) {
            add_pawn(list, p, from, to, ORDINARY);
            if (from >> 3 == (us == WHITE ? 1 : 6) && !(occupied >> (to + forward) & 1))
                add_pawn(list, p, from, to + forward, TWO_STEPS);
        }
        if (p->en_passant != NO_SQUARE && (captures >> p->en_passant & 1))
            add_pawn(list, p, from, p->en_passant, PASSING);
        for (captures &= p->of[!us]; captures; captures &= captures - 1)
            add_pawn(list, p, from, lowest(captures), ORDINARY);
    }
}

static void castling_moves(const struct position *p, struct list *list)
{
    int us = p->turn, king = us == WHITE ? 4 : 60;
    uint64_t occupied = p->of[WHITE] | p->of[BLACK];

    if (!(p->castling >> 2 * us & 3) || is_attacked(p, king, !us))
        return;
    if ((p->castling >> 2 * us & 1) && !(occupied >> king & 6) &&
        !is_attacked(p, king + 1, !us))
        add(list, p, king, king + 2, KING, NONE, CASTLING);
    if ((p->castling >> 2 * us & 2) && !(occupied >> (king - 3) & 7) &&
        !is_attacked(p, king - 1, !us))
        add(list, p, king, king - 2, KING, NONE, CASTLING);
}

static void all_moves(const struct position *p, struct list *list)
{
    int us = p->turn;
    uint64_t occupied = p->of[WHITE] | p->of[BLACK];

    list->count = 0;
    pawn_moves(p, list);
    for (int kind = KNIGHT; kind <= KING; kind++) {
        for (uint64_t from = p->pieces[us][kind]; from; from &= from - 1) {
            int square = lowest(from);
            uint64_t to = attacks_of((enum kind)kind, square, occupied) & ~p->of[us];

            for (; to; to &= to - 1)
                add(list, p, square, lowest(to), kind, NONE, ORDINARY);
        }
    }
    castling_moves(p, list);
}

static void flip(struct position *p, int colour, int kind, int square)
{
    p->pieces[colour][kind] ^= 1ull << square;
    p->of[colour] ^= 1ull << square;
}

/* The rights that are lost when something leaves or enters a square. */
static uint8_t rights_of(int square)
{
    switch (square) {
    case 0: return 2;
    case 4: return 3;
    case 7: return 1;
    case 56: return 8;
    case 60: return 12;
    case 63: return 4;
    default: return 0;
    }
}

/* Returns zero if the move leaves the king in check. */
static int play(struct position *p, const struct move *m)
{
    int us = p->turn, behind = us == WHITE ? -8 : 8;

    if (m->captured != NONE)
        flip(p, !us, m->captured, m->special == PASSING ? m->to + behind : m->to);
    flip(p, us, m->kind, m->from);
    flip(p, us, m->promotion != NONE ? m->promotion : m->kind, m->to);
    if (m->special == CASTLING) {
        flip(p, us, ROOK, m->to > m->from ? m->to + 1 : m->to - 2);
        flip(p, us, ROOK, (m->to + m->from) / 2);
    }
    p->en_passant = m->special == TWO_STEPS ? (uint8_t)(m->to + behind) : NO_SQUARE;
    p->castling &= (uint8_t)~(rights_of(m->from) | rights_of(m->to));
    p->turn = (uint8_t)!us;
    return !is_attacked(p, lowest(p->pieces[us][KING]), !us);
}

static uint64_t perft(const struct position *p, int depth)
{
    struct list list;
    uint64_t count = 0;

    all_moves(p, &list);
    for (int i = 0; i < list.count; i++) {
        struct position next = *p;

        if (play(&next, &list.moves[i]))
            count += depth == 1 ? 1 : perft(&next, depth - 1);
    }
    return count;
}

/* --- positions as text --- */

static void set_position(struct position *p, const char *text)
{
    static const char letters[] = "PNBRQKpnbrqk", rights[] = "KQkq";
    int square = 56;

    *p = (struct position){ .en_passant = NO_SQUARE };
    for (; *text != ' '; text++) {
        if (*text == '/') {
            square -= 16;
        } else if (*text <= '8') {
            square += *text - '0';
        } else {
            int i = 0;

            while (letters[i] != *text)
                i++;
            flip(p, i / 6, i % 6, square++);
        }
    }
    p->turn = text[1] == 'b';
    for (text += 3; *text != ' '; text++) {
        for (int i = 0; i < 4; i++)
            p->castling |= (uint8_t)((*text == rights[i]) << i);
    }
}

static int check_counts(void)
{
    static const uint16_t counts[POSITIONS] = { 400, 2039, 191, 2079 };

    for (size_t i = 0; i < POSITIONS; i++) {
        struct position p;

        set_position(&p, positions[i]);
        if (perft(&p, 2) != counts[i])
            return 0;
    }
    return 1;
}

static void play_randomly(struct position *p, uint64_t *random, int moves)
{
    struct list list;

    for (int n = 0; n < moves; n++) {
        struct position next = *p;

        all_moves(p, &list);
        if (list.count && play(&next, &list.moves[next_random(random) %
                                                  (uint64_t)list.count]))
            *p = next;
    }
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    make_tables();
    if (!check_counts())
        return 0;
    for (uint64_t n = 0; n < iterations; n++) {
        struct position p;

        set_position(&p, positions[n % POSITIONS]);
        play_randomly(&p, &random, 6);
        hash = mix(hash, perft(&p, 2));
        hash = mix(hash, p.of[WHITE] ^ p.of[BLACK]);
    }
    return hash;
}
