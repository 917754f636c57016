/*
 * Sparse systems in double precision: conjugate gradients with a
 * preconditioner, Gauss-Seidel, Jacobi's method with a grid of its own, and
 * the largest eigenvalue by powers.
 *
 * A round makes a matrix of a grid of springs with some far connections, in
 * rows of indices and values, and solves it in each way.
 */
#include "guest.h"

#define SIDE 12
#define N (SIDE * SIDE)
#define MOST (N * 8)

static int first[N + 1], columns[MOST];
static double values[MOST], diagonal[N];
static double b[N], x[N], r[N], z[N], p[N], q[N];
static double grid[2][SIDE + 2][SIDE + 2];

static double fraction(uint64_t *random)
{
    return (double)(next_random(random) >> 11) * 0x1p-53;
}

/* --- the matrix --- */

static int count;

static void put(int row, int column, double value)
{
    if (column < 0 || column >= N || count >= MOST)
        return;
    columns[count] = column;
    values[count++] = value;
    diagonal[row] -= value;
}

/* The far partner of a row; partners are partners of each other. */
static int partner(int row, uint64_t key)
{
    return row ^ (int)(1 + key % 127);
}

static void make_matrix(uint64_t *random)
{
    uint64_t key = next_random(random);
    double far = -0.05 - 0.1 * fraction(random);

    count = 0;
    for (int row = 0; row < N; row++) {
        int across = row % SIDE, self;

        first[row] = count;
        diagonal[row] = 0.2;
        put(row, row - SIDE, -1.0);
        if (across > 0)
            put(row, row - 1, -0.9);
        self = count++;
        columns[self] = row;
        if (across < SIDE - 1)
            put(row, row + 1, -0.9);
        put(row, row + SIDE, -1.0);
        put(row, partner(row, key), far);
        values[self] = diagonal[row];
        b[row] = fraction(random) - 0.5;
    }
    first[N] = count;
}

static void multiply(const double *v, double *to)
{
    for (int row = 0; row < N; row++) {
        double sum = 0.0;

        for (int i = first[row]; i < first[row + 1]; i++)
            sum += values[i] * v[columns[i]];
        to[row] = sum;
    }
}

static double dot(const double *v, const double *w)
{
    double sum = 0.0;

    for (int i = 0; i < N; i++)
        sum += v[i] * w[i];
    return sum;
}

/* --- conjugate gradients; returns the steps --- */

static int conjugate_gradients(void)
{
    double rho;
    int steps = 0;

    for (int i = 0; i < N; i++) {
        x[i] = 0.0;
        r[i] = b[i];
        p[i] = z[i] = r[i] / diagonal[i];
    }
    rho = dot(r, z);
    while (rho > 1e-20 && steps < 200) {
        double alpha, next;

        multiply(p, q);
        alpha = rho / dot(p, q);
        for (int i = 0; i < N; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            z[i] = r[i] / diagonal[i];
        }
        next = dot(r, z);
        for (int i = 0; i < N; i++)
            p[i] = z[i] + next / rho * p[i];
        rho = next;
        steps++;
    }
    return steps;
}

static double gauss_seidel(int sweeps)
{
    double change = 0.0;

    for (int i = 0; i < N; i++)
        z[i] = 0.0;
    while (sweeps--) {
        change = 0.0;
        for (int row = 0; row < N; row++) {
            double sum = b[row], old = z[row];

            for (int i = first[row]; i < first[row + 1]; i++) {
                if (columns[i] != row)
                    sum -= values[i] * z[columns[i]];
            }
            z[row] = sum / diagonal[row];
            change += __builtin_fabs(z[row] - old);
        }
    }
    return change;
}

/* Heat on a plate whose edges have a temperature. */
static double jacobi(int sweeps)
{
    for (int i = 0; i < SIDE + 2; i++) {
        for (int j = 0; j < SIDE + 2; j++)
            grid[0][i][j] = grid[1][i][j] = i == 0 ? 1.0 : j == 0 ? x[i % N] : 0.0;
    }
    for (int n = 0; n < sweeps; n++) {
        double(*from)[SIDE + 2] = grid[n & 1], (*to)[SIDE + 2] = grid[~n & 1];

        for (int i = 1; i <= SIDE; i++) {
            for (int j = 1; j <= SIDE; j++)
                to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] +
                                   from[i][j + 1]);
        }
    }
    return grid[sweeps & 1][SIDE / 2][SIDE / 2];
}

static double largest_eigenvalue(int steps)
{
    double length = 0.0;

    for (int i = 0; i < N; i++)
        p[i] = 1.0 + 0.01 * i;
    while (steps--) {
        multiply(p, q);
        length = __builtin_sqrt(dot(q, q));
        for (int i = 0; i < N; i++)
            p[i] = q[i] / length;
    }
    return length;
}

static uint64_t mix_double(uint64_t hash, double value)
{
    uint64_t bits;

    __builtin_memcpy(&bits, &value, sizeof bits);
    return mix(hash, bits);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    for (uint64_t n = 0; n < iterations; n++) {
        make_matrix(&random);
        hash = mix(hash, (uint64_t)conjugate_gradients());
        for (int i = 0; i < N; i += 7)
            hash = mix_double(hash, x[i]);
        hash = mix_double(hash, gauss_seidel(10));
        hash = mix_double(hash, jacobi(20));
        hash = mix_double(hash, largest_eigenvalue(12));
    }
    return hash;
}
