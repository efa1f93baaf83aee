#define _GNU_SOURCE
#include "CLoadIO.h"
#include <time.h>

static int64_t read_clock(clockid_t clock) {
    struct timespec time;
    if (clock_gettime(clock, &time) != 0) return -1;
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

int64_t loadio_process_time(int pid) {
    clockid_t clock;
    return clock_getcpuclockid(pid, &clock) == 0 ? read_clock(clock) : -1;
}

int64_t loadio_thread_time(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
int64_t loadio_realtime(void) { return read_clock(CLOCK_REALTIME); }
int64_t loadio_monotonic(void) { return read_clock(CLOCK_MONOTONIC); }
