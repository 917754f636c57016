/*
 * Control in double precision: a Kalman filter that follows a moving point
 * from noisy measurements, and differential equations by Runge and Kutta.
 *
 * A round moves a pendulum on a cart, the Lorenz attractor and a predator and
 * its prey by some steps, with a step size that adapts; the filter follows
 * the first two.
 */
#include "guest.h"

#define STATES 4
#define SEEN 2
#define STEPS 24

static double fraction(uint64_t *random)
{
    return (double)(int64_t)next_random(random) * 0x1p-63;
}

/* --- sine and cosine, as there is no library --- */

static double sine_near_zero(double x)
{
    double y = x * x;

    return x * (1.0 + y * (-1.0 / 6 + y * (1.0 / 120 + y * (-1.0 / 5040 +
                y * (1.0 / 362880 + y * (-1.0 / 39916800 + y * (1.0 / 6227020800.0)))))));
}

static double sine(double x)
{
    const double pi = 3.14159265358979323846;
    double turns = __builtin_floor(x / pi + 0.5);
    double rest = x - turns * pi, result;

    result = sine_near_zero(rest);
    return (int64_t)turns & 1 ? -result : result;
}

static double cosine(double x)
{
    return sine(x + 1.57079632679489661923);
}

/* --- differential equations --- */

typedef void equations(const double *x, double *rates);

/* A cart with a pendulum: place, speed, angle, and speed of the angle. */
static void pendulum(const double *x, double *rates)
{
    double s = sine(x[2]), c = cosine(x[2]), mass = 2.0 + s * s;
    double force = -0.5 * x[0] - 0.3 * x[1];

    rates[0] = x[1];
    rates[1] = (force + s * (x[3] * x[3] + 9.81 * c)) / mass;
    rates[2] = x[3];
    rates[3] = (-force * c - x[3] * x[3] * c * s - 3.0 * 9.81 * s) / mass - 0.05 * x[3];
}

static void lorenz(const double *x, double *rates)
{
    rates[0] = 10.0 * (x[1] - x[0]);
    rates[1] = x[0] * (28.0 - x[2]) - x[1];
    rates[2] = x[0] * x[1] - 8.0 / 3.0 * x[2];
    rates[3] = 0.0;
}

static void predator(const double *x, double *rates)
{
    rates[0] = x[0] * (1.1 - 0.4 * x[1]);
    rates[1] = x[1] * (0.1 * x[0] - 0.4);
    rates[2] = x[0] / (1.0 + x[0]) - 0.5 * x[2];
    rates[3] = x[2] - x[3];
}

/* One step of the fourth order. */
static void step(equations *f, const double *x, double size, double *to)
{
    double k1[STATES], k2[STATES], k3[STATES], k4[STATES], at[STATES];

    f(x, k1);
    for (int i = 0; i < STATES; i++)
        at[i] = x[i] + 0.5 * size * k1[i];
    f(at, k2);
    for (int i = 0; i < STATES; i++)
        at[i] = x[i] + 0.5 * size * k2[i];
    f(at, k3);
    for (int i = 0; i < STATES; i++)
        at[i] = x[i] + size * k3[i];
    f(at, k4);
    for (int i = 0; i < STATES; i++)
        to[i] = x[i] + size / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]);
}

/* Takes two half steps and one whole; adapts the size to their difference. */
static double careful_step(equations *f, double *x, double size)
{
    double whole[STATES], half[STATES], halves[STATES], worst = 0.0;

    step(f, x, size, whole);
    step(f, x, 0.5 * size, half);
    step(f, half, 0.5 * size, halves);
    for (int i = 0; i < STATES; i++) {
        double difference = __builtin_fabs(halves[i] - whole[i]);

        if (difference > worst)
            worst = difference;
    }
    if (worst > 1e-5 && size > 1e-4)
        return 0.5 * size;
    for (int i = 0; i < STATES; i++)
        x[i] = halves[i] + (halves[i] - whole[i]) / 15.0;
    return worst < 1e-7 && size < 0.05 ? 2.0 * size : size;
}

/* --- the filter --- */

struct filter {
    double x[STATES];
    double p[STATES][STATES];
};

static void start_filter(struct filter *f)
{
    for (int i = 0; i < STATES; i++) {
        f->x[i] = 0.0;
        for (int j = 0; j < STATES; j++)
            f->p[i][j] = i == j ? 10.0 : 0.0;
    }
}

/* The model: two places that move with two speeds. */
static void predict(struct filter *f, double time)
{
    double moved[STATES][STATES];

    f->x[0] += time * f->x[2];
    f->x[1] += time * f->x[3];
    for (int j = 0; j < STATES; j++) {
        moved[0][j] = f->p[0][j] + time * f->p[2][j];
        moved[1][j] = f->p[1][j] + time * f->p[3][j];
        moved[2][j] = f->p[2][j];
        moved[3][j] = f->p[3][j];
    }
    for (int i = 0; i < STATES; i++) {
        f->p[i][0] = moved[i][0] + time * moved[i][2];
        f->p[i][1] = moved[i][1] + time * moved[i][3];
        f->p[i][2] = moved[i][2];
        f->p[i][3] = moved[i][3];
        f->p[i][i] += i < SEEN ? 1e-4 : 1e-2;
    }
}

static void update(struct filter *f, const double *seen, double noise)
{
    double a = f->p[0][0] + noise, b = f->p[0][1], c = f->p[1][0];
    double d = f->p[1][1] + noise, determinant = a * d - b * c;
    double off[SEEN] = { seen[0] - f->x[0], seen[1] - f->x[1] };
    double gain[STATES][SEEN], rows[SEEN][STATES];

    for (int i = 0; i < STATES; i++) {
        gain[i][0] = (f->p[i][0] * d - f->p[i][1] * c) / determinant;
        gain[i][1] = (f->p[i][1] * a - f->p[i][0] * b) / determinant;
    }
    for (int j = 0; j < STATES; j++) {
        rows[0][j] = f->p[0][j];
        rows[1][j] = f->p[1][j];
    }
    for (int i = 0; i < STATES; i++) {
        f->x[i] += gain[i][0] * off[0] + gain[i][1] * off[1];
        for (int j = 0; j < STATES; j++)
            f->p[i][j] -= gain[i][0] * rows[0][j] + gain[i][1] * rows[1][j];
    }
}

static uint64_t mix_doubles(uint64_t hash, const double *values)
{
    for (int i = 0; i < STATES; i++) {
        uint64_t bits;

        __builtin_memcpy(&bits, &values[i], sizeof bits);
        hash = mix(hash, bits);
    }
    return hash;
}

struct system {
    equations *f;
    double x[STATES], size;
};

static uint64_t one_round(struct system *systems, struct filter *filter,
                          uint64_t *random, uint64_t hash)
{
    for (int n = 0; n < STEPS; n++) {
        double seen[SEEN];

        for (int i = 0; i < 3; i++)
            systems[i].size = careful_step(systems[i].f, systems[i].x, systems[i].size);
        seen[0] = systems[0].x[0] + 0.1 * fraction(random);
        seen[1] = systems[1].x[0] + 0.1 * fraction(random);
        predict(filter, systems[0].size);
        update(filter, seen, 0.01);
    }
    for (int i = 0; i < 3; i++)
        hash = mix_doubles(hash, systems[i].x);
    return mix_doubles(hash, filter->x);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;
    struct filter filter;
    struct system systems[3] = {
        { pendulum, { 1.0, 0.0, 0.5 + fraction(&random), 0.0 }, 0.01 },
        { lorenz, { 1.0 + fraction(&random), 1.0, 20.0, 0.0 }, 0.01 },
        { predator, { 10.0, 5.0 + fraction(&random), 0.0, 0.0 }, 0.01 },
    };

    start_filter(&filter);
    for (uint64_t n = 0; n < iterations; n++)
        hash = one_round(systems, &filter, &random, hash);
    return hash;
}
