/*
 * The Sun and its four giant planets, as in the well-known benchmark: orbits
 * in double precision, in steps of 0.01 years (symplectic Euler method).
 *
 * Every velocity of a planet is scaled by a factor near 1 that depends on
 * `input`; the factor of input 0 is 1, which gives the energies that are
 * published (-0.169075164 at the start, -0.169087605 after 1,000 steps).  The
 * result is a checksum of the energy, all positions and all velocities, bit
 * for bit.
 */
#include "guest.h"

#define BODIES 5
#define PAIRS (BODIES * (BODIES - 1) / 2)
#define AXES 3

#define PI 3.141592653589793
#define SOLAR_MASS (4 * PI * PI)
#define DAYS_PER_YEAR 365.24
#define STEP 0.01

static const double first_position[BODIES][AXES] = {
    { 0, 0, 0 },
    { 4.84143144246472090e+00, -1.16032004402742839e+00, -1.03622044471123109e-01 },
    { 8.34336671824457987e+00, 4.12479856412430479e+00, -4.03523417114321381e-01 },
    { 1.28943695621391310e+01, -1.51111514016986312e+01, -2.23307578892655734e-01 },
    { 1.53796971148509165e+01, -2.59193146099879641e+01, 1.79258772950371181e-01 },
};

/* In units of distance per day. */
static const double first_velocity[BODIES][AXES] = {
    { 0, 0, 0 },
    { 1.66007664274403694e-03, 7.69901118419740425e-03, -6.90460016972063023e-05 },
    { -2.76742510726411899e-03, 4.99852801234917238e-03, 2.30417297573763929e-05 },
    { 2.96460137564761618e-03, 2.37847173959480950e-03, -2.96589568540237556e-05 },
    { 2.68067772490389322e-03, 1.62824170038242295e-03, -9.51592254519715870e-05 },
};

/* In units of the Sun's. */
static const double relative_mass[BODIES] = {
    1, 9.54791938424326609e-04, 2.85885980666130812e-04,
    4.36624404335156298e-05, 5.15138902046611451e-05,
};

static double position[BODIES][AXES];
static double velocity[BODIES][AXES];
static double mass[BODIES];

static double scale_of(uint64_t input)
{
    return 1 + (double)(int64_t)(input * 0x9e3779b97f4a7c15u) * 0x1p-68;
}

/* Sets everything up, with the momenta adding up to zero. */
static void start(double scale)
{
    for (int body = 0; body < BODIES; body++) {
        mass[body] = relative_mass[body] * SOLAR_MASS;
        for (int axis = 0; axis < AXES; axis++) {
            position[body][axis] = first_position[body][axis];
            velocity[body][axis] = first_velocity[body][axis] * DAYS_PER_YEAR * scale;
        }
    }
    for (int axis = 0; axis < AXES; axis++) {
        double momentum = 0;

        for (int body = 1; body < BODIES; body++)
            momentum += velocity[body][axis] * mass[body];
        velocity[0][axis] = -momentum / SOLAR_MASS;
    }
}

/*
 * One step.  What each pair does to each other depends on square roots and
 * quotients, which are computed for all pairs in one loop of their own: there
 * a compiler can do two at a time.
 */
static void advance(void)
{
    double apart[AXES][PAIRS], pull[PAIRS];
    int pair = 0;

    for (int i = 0; i < BODIES; i++)
        for (int j = i + 1; j < BODIES; j++, pair++)
            for (int axis = 0; axis < AXES; axis++)
                apart[axis][pair] = position[i][axis] - position[j][axis];

    for (pair = 0; pair < PAIRS; pair++) {
        double square = apart[0][pair] * apart[0][pair] +
                        apart[1][pair] * apart[1][pair] +
                        apart[2][pair] * apart[2][pair];

        pull[pair] = STEP / (square * __builtin_sqrt(square));
    }

    pair = 0;
    for (int i = 0; i < BODIES; i++)
        for (int j = i + 1; j < BODIES; j++, pair++)
            for (int axis = 0; axis < AXES; axis++) {
                velocity[i][axis] -= apart[axis][pair] * (mass[j] * pull[pair]);
                velocity[j][axis] += apart[axis][pair] * (mass[i] * pull[pair]);
            }

    for (int body = 0; body < BODIES; body++)
        for (int axis = 0; axis < AXES; axis++)
            position[body][axis] += STEP * velocity[body][axis];
}

static double square_of(const double v[AXES])
{
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
}

static double energy(void)
{
    double sum = 0;

    for (int i = 0; i < BODIES; i++) {
        sum += 0.5 * mass[i] * square_of(velocity[i]);
        for (int j = i + 1; j < BODIES; j++) {
            double apart[AXES];

            for (int axis = 0; axis < AXES; axis++)
                apart[axis] = position[i][axis] - position[j][axis];
            sum -= mass[i] * mass[j] / __builtin_sqrt(square_of(apart));
        }
    }
    return sum;
}

static uint64_t mix_double(uint64_t hash, double value)
{
    uint64_t bits;

    __builtin_memcpy(&bits, &value, sizeof bits);
    return mix(hash, bits);
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t hash = MIX_START;

    start(scale_of(input));
    for (uint64_t n = 0; n < iterations; n++)
        advance();

    hash = mix_double(hash, energy());
    for (int body = 0; body < BODIES; body++) {
        for (int axis = 0; axis < AXES; axis++) {
            hash = mix_double(hash, position[body][axis]);
            hash = mix_double(hash, velocity[body][axis]);
        }
    }
    return hash;
}
