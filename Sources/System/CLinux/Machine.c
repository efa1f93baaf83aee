#define _GNU_SOURCE
#include "CLinux.h"

#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

int clinux_may_nice(int nice) {
    // setrlimit(2): RLIMIT_NICE counts from 20 down.
    struct rlimit limit;
    if (getrlimit(RLIMIT_NICE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || (long)limit.rlim_cur >= 20 - nice))
        return 1;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0) return 0;
    return (data[0].effective >> CAP_SYS_NICE) & 1;
}

int clinux_clock_is_kept(void) {
    struct timex clock = {0};
    return adjtimex(&clock) < 0 || (clock.status & STA_UNSYNC) == 0;
}

int clinux_has_aes(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
    // asm/hwcap.h: HWCAP_AES, HWCAP_PMULL
    return (getauxval(AT_HWCAP) & 0x18) == 0x18;
#else
    return 0;
#endif
}
