#pragma once
// Processor features that Swift cannot express.
#include <stddef.h>
#include <stdint.h>

// Prefetches the cache lines of `length` bytes at `start`, which will be read soon; never faults and never waits.
static inline void cprocessor_prefetch(const void *start, size_t length) {
    for (size_t offset = 0; offset < length; offset += 64) __builtin_prefetch((const char *)start + offset, 0, 3);
}

// CRC32c (RFC 3720 section B.4) of `length` more bytes; begins with all ones, and the result is the complement of the last. Uses the instructions of
// SSE 4.2 or ARMv8 if the processor has them.
uint32_t cprocessor_crc32c(uint32_t state, const void *start, size_t length);

// The same from a table, for processors without the instructions, and to check them against.
uint32_t cprocessor_crc32c_portable(uint32_t state, const void *start, size_t length);
