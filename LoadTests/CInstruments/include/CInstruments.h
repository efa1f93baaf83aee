#pragma once
// Counts what the packet path must not do. Linked into tests and benchmarks only, never into the server.
//
// The executable's own malloc, pthread_mutex_lock and their kin stand before glibc's for every library of the process, count
// for the calling thread, and hand on. Swift's reference counting has hooks for instruments, which are set while
// `cinstruments_count_references` is on.
#include <stdint.h>

struct cinstruments_counts {
    // Calls of malloc, calloc, realloc and the aligned ones.
    uint64_t allocations;
    // Calls of free with something to free.
    uint64_t frees;
    // Mutexes and read-write locks taken. Swift's own Mutex is a futex and not seen; the architecture tests ban it.
    uint64_t locks;
    // Swift retains and releases, while they are counted.
    uint64_t retains;
    uint64_t releases;
};

// What the calling thread has done since it began.
struct cinstruments_counts cinstruments_read(void);

// Whether allocations and locks are counted: not under a sanitizer, which has a malloc of its own.
int cinstruments_is_counting(void);

// Switches the counting of references on or off for the whole process; 0 when this Swift runtime has no hooks.
int cinstruments_count_references(int on);

// What the calling thread writes the stack of to standard error: 0 nothing, 1 allocations (`bench --trace`), 2 retains
// (`bench --trace-retains`).
void cinstruments_trace(int what);

// Bytes that the calling thread has allocated, less those that it has freed, as glibc's allocator counts them: what other threads
// do meanwhile is left out. 0 where nothing is counted.
int64_t cinstruments_thread_bytes(void);

// Bytes that the process has allocated and not freed, as glibc's allocator counts them.
uint64_t cinstruments_live_bytes(void);
