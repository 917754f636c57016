// A Vulkan driver that passes everything on to another one, $REAL_DRIVER. But while the file $LOST is there, it says
// that the device is lost, wherever it is given work or waited for; and while the file $KILLED is there, it does none
// of the work, and says that it has.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int32_t Result;
typedef void (*Function)(void);
typedef Function (*Lookup)(void *, const char *);

static const Result DEVICE_LOST = -4;

static Lookup real_instance_lookup, real_device_lookup;
static Result (*real_wait)(void *, const void *, uint64_t);
static Result (*real_counter)(void *, void *, uint64_t *);
static Result (*real_submit)(void *, uint32_t, const void *, void *);

// VkSubmitInfo.
typedef struct {
    uint32_t type;
    const void *next;
    uint32_t wait_count;
    const void *waits;
    const void *wait_stages;
    uint32_t command_count;
    const void *commands;
    uint32_t signal_count;
    const void *signals;
} Submit;

// Whether the file is there that a variable names.
static int is_there(const char *variable) {
    return access(getenv(variable), F_OK) == 0;
}

static int is_lost(void) {
    return is_there("LOST");
}

static Result wait_semaphores(void *device, const void *info, uint64_t timeout) {
    return is_lost() ? DEVICE_LOST : real_wait(device, info, timeout);
}

static Result semaphore_counter(void *device, void *semaphore, uint64_t *value) {
    return is_lost() ? DEVICE_LOST : real_counter(device, semaphore, value);
}

static Result queue_submit(void *queue, uint32_t count, const void *submits, void *fence) {
    if (is_lost()) {
        return DEVICE_LOST;
    }
    if (!is_there("KILLED")) {
        return real_submit(queue, count, submits, fence);
    }
    for (uint32_t i = 0; i < count; i++) {
        Submit submit = ((const Submit *)submits)[i];
        submit.command_count = 0;
        Result result = real_submit(queue, 1, &submit, i + 1 == count ? fence : NULL);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

static int is(const char *name, const char *wanted) {
    // Extensions have names of their own for what is part of Vulkan now.
    size_t len = strlen(wanted);
    return strncmp(name, wanted, len) == 0 && (name[len] == 0 || strcmp(name + len, "KHR") == 0);
}

static Function device_lookup(void *device, const char *name) {
    Function real = real_device_lookup(device, name);
    if (real && is(name, "vkWaitSemaphores")) {
        real_wait = (Result(*)(void *, const void *, uint64_t))real;
        return (Function)wait_semaphores;
    }
    if (real && is(name, "vkGetSemaphoreCounterValue")) {
        real_counter = (Result(*)(void *, void *, uint64_t *))real;
        return (Function)semaphore_counter;
    }
    if (real && is(name, "vkQueueSubmit")) {
        real_submit = (Result(*)(void *, uint32_t, const void *, void *))real;
        return (Function)queue_submit;
    }
    return real;
}

static void *in_real_driver(const char *name) {
    static void *driver;
    if (!driver) {
        driver = dlopen(getenv("REAL_DRIVER"), RTLD_NOW);
    }
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return dlsym(driver, name);
}

Function vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    if (!real_instance_lookup) {
        real_instance_lookup = (Lookup)(uintptr_t)in_real_driver("vk_icdGetInstanceProcAddr");
    }
    Function real = real_instance_lookup(instance, name);
    if (real && strcmp(name, "vkGetDeviceProcAddr") == 0) {
        real_device_lookup = (Lookup)real;
        return (Function)device_lookup;
    }
    return real;
}

Function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name) {
    Lookup real = (Lookup)(uintptr_t)in_real_driver("vk_icdGetPhysicalDeviceProcAddr");
    return real(instance, name);
}

Result vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    typedef Result (*Negotiate)(uint32_t *);
    Negotiate real = (Negotiate)(uintptr_t)in_real_driver("vk_icdNegotiateLoaderICDInterfaceVersion");
    return real(version);
}
