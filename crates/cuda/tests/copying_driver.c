// A stand-in for NVIDIA's driver that has memory and executes no instructions: enough to test what the host does.
// Its only kernel looks up the record of each lane's instruction, as the real one does, and tells which it is.
//
// The device's memory is the process's own. Whatever is copied must be within one allocation, or within what is
// mapped; otherwise the call fails as the driver's would.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int Result;
typedef uint64_t Address;

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

// What allocations and mapped pieces take together, as on a small GPU.
static const size_t TOTAL = (size_t)768 << 20;

#define MOST 4096
static struct { Address start; size_t len; } ranges[MOST];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Result add(Address start, size_t len) {
    Result result = OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && used + len <= TOTAL; i++) {
        if (!ranges[i].len) {
            ranges[i].start = start;
            ranges[i].len = len;
            used += len;
            result = OK;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

// Forgets what lies between two addresses.
static Result drop(Address start, size_t len) {
    Result result = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++) {
        if (ranges[i].len && ranges[i].start >= start && ranges[i].start < start + len) {
            used -= ranges[i].len;
            ranges[i].len = 0;
            result = OK;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static int is_ours(Address start, size_t len) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST && !found; i++) {
        Address end = ranges[i].start + ranges[i].len;
        found = ranges[i].len && start >= ranges[i].start && start + len <= end;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static Result copy(void *to, const void *from, size_t len, Address device) {
    if (!is_ours(device, len)) return ILLEGAL_ADDRESS;
    memcpy(to, from, len);
    return OK;
}

// The device.

Result cuInit(unsigned flags) { return flags ? INVALID_VALUE : OK; }
Result cuDriverGetVersion(int *version) { return *version = 12000, OK; }
Result cuDeviceGetCount(int *count) { return *count = 1, OK; }
Result cuDeviceGet(int *device, int index) { return *device = index, index ? INVALID_VALUE : OK; }
Result cuDeviceGetName(char *name, int len, int device) {
    (void)device;
    snprintf(name, len, "a device that copies");
    return OK;
}
Result cuDeviceTotalMem_v2(size_t *bytes, int device) { return (void)device, *bytes = TOTAL, OK; }
// Compute capability 8.0.
Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 8 : 0;
    return OK;
}
Result cuDevicePrimaryCtxRetain(void **context, int device) { return (void)device, *context = &ranges, OK; }
Result cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, OK; }
Result cuCtxSetCurrent(void *context) { return context == &ranges ? OK : INVALID_VALUE; }
Result cuMemGetInfo_v2(size_t *free, size_t *total) { return *free = TOTAL - used, *total = TOTAL, OK; }
Result cuGetErrorName(Result error, const char **name) { return (void)error, *name = "AN_ERROR", OK; }
Result cuGetErrorString(Result error, const char **text) { return (void)error, *text = "an error", OK; }
Result cuStreamCreate(void **stream, unsigned flags) { return (void)flags, *stream = &used, OK; }
Result cuStreamDestroy_v2(void *stream) { return stream == &used ? OK : INVALID_VALUE; }
Result cuStreamSynchronize(void *stream) { return stream == &used ? OK : INVALID_VALUE; }

// Memory.

Result cuMemAlloc_v2(Address *address, size_t len) {
    void *memory = malloc(len);
    *address = (Address)memory;
    Result result = add(*address, len);
    if (result) free(memory);
    return result;
}
Result cuMemFree_v2(Address address) {
    Result result = drop(address, 1);
    if (!result) free((void *)address);
    return result;
}
Result cuMemHostAlloc(void **memory, size_t len, unsigned flags) {
    (void)flags;
    return *memory = calloc(1, len), OK;
}
Result cuMemFreeHost(void *memory) { return free(memory), OK; }
Result cuMemHostGetDevicePointer_v2(Address *address, void *memory, unsigned flags) {
    (void)flags;
    return *address = (Address)memory, OK;
}
Result cuMemAddressReserve(Address *address, size_t len, size_t alignment, Address at, unsigned long long flags) {
    (void)alignment, (void)at, (void)flags;
    void *reserved = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *address = (Address)reserved;
    return reserved == MAP_FAILED ? OUT_OF_MEMORY : OK;
}
Result cuMemAddressFree(Address address, size_t len) { return munmap((void *)address, len) ? INVALID_VALUE : OK; }
// The handle of a piece is its size.
Result cuMemCreate(unsigned long long *handle, size_t len, const void *properties, unsigned long long flags) {
    (void)properties, (void)flags;
    return *handle = len, used + len > TOTAL ? OUT_OF_MEMORY : OK;
}
Result cuMemRelease(unsigned long long handle) { return handle ? OK : INVALID_VALUE; }
Result cuMemMap(Address address, size_t len, size_t offset, unsigned long long handle, unsigned long long flags) {
    (void)flags;
    return offset || handle != len ? INVALID_VALUE : add(address, len);
}
Result cuMemSetAccess(Address address, size_t len, const void *access, size_t count) {
    (void)access, (void)count;
    return mprotect((void *)address, len, PROT_READ | PROT_WRITE) ? INVALID_VALUE : OK;
}
Result cuMemUnmap(Address address, size_t len) {
    return mprotect((void *)address, len, PROT_NONE) ? INVALID_VALUE : drop(address, len);
}

// Copies.

Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t len, void *stream) {
    (void)stream;
    return copy((void *)to, from, len, to);
}
Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t len, void *stream) {
    (void)stream;
    return copy(to, (void *)from, len, from);
}
Result cuMemsetD8Async(Address at, unsigned char byte, size_t len, void *stream) {
    (void)stream;
    if (!is_ours(at, len)) return ILLEGAL_ADDRESS;
    memset((void *)at, byte, len);
    return OK;
}
Result cuMemsetD2D32Async(Address at, size_t pitch, unsigned value, size_t width, size_t height, void *stream) {
    (void)stream;
    for (size_t y = 0; y < height; y++) {
        if (!is_ours(at + y * pitch, 4 * width)) return ILLEGAL_ADDRESS;
        for (size_t x = 0; x < width; x++) memcpy((void *)(at + y * pitch + 4 * x), &value, 4);
    }
    return OK;
}

enum { HOST = 1, DEVICE = 2 };

struct Copy2D {
    size_t src_x, src_y;
    unsigned src_type;
    const void *src_host;
    Address src_device;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    unsigned dst_type;
    void *dst_host;
    Address dst_device;
    void *dst_array;
    size_t dst_pitch, width, height;
};

Result cuMemcpy2DAsync_v2(const struct Copy2D *c, void *stream) {
    (void)stream;
    int reads = c->src_type == DEVICE && c->dst_type == HOST, writes = c->src_type == HOST && c->dst_type == DEVICE;
    if (!(reads || writes) || c->src_x || c->src_y || c->dst_x || c->dst_y) return INVALID_VALUE;
    if (c->src_pitch < c->width || c->dst_pitch < c->width) return INVALID_VALUE;
    const char *from = reads ? (const char *)c->src_device : c->src_host;
    char *to = reads ? c->dst_host : (char *)c->dst_device;
    for (size_t y = 0; y < c->height; y++) {
        const char *row = from + y * c->src_pitch;
        char *goal = to + y * c->dst_pitch;
        Result result = copy(goal, row, c->width, reads ? (Address)row : (Address)goal);
        if (result) return result;
    }
    return OK;
}

// Kernels: whatever is compiled, it is the one below.

Result cuLinkCreate_v2(unsigned count, void *options, void **values, void **linker) {
    (void)count, (void)options, (void)values;
    return *linker = &ranges, OK;
}
Result cuLinkAddData_v2(void *linker, unsigned type, void *data, size_t len, const char *name, unsigned count,
                        void *options, void **values) {
    (void)linker, (void)type, (void)data, (void)len, (void)name, (void)count, (void)options, (void)values;
    return OK;
}
Result cuLinkComplete(void *linker, void **cubin, size_t *len) {
    static char nothing[16];
    (void)linker;
    return *cubin = nothing, *len = sizeof nothing, OK;
}
Result cuLinkDestroy(void *linker) { return linker == &ranges ? OK : INVALID_VALUE; }
Result cuModuleLoadData(void **module, const void *image) { return (void)image, *module = &ranges, OK; }
Result cuModuleUnload(void *module) { return module == &ranges ? OK : INVALID_VALUE; }
Result cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    return *function = &ranges, strcmp(name, "run") ? NOT_FOUND : OK;
}
Result cuEventCreate(void **event, unsigned flags) { return (void)flags, *event = &ranges, OK; }
Result cuEventRecord(void *event, void *stream) { return (void)event, stream == &used ? OK : INVALID_VALUE; }
Result cuEventQuery(void *event) { return event == &ranges ? OK : INVALID_VALUE; }
Result cuEventDestroy_v2(void *event) { return event == &ranges ? OK : INVALID_VALUE; }

// What kernels are given and keep, as kernel.rs has it. The sizes of a lane's state are told to the compiler.
struct Arguments {
    Address states, vectors, statuses, lanes, stopped, share, memory, frames, page_tables, page_table_bytes, pool, records,
        code_start, code_len, code_map, directory, directory_mask, control;
};
struct Status { uint64_t count, budget, detail; uint32_t stop, unused; };
struct Pool { uint32_t next, size, stopped; };
struct Record { uint32_t word[4]; };
enum { NOT_DECODED = 0, DIVERTED = 3 };

static struct Record look_up(const struct Arguments *a, uint32_t lane, uint64_t pc) {
    struct Record none = {{NOT_DECODED}};
    if (pc - a->code_start >= a->code_len) return none;
    uint64_t index = (pc - a->code_start) / 4;
    struct Record found = ((const struct Record *)a->records)[index];
    if ((found.word[0] & 0xffff) != DIVERTED) return found;
    uint32_t hash = (lane * FACTOR + found.word[1]) * FACTOR_2;
    hash ^= hash >> SHIFT;
    uint32_t place[2] = {found.word[2], found.word[3]};
    for (;; hash++) {
        struct Record entry = ((const struct Record *)a->directory)[hash & a->directory_mask];
        if (entry.word[0] == UINT32_MAX) break;
        if (entry.word[0] == lane && entry.word[1] == found.word[1]) {
            memcpy(place, &entry.word[2], sizeof place);
            break;
        }
    }
    Address at = place[0] | (Address)place[1] << 32;
    return ((const struct Record *)at)[index % 16];
}

// A lane takes as many frames as x3 says. Then it has its record in x0 and x1, and in x2 whether stores there are
// noticed, and stops with a fault.
static uint32_t run_lane(const struct Arguments *a, uint32_t lane, struct Status *status) {
    char *state = (char *)a->states + (size_t)lane * STATE_BYTES;
    uint64_t pc, *x = (uint64_t *)state;
    memcpy(&pc, state + PC_OFFSET, sizeof pc);
    struct Pool *pool = (struct Pool *)a->pool;
    for (; x[3]; x[3]--) {
        if (pool->next++ >= pool->size) return NO_FRAME;
    }
    status->detail = pc;
    struct Record record = look_up(a, lane, pc);
    if ((record.word[0] & 0xffff) == NOT_DECODED) return NO_CODE;
    memcpy(x, &record, sizeof record);
    x[2] = ((const uint8_t *)a->code_map)[(pc - (a->code_start - 64)) / 64];
    return UNALIGNED;
}

Result cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                      unsigned shared, void *stream, void **params, void **extra) {
    (void)x, (void)y, (void)z, (void)threads, (void)ty, (void)tz, (void)shared, (void)extra;
    if (function != &ranges || stream != &used) return INVALID_VALUE;
    const struct Arguments *a = params[0];
    struct Pool *pool = (struct Pool *)a->pool;
    for (uint32_t lane = 0; lane < a->lanes; lane++) {
        struct Status *status = (struct Status *)a->statuses + lane;
        uint32_t stop = status->stop;
        if (stop != RUNNING && stop != NO_CODE && stop != NO_FRAME && stop != CODE_WRITE) continue;
        status->stop = run_lane(a, lane, status);
        ((uint32_t *)a->stopped)[pool->stopped++] = lane;
    }
    return OK;
}
