/*
 * Dynamic programming: edit distance with the edits, the longest common and
 * the longest increasing subsequence, a knapsack, matrix chains, and the ways
 * to give change.
 */
#include "guest.h"

#define LENGTH 96
#define ITEMS 40
#define CAPACITY 400
#define CHAIN 24

static uint8_t a[LENGTH], b[LENGTH];
static uint16_t distance[LENGTH + 1][LENGTH + 1];
static uint32_t chain[CHAIN][CHAIN];

static int least_of(int x, int y, int z)
{
    int least = x < y ? x : y;

    return least < z ? least : z;
}

static void edit_distances(int n, int m)
{
    for (int i = 0; i <= n; i++)
        distance[i][0] = (uint16_t)i;
    for (int j = 0; j <= m; j++)
        distance[0][j] = (uint16_t)j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int replace = distance[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

            distance[i][j] = (uint16_t)least_of(replace, distance[i - 1][j] + 1,
                                                distance[i][j - 1] + 1);
        }
    }
}

/* Walks back from the end and folds the edits into a checksum. */
static uint64_t edits(int i, int j, uint64_t hash)
{
    while (i > 0 || j > 0) {
        int here = distance[i][j];

        if (i > 0 && j > 0 && a[i - 1] == b[j - 1] && here == distance[i - 1][j - 1]) {
            i--, j--;
        } else if (i > 0 && j > 0 && here == distance[i - 1][j - 1] + 1) {
            hash = mix(hash, (uint64_t)a[i - 1] << 8 | b[j - 1]);
            i--, j--;
        } else if (i > 0 && here == distance[i - 1][j] + 1) {
            hash = mix(hash, (uint64_t)a[--i] << 16);
        } else {
            hash = mix(hash, (uint64_t)b[--j] << 24);
        }
    }
    return hash;
}

/* Two rows are enough for the length alone. */
static int common_subsequence(int n, int m)
{
    uint16_t rows[2][LENGTH + 1] = { { 0 } };

    for (int i = 1; i <= n; i++) {
        uint16_t *above = rows[~i & 1], *row = rows[i & 1];

        row[0] = 0;
        for (int j = 1; j <= m; j++) {
            if (a[i - 1] == b[j - 1])
                row[j] = (uint16_t)(above[j - 1] + 1);
            else
                row[j] = above[j] > row[j - 1] ? above[j] : row[j - 1];
        }
    }
    return rows[n & 1][m];
}

static int increasing_subsequence(const uint8_t *v, int n)
{
    uint8_t ends[LENGTH];
    int length = 0;

    for (int i = 0; i < n; i++) {
        int low = 0, high = length;

        while (low < high) {
            int middle = (low + high) / 2;

            if (ends[middle] < v[i])
                low = middle + 1;
            else
                high = middle;
        }
        ends[low] = v[i];
        length += low == length;
    }
    return length;
}

static uint32_t knapsack(uint64_t *random)
{
    static uint32_t best[CAPACITY + 1];

    for (int w = 0; w <= CAPACITY; w++)
        best[w] = 0;
    for (int item = 0; item < ITEMS; item++) {
        uint64_t r = next_random(random);
        int weight = 1 + (int)(r % 60);
        uint32_t value = (uint32_t)(r >> 32) % 1000;

        for (int w = CAPACITY; w >= weight; w--) {
            uint32_t with = best[w - weight] + value;

            if (with > best[w])
                best[w] = with;
        }
    }
    return best[CAPACITY];
}

static uint32_t matrix_chain(uint64_t *random)
{
    uint32_t sizes[CHAIN + 1];

    for (int i = 0; i <= CHAIN; i++)
        sizes[i] = 1 + (uint32_t)next_random(random) % 50;
    for (int i = 0; i < CHAIN; i++)
        chain[i][i] = 0;
    for (int length = 1; length < CHAIN; length++) {
        for (int i = 0; i + length < CHAIN; i++) {
            uint32_t best = UINT32_MAX;

            for (int k = i; k < i + length; k++) {
                uint32_t cost = chain[i][k] + chain[k + 1][i + length] +
                                sizes[i] * sizes[k + 1] * sizes[i + length + 1];

                if (cost < best)
                    best = cost;
            }
            chain[i][i + length] = best;
        }
    }
    return chain[0][CHAIN - 1];
}

static uint64_t ways_to_change(int amount)
{
    static const int coins[] = { 1, 2, 5, 10, 20, 50, 100, 200 };
    uint64_t ways[301] = { 1 };

    for (int i = 0; i < 8; i++) {
        for (int sum = coins[i]; sum <= amount; sum++)
            ways[sum] += ways[sum - coins[i]];
    }
    return ways[amount];
}

/* The second text is the first with some letters changed, gone or new. */
static void make_texts(uint64_t *random)
{
    int to = 0;

    for (int i = 0; i < LENGTH; i++)
        a[i] = (uint8_t)('a' + next_random(random) % 20);
    for (int i = 0; i < LENGTH && to < LENGTH; i++) {
        uint64_t r = next_random(random);

        if (r % 8 == 0)
            continue;
        if (r % 8 == 1)
            b[to++] = (uint8_t)('a' + (r >> 8) % 20);
        if (to < LENGTH)
            b[to++] = r % 8 == 2 ? (uint8_t)('a' + (r >> 8) % 20) : a[i];
    }
    while (to < LENGTH)
        b[to++] = 'z';
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    for (uint64_t n = 0; n < iterations; n++) {
        int length = LENGTH - (int)(n % 5);

        make_texts(&random);
        edit_distances(LENGTH, length);
        hash = edits(LENGTH, length, mix(hash, distance[LENGTH][length]));
        hash = mix(hash, (uint64_t)common_subsequence(LENGTH, length));
        hash = mix(hash, (uint64_t)increasing_subsequence(a, LENGTH));
        hash = mix(hash, knapsack(&random));
        hash = mix(hash, matrix_chain(&random));
        hash = mix(hash, ways_to_change(100 + (int)(random % 200)));
    }
    return hash;
}
