#pragma once
// Counts operations that the packet path must avoid. Linked into tests and benchmarks only, never into the server.
//
// The executable's own malloc, pthread_mutex_lock and similar functions take precedence over glibc's for every library of the process, count
// for the calling thread, and call glibc's. Swift's reference counting has hooks for instruments, which are set while
// `cinstruments_count_references` is on.
#include <stdint.h>

struct cinstruments_counts {
    // Calls of malloc, calloc, realloc and the aligned ones.
    uint64_t allocations;
    // Calls of free with something to free.
    uint64_t frees;
    // Mutexes and read-write locks acquired. Swift's own Mutex is a futex and not counted; the architecture tests ban it.
    uint64_t locks;
    // Swift retains and releases, while they are counted.
    uint64_t retains;
    uint64_t releases;
};

// The counts of the calling thread since it began.
struct cinstruments_counts cinstruments_read(void);

// Whether allocations and locks are counted: not under a sanitizer, which has its own malloc.
int cinstruments_is_counting(void);

// Switches the counting of references on or off for the whole process; 0 if this Swift runtime has no hooks.
int cinstruments_count_references(int on);

// For which events the calling thread writes the stack to standard error: 0 nothing, 1 allocations (`bench --trace`), 2 retains
// (`bench --trace-retains`).
void cinstruments_trace(int what);

// Bytes that the calling thread has allocated, less those that it has freed, as glibc's allocator counts them: allocations of other threads
// are not included. 0 if nothing is counted.
int64_t cinstruments_thread_bytes(void);

// Bytes that the process has allocated and not freed, as glibc's allocator counts them.
uint64_t cinstruments_live_bytes(void);
