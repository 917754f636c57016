/*
 * A ray tracer in single precision: spheres, a plane and triangles, shadows,
 * mirrors and glass.
 *
 * A round draws a picture of 24 x 16 pixels of a scene that has moved on.
 */
#include "guest.h"

#define WIDTH 24
#define HEIGHT 16
#define SPHERES 8
#define TRIANGLES 6
#define DEEPEST 4

struct vector {
    float x, y, z;
};

struct material {
    struct vector colour;
    float mirror, glass, shine;
};

struct sphere {
    struct vector centre;
    float radius;
    struct material material;
};

struct triangle {
    struct vector corner, side_1, side_2, normal;
    struct material material;
};

struct hit {
    float distance;
    struct vector point, normal;
    const struct material *material;
};

static struct sphere spheres[SPHERES];
static struct triangle triangles[TRIANGLES];
static struct material floor_material;
static const struct vector light = { 4.0f, 9.0f, -6.0f };

/* --- vectors --- */

static struct vector add(struct vector a, struct vector b)
{
    return (struct vector){ a.x + b.x, a.y + b.y, a.z + b.z };
}

static struct vector subtract(struct vector a, struct vector b)
{
    return (struct vector){ a.x - b.x, a.y - b.y, a.z - b.z };
}

static struct vector scale(struct vector a, float by)
{
    return (struct vector){ a.x * by, a.y * by, a.z * by };
}

static float dot(struct vector a, struct vector b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct vector cross(struct vector a, struct vector b)
{
    return (struct vector){ a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z,
                            a.x * b.y - a.y * b.x };
}

static struct vector unit(struct vector a)
{
    return scale(a, 1.0f / __builtin_sqrtf(dot(a, a)));
}

static struct vector mirrored(struct vector v, struct vector normal)
{
    return subtract(v, scale(normal, 2.0f * dot(v, normal)));
}

/* --- what a ray meets --- */

static void hit_sphere(const struct sphere *s, struct vector from,
                       struct vector along, struct hit *hit)
{
    struct vector to = subtract(s->centre, from);
    float middle = dot(to, along);
    float inside = middle * middle - dot(to, to) + s->radius * s->radius;
    float half, distance;

    if (inside < 0.0f)
        return;
    half = __builtin_sqrtf(inside);
    distance = middle - half > 1e-3f ? middle - half : middle + half;
    if (distance <= 1e-3f || distance >= hit->distance)
        return;
    hit->distance = distance;
    hit->point = add(from, scale(along, distance));
    hit->normal = scale(subtract(hit->point, s->centre), 1.0f / s->radius);
    hit->material = &s->material;
}

static void hit_triangle(const struct triangle *t, struct vector from,
                         struct vector along, struct hit *hit)
{
    struct vector p = cross(along, t->side_2), to, q;
    float determinant = dot(t->side_1, p), u, v, distance;

    if (__builtin_fabsf(determinant) < 1e-6f)
        return;
    to = subtract(from, t->corner);
    u = dot(to, p) / determinant;
    if (u < 0.0f || u > 1.0f)
        return;
    q = cross(to, t->side_1);
    v = dot(along, q) / determinant;
    if (v < 0.0f || u + v > 1.0f)
        return;
    distance = dot(t->side_2, q) / determinant;
    if (distance <= 1e-3f || distance >= hit->distance)
        return;
    hit->distance = distance;
    hit->point = add(from, scale(along, distance));
    hit->normal = dot(along, t->normal) < 0.0f ? t->normal : scale(t->normal, -1.0f);
    hit->material = &t->material;
}

static void hit_floor(struct vector from, struct vector along, struct hit *hit)
{
    float distance = along.y < -1e-4f ? -from.y / along.y : 0.0f;

    if (distance <= 1e-3f || distance >= hit->distance)
        return;
    hit->distance = distance;
    hit->point = add(from, scale(along, distance));
    hit->normal = (struct vector){ 0.0f, 1.0f, 0.0f };
    hit->material = &floor_material;
}

static int first_hit(struct vector from, struct vector along, float most,
                     struct hit *hit)
{
    hit->distance = most;
    hit->material = 0;
    for (int i = 0; i < SPHERES; i++)
        hit_sphere(&spheres[i], from, along, hit);
    for (int i = 0; i < TRIANGLES; i++)
        hit_triangle(&triangles[i], from, along, hit);
    hit_floor(from, along, hit);
    return hit->material != 0;
}

/* --- light --- */

/* x to the power of 2^n: enough for a highlight. */
static float power_of_two(float x, int n)
{
    while (n--)
        x *= x;
    return x;
}

static struct vector surface_colour(const struct hit *hit)
{
    int square = ((int)__builtin_floorf(hit->point.x) + (int)__builtin_floorf(hit->point.z)) & 1;

    return hit->material == &floor_material && square
               ? scale(hit->material->colour, 0.3f)
               : hit->material->colour;
}

static struct vector lit(const struct hit *hit, struct vector along)
{
    struct vector to = subtract(light, hit->point), towards, colour = surface_colour(hit);
    float distance = __builtin_sqrtf(dot(to, to)), facing, gleam;
    struct hit shadow;

    towards = scale(to, 1.0f / distance);
    facing = dot(towards, hit->normal);
    if (facing <= 0.0f || first_hit(hit->point, towards, distance, &shadow))
        return scale(colour, 0.1f);
    gleam = dot(mirrored(along, hit->normal), towards);
    gleam = gleam > 0.0f ? power_of_two(gleam, 5) * hit->material->shine : 0.0f;
    return add(scale(colour, 0.1f + 0.9f * facing), (struct vector){ gleam, gleam, gleam });
}

static struct vector trace(struct vector from, struct vector along, int depth);

/* Light through glass; all of it is mirrored at a flat angle. */
static struct vector refracted(const struct hit *hit, struct vector along, int depth)
{
    struct vector normal = hit->normal;
    float cosine = -dot(along, normal), ratio = 1.0f / 1.5f, inside;

    if (cosine < 0.0f) {
        normal = scale(normal, -1.0f);
        cosine = -cosine;
        ratio = 1.5f;
    }
    inside = 1.0f - ratio * ratio * (1.0f - cosine * cosine);
    if (inside < 0.0f)
        return trace(hit->point, mirrored(along, normal), depth + 1);
    along = add(scale(along, ratio),
                scale(normal, ratio * cosine - __builtin_sqrtf(inside)));
    return trace(hit->point, unit(along), depth + 1);
}

static struct vector trace(struct vector from, struct vector along, int depth)
{
    struct hit hit;
    struct vector colour;
    const struct material *m;

    if (depth > DEEPEST || !first_hit(from, along, 1e6f, &hit)) {
        float height = 0.5f * (along.y + 1.0f);

        return (struct vector){ 1.0f - 0.5f * height, 1.0f - 0.3f * height, 1.0f };
    }
    m = hit.material;
    colour = scale(lit(&hit, along), 1.0f - m->mirror - m->glass);
    if (m->mirror > 0.0f)
        colour = add(colour, scale(trace(hit.point, mirrored(along, hit.normal), depth + 1),
                                   m->mirror));
    if (m->glass > 0.0f)
        colour = add(colour, scale(refracted(&hit, along, depth), m->glass));
    return colour;
}

/* --- the scene --- */

static float fraction(uint64_t *random)
{
    return (float)(next_random(random) >> 40) * 0x1p-24f;
}

static struct vector random_vector(uint64_t *random, float size, float up)
{
    struct vector v;

    v.x = (fraction(random) - 0.5f) * size;
    v.y = fraction(random) * up;
    v.z = (fraction(random) - 0.5f) * size;
    return v;
}

static void make_scene(uint64_t *random)
{
    floor_material = (struct material){ { 0.9f, 0.9f, 0.8f }, 0.1f, 0.0f, 0.0f };
    for (int i = 0; i < SPHERES; i++) {
        struct sphere *s = &spheres[i];

        s->centre = random_vector(random, 6.0f, 1.5f);
        s->radius = 0.4f + 0.6f * fraction(random);
        s->centre.y += s->radius;
        s->material.colour = add(random_vector(random, 0.5f, 0.8f),
                                 (struct vector){ 0.4f, 0.2f, 0.4f });
        s->material.mirror = i % 3 == 0 ? 0.6f : 0.0f;
        s->material.glass = i % 4 == 1 ? 0.8f : 0.0f;
        s->material.shine = 0.5f;
    }
    for (int i = 0; i < TRIANGLES; i++) {
        struct triangle *t = &triangles[i];

        t->corner = random_vector(random, 8.0f, 3.0f);
        t->side_1 = random_vector(random, 3.0f, 2.0f);
        t->side_2 = random_vector(random, 3.0f, 2.0f);
        t->normal = unit(cross(t->side_1, t->side_2));
        t->material = (struct material){ { 0.2f, 0.7f, 0.3f }, 0.2f, 0.0f, 0.2f };
    }
}

static uint64_t byte_of(float x)
{
    return x >= 1.0f ? 255 : x <= 0.0f ? 0 : (uint64_t)(x * 255.0f + 0.5f);
}

static uint64_t draw(uint64_t hash)
{
    struct vector eye = { 0.0f, 2.0f, -8.0f };

    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            struct vector along = { ((float)x - WIDTH / 2) * (2.0f / WIDTH),
                                    (HEIGHT / 2 - (float)y) * (2.0f / WIDTH), 1.5f };
            struct vector colour = trace(eye, unit(along), 0);

            hash = mix(hash, byte_of(colour.x) << 16 | byte_of(colour.y) << 8 |
                                 byte_of(colour.z));
        }
    }
    return hash;
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input, hash = MIX_START;

    make_scene(&random);
    for (uint64_t n = 0; n < iterations; n++) {
        hash = draw(hash);
        for (int i = 0; i < SPHERES; i++) {
            spheres[i].centre.x += 0.02f * (float)(i - 3);
            if (spheres[i].centre.x > 4.0f || spheres[i].centre.x < -4.0f)
                spheres[i].centre.x *= -0.99f;
        }
    }
    return hash;
}
