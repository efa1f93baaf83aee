#pragma once
// What the processor can do and Swift has no word for.
#include <stddef.h>

// Asks for the cache lines of `length` bytes at `start`, which will be read soon; never faults, waits for nothing.
static inline void cprocessor_prefetch(const void *start, size_t length) {
    for (size_t offset = 0; offset < length; offset += 64) __builtin_prefetch((const char *)start + offset, 0, 3);
}
