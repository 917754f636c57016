/*
 * Sorting 1,000 pseudo random 32-bit numbers.
 *
 * Each round fills the array with fresh numbers, sorts it (quicksort down to
 * short ranges, then one insertion sort over the whole), and folds the
 * sorted sequence into the result.
 */
#include "guest.h"

#define COUNT 1000
#define SHORT_RANGE 12

static uint32_t numbers[COUNT];

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t old = *a;

    *a = *b;
    *b = old;
}

static uint32_t median(uint32_t a, uint32_t b, uint32_t c)
{
    if (a < b)
        return b < c ? b : (a < c ? c : a);
    return a < c ? a : (b < c ? c : b);
}

/*
 * Sorts v[first..last] roughly: afterwards every number is fewer than
 * SHORT_RANGE places from where it belongs.  Recursing into the smaller part
 * only keeps the stack to log2(COUNT) frames.
 */
static void quicksort(uint32_t *v, int64_t first, int64_t last)
{
    while (last - first >= SHORT_RANGE) {
        uint32_t pivot = median(v[first], v[(first + last) / 2], v[last]);
        int64_t low = first, high = last;

        do {
            while (v[low] < pivot)
                low++;
            while (pivot < v[high])
                high--;
            if (low <= high)
                swap(&v[low++], &v[high--]);
        } while (low <= high);

        if (high - first < last - low) {
            quicksort(v, first, high);
            first = low;
        } else {
            quicksort(v, low, last);
            last = high;
        }
    }
}

static void insertion_sort(uint32_t *v, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        uint32_t moving = v[i];
        int64_t hole = i;

        while (hole > 0 && moving < v[hole - 1]) {
            v[hole] = v[hole - 1];
            hole--;
        }
        v[hole] = moving;
    }
}

uint64_t run(uint64_t input, uint64_t iterations)
{
    uint64_t random = input;
    uint64_t hash = MIX_START;

    for (uint64_t n = 0; n < iterations; n++) {
        for (int i = 0; i < COUNT; i++)
            numbers[i] = (uint32_t)next_random(&random);
        quicksort(numbers, 0, COUNT - 1);
        insertion_sort(numbers, COUNT);
        for (int i = 0; i < COUNT; i++)
            hash = mix(hash, numbers[i]);
    }
    return hash;
}
