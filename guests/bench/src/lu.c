/*
 * Linear equations in double precision: LU decomposition with pivoting,
 * solving, the inverse and the determinant; a QR decomposition by Householder
 * of the same matrix; and a Cholesky decomposition of its square.
 */
#include "guest.h"

#define N 32

static double original[N][N], lu[N][N], qr[N][N], square[N][N], inverse[N][N];
static double right[N], solution[N];
static int order[N];

static double fraction(uint64_t *random)
{
    return (double)(int64_t)next_random(random) * 0x1p-63;
}

/* --- LU --- */

/* Returns the sign of the rows' permutation, or 0 for a singular matrix. */
static int decompose(void)
{
    int sign = 1;

    for (int i = 0; i < N; i++)
        order[i] = i;
    for (int k = 0; k < N; k++) {
        int pivot = k;

        for (int i = k + 1; i < N; i++) {
            if (__builtin_fabs(lu[i][k]) > __builtin_fabs(lu[pivot][k]))
                pivot = i;
        }
        if (lu[pivot][k] == 0.0)
            return 0;
        if (pivot != k) {
            int old = order[k];

            for (int j = 0; j < N; j++) {
                double moved = lu[k][j];

                lu[k][j] = lu[pivot][j];
                lu[pivot][j] = moved;
            }
            order[k] = order[pivot];
            order[pivot] = old;
            sign = -sign;
        }
        for (int i = k + 1; i < N; i++) {
            double factor = lu[i][k] /= lu[k][k];

            for (int j = k + 1; j < N; j++)
                lu[i][j] -= factor * lu[k][j];
        }
    }
    return sign;
}

static void solve(const double *b, double *x)
{
    for (int i = 0; i < N; i++) {
        double sum = b[order[i]];

        for (int j = 0; j < i; j++)
            sum -= lu[i][j] * x[j];
        x[i] = sum;
    }
    for (int i = N - 1; i >= 0; i--) {
        double sum = x[i];

        for (int j = i + 1; j < N; j++)
            sum -= lu[i][j] * x[j];
        x[i] = sum / lu[i][i];
    }
}

static void invert(void)
{
    for (int column = 0; column < N; column++) {
        double unit[N] = { 0 }, x[N];

        unit[column] = 1.0;
        solve(unit, x);
        for (int i = 0; i < N; i++)
            inverse[i][column] = x[i];
    }
}

/* How far the inverse is from one: the largest element of A * A' - I. */
static double error_of_inverse(void)
{
    double worst = 0.0;

    for (int i = 0; i < N; i++) {
        double row[N] = { 0 };

        for (int k = 0; k < N; k++) {
            for (int j = 0; j < N; j++)
                row[j] += original[i][k] * inverse[k][j];
        }
        row[i] -= 1.0;
        for (int j = 0; j < N; j++) {
            if (__builtin_fabs(row[j]) > worst)
                worst = __builtin_fabs(row[j]);
        }
    }
    return worst;
}

/* --- QR --- */

/* Reflects the columns right of k so that column k is zero below it. */
static void reflect(int k)
{
    double v[N], length = 0.0, projections[N] = { 0 }, norm = 0.0;

    for (int i = k; i < N; i++) {
        v[i] = qr[i][k];
        length += v[i] * v[i];
    }
    length = __builtin_sqrt(length);
    v[k] += v[k] < 0.0 ? -length : length;
    for (int i = k; i < N; i++)
        norm += v[i] * v[i];
    if (norm == 0.0)
        return;
    for (int i = k; i < N; i++) {
        for (int j = k; j < N; j++)
            projections[j] += v[i] * qr[i][j];
    }
    for (int i = k; i < N; i++) {
        double factor = 2.0 * v[i] / norm;

        for (int j = k; j < N; j++)
            qr[i][j] -= factor * projections[j];
    }
}

/* --- Cholesky --- */

static void make_square(void)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            double sum = i == j ? 1.0 : 0.0;

            for (int k = 0; k < N; k++)
                sum += original[i][k] * original[j][k];
            square[i][j] = sum;
        }
    }
}

static double cholesky(void)
{
    double product = 1.0;

    for (int j = 0; j < N; j++) {
        double root;

        for (int k = 0; k < j; k++) {
            for (int i = j; i < N; i++)
                square[i][j] -= square[i][k] * square[j][k];
        }
        root = __builtin_sqrt(square[j][j]);
        product *= root;
        for (int i = j; i < N; i++)
            square[i][j] /= root;
    }
    return product;
}

/* --- a round --- */

static uint64_t mix_double(uint64_t hash, double value)
{
    uint64_t bits;

    __builtin_memcpy(&bits, &value, sizeof bits);
    return mix(hash, bits);
}

static void make_matrix(uint64_t *random)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            original[i][j] = lu[i][j] = qr[i][j] = fraction(random);
        right[i] = fraction(random);
    }
}

static uint64_t one_round(uint64_t *random, uint64_t hash)
{
    double determinant;

    make_matrix(random);
    determinant = (double)decompose();
    if (determinant == 0.0)
        return mix(hash, 0);
    for (int i = 0; i < N; i++)
        determinant *= lu[i][i];
    hash = mix_double(hash, determinant);
    solve(right, solution);
    for (int i = 0; i < N; i++)
        hash = mix_double(hash, solution[i]);
    invert();
    hash = mix_double(hash, error_of_inverse());
    for (int k = 0; k < N - 1; k++)
        reflect(k);
    for (int i = 0; i < N; i++)
        hash = mix_double(hash, qr[i][i]);
    make_square();
    return mix_double(hash, cholesky());
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    for (uint64_t n = 0; n < iterations; n++)
        hash = one_round(&random, hash);
    return hash;
}
