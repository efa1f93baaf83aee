#define _GNU_SOURCE
#include "CInstruments.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

// In the executable's own block of thread-local storage: reading it never allocates.
static __thread struct cinstruments_counts counts;

struct cinstruments_counts cinstruments_read(void) { return counts; }

uint64_t cinstruments_live_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)

int cinstruments_is_counting(void) { return 0; }
int64_t cinstruments_thread_bytes(void) { return 0; }
void cinstruments_trace(int what) { (void)what; }

#else

int cinstruments_is_counting(void) { return 1; }

static __thread int tracing;
static __thread int64_t bytes;

int64_t cinstruments_thread_bytes(void) { return bytes; }

void cinstruments_trace(int what) { tracing = what; }

// Writes where an allocation comes from; allocations of the writing itself are not reported.
static void trace(void) {
    void *frames[24];
    int what = tracing;
    tracing = 0;
    int depth = backtrace(frames, 24);
    backtrace_symbols_fd(frames + 1, depth - 1, 2);
    (void)!write(2, "\n", 1);
    tracing = what;
}

#define COUNT_ALLOCATION \
    counts.allocations++; \
    if (__builtin_expect(tracing == 1, 0)) trace()

static void *counted(void *block) {
    if (block) bytes += (int64_t)malloc_usable_size(block);
    return block;
}

// glibc's allocator, under the names that it exports for wrappers.
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t size) {
    COUNT_ALLOCATION;
    return counted(__libc_malloc(size));
}

void *calloc(size_t number, size_t size) {
    COUNT_ALLOCATION;
    return counted(__libc_calloc(number, size));
}

void *realloc(void *block, size_t size) {
    COUNT_ALLOCATION;
    int64_t before = block ? (int64_t)malloc_usable_size(block) : 0;
    void *result = __libc_realloc(block, size);
    // A block that could not grow still exists; one that shrank to nothing does not.
    if (result || size == 0) bytes -= before;
    return counted(result);
}

void *memalign(size_t alignment, size_t size) {
    COUNT_ALLOCATION;
    return counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    void *result = memalign(alignment, size);
    if (!result) return ENOMEM;
    *block = result;
    return 0;
}

void free(void *block) {
    if (block) {
        counts.frees++;
        bytes -= (int64_t)malloc_usable_size(block);
    }
    __libc_free(block);
}

// The next definition after this one; the first caller looks it up.
#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int pthread_mutex_lock(pthread_mutex_t *lock) {
    NEXT(pthread_mutex_lock);
    counts.locks++;
    return next(lock);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    NEXT(pthread_rwlock_rdlock);
    counts.locks++;
    return next(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    NEXT(pthread_rwlock_wrlock);
    counts.locks++;
    return next(lock);
}

#endif

// The hooks of Swift's runtime (stdlib/public/runtime/HeapObject.cpp), each a pointer that is called while the switch is on.
typedef void *(*one_object)(void *);
typedef void *(*many_objects)(void *, uint32_t);
static one_object original_retain, original_release;
static many_objects original_retain_n, original_release_n;

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
static void trace_retain(void) {}
#else
static void trace_retain(void) {
    if (__builtin_expect(tracing == 2, 0)) trace();
}
#endif

static void *count_retain(void *object) {
    counts.retains++;
    trace_retain();
    return original_retain(object);
}

static void *count_release(void *object) {
    counts.releases++;
    return original_release(object);
}

static void *count_retain_n(void *object, uint32_t number) {
    counts.retains++;
    return original_retain_n(object, number);
}

static void *count_release_n(void *object, uint32_t number) {
    counts.releases++;
    return original_release_n(object, number);
}

int cinstruments_count_references(int on) {
    char *enabled = dlsym(RTLD_DEFAULT, "_swift_enableSwizzlingOfAllocationAndRefCountingFunctions_forInstrumentsOnly");
    one_object *retain = dlsym(RTLD_DEFAULT, "_swift_retain"), *release = dlsym(RTLD_DEFAULT, "_swift_release");
    many_objects *retain_n = dlsym(RTLD_DEFAULT, "_swift_retain_n"), *release_n = dlsym(RTLD_DEFAULT, "_swift_release_n");
    if (!enabled || !retain || !release || !retain_n || !release_n) return 0;
    if (!original_retain) {
        original_retain = *retain;
        original_release = *release;
        original_retain_n = *retain_n;
        original_release_n = *release_n;
        *retain = count_retain;
        *release = count_release;
        *retain_n = count_retain_n;
        *release_n = count_release_n;
    }
    *enabled = (char)on;
    return 1;
}
