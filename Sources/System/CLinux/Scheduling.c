#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// linux/sched/types.h, which C libraries of 2022 do not have.
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};
#define RESET_ON_FORK 1

int clinux_prefer_thread(int nice, uint64_t slice) {
    struct scheduling wanted = {.size = sizeof wanted, .flags = RESET_ON_FORK, .nice = nice, .runtime = slice};
    if (syscall(SYS_sched_setattr, 0, &wanted, 0) == 0) return nice;
    errno = 0;
    int now = getpriority(PRIO_PROCESS, 0);
    wanted.nice = errno ? 0 : now;
    syscall(SYS_sched_setattr, 0, &wanted, 0);
    return wanted.nice;
}
