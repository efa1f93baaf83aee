#define _GNU_SOURCE
#include "CLinux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
// linux/sock_diag.h
#define MEMINFO_VARS 9
#define MEMINFO_DROPS 8

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t fill(union address *to, int is_ipv6, uint64_t high, uint64_t low, uint16_t port) {
    if (is_ipv6) {
        uint64_t words[2] = {htobe64(high), htobe64(low)};
        memset(&to->v6, 0, sizeof to->v6);
        to->v6.sin6_family = AF_INET6;
        to->v6.sin6_port = htons(port);
        memcpy(&to->v6.sin6_addr, words, sizeof words);
        return sizeof to->v6;
    }
    memset(&to->v4, 0, sizeof to->v4);
    to->v4.sin_family = AF_INET;
    to->v4.sin_port = htons(port);
    to->v4.sin_addr.s_addr = htonl((uint32_t)low);
    return sizeof to->v4;
}

int clinux_udp_socket(int is_ipv6, int dual) {
    int fd = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    int only = !dual;
    if (is_ipv6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int clinux_bind(int fd, int is_ipv6, uint64_t high, uint64_t low, uint16_t port) {
    union address address;
    socklen_t length = fill(&address, is_ipv6, high, low, port);
    return bind(fd, &address.any, length);
}

int clinux_bound_port(int fd) {
    union address address;
    socklen_t length = sizeof address;
    if (getsockname(fd, &address.any, &length) != 0) return -1;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

int clinux_set_buffer(int fd, int is_send, int bytes) {
    if (setsockopt(fd, SOL_SOCKET, is_send ? SO_SNDBUFFORCE : SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(fd, SOL_SOCKET, is_send ? SO_SNDBUF : SO_RCVBUF, &bytes, sizeof bytes);
    int size = 0;
    socklen_t length = sizeof size;
    getsockopt(fd, SOL_SOCKET, is_send ? SO_SNDBUF : SO_RCVBUF, &size, &length);
    return size;
}

void clinux_set_fragments(int fd, int is_ipv6, int allowed) {
    // An IPv6 socket carries IPv4 too and has both settings. The "do not fragment" bit is set either way.
    int mode = allowed ? IP_PMTUDISC_WANT : IP_PMTUDISC_DO, mode6 = allowed ? IPV6_PMTUDISC_WANT : IPV6_PMTUDISC_DO;
    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &mode, sizeof mode);
    if (is_ipv6) setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &mode6, sizeof mode6);
}

int clinux_enable_gro(int fd, int on) { return setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on); }

int clinux_share_port(int fd) {
    int on = 1;
    return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
}

int clinux_split_feedback(int fd) {
    // The program's result is the index of a socket among those that share the port, in the order in which they were bound. Offsets count from
    // the UDP payload; a load beyond its end ends the program with 0.
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 1),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 205, 0, 4),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xdf),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x8f, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog filter = {.len = sizeof program / sizeof program[0], .filter = program};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &filter, sizeof filter);
}

uint32_t clinux_receive_drops(int fd) {
    uint32_t info[MEMINFO_VARS] = {0};
    socklen_t length = sizeof info;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &length) != 0) return 0;
    return info[MEMINFO_DROPS];
}

/// Appends an int as a control message to those that a header has.
static void add_control(struct msghdr *header, char *room, int level, int type, const void *value, size_t size) {
    struct cmsghdr *control = (struct cmsghdr *)(room + header->msg_controllen);
    control->cmsg_level = level;
    control->cmsg_type = type;
    control->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(control), value, size);
    header->msg_control = room;
    header->msg_controllen += CMSG_SPACE(size);
}

int clinux_send(int fd, int is_ipv6, const struct clinux_message *messages, unsigned count) {
    struct mmsghdr headers[CLINUX_SEND_LIMIT];
    struct iovec vectors[CLINUX_SEND_LIMIT];
    union address addresses[CLINUX_SEND_LIMIT];
    union {
        char bytes[CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int))];
        struct cmsghdr alignment;
    } controls[CLINUX_SEND_LIMIT];
    if (count > CLINUX_SEND_LIMIT) count = CLINUX_SEND_LIMIT;
    for (unsigned i = 0; i < count; i++) {
        const struct clinux_message *message = &messages[i];
        struct msghdr *header = &headers[i].msg_hdr;
        vectors[i].iov_base = (void *)message->bytes;
        vectors[i].iov_len = message->length;
        memset(header, 0, sizeof *header);
        header->msg_name = &addresses[i];
        header->msg_namelen = fill(&addresses[i], is_ipv6, message->high, message->low, message->port);
        header->msg_iov = &vectors[i];
        header->msg_iovlen = 1;
        if (message->segment != 0)
            add_control(header, controls[i].bytes, IPPROTO_UDP, UDP_SEGMENT, &message->segment, sizeof message->segment);
        if (message->traffic_class == 0) continue;
        // A mapped address counts as IPv4 even on an IPv6 socket.
        int is_ipv4 = !is_ipv6 || (message->high == 0 && message->low >> 32 == 0xffff), value = message->traffic_class;
        add_control(
            header, controls[i].bytes, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_TOS : IPV6_TCLASS, &value,
            sizeof value);
    }
    return sendmmsg(fd, headers, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t clinux_receive(
    int fd, int is_ipv6, void *bytes, size_t capacity, uint64_t *high, uint64_t *low, uint16_t *port, uint16_t *segment,
    int *truncated) {
    union address from;
    struct iovec vector = {.iov_base = bytes, .iov_len = capacity};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr alignment;
    } control;
    struct msghdr header = {
        .msg_name = &from,
        .msg_namelen = sizeof from,
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    ssize_t length = recvmsg(fd, &header, MSG_DONTWAIT);
    if (length < 0) return -1;
    if (is_ipv6) {
        uint64_t words[2];
        memcpy(words, &from.v6.sin6_addr, sizeof words);
        *high = be64toh(words[0]);
        *low = be64toh(words[1]);
        *port = ntohs(from.v6.sin6_port);
    } else {
        *high = 0;
        *low = 0xffff00000000ull | ntohl(from.v4.sin_addr.s_addr);
        *port = ntohs(from.v4.sin_port);
    }
    *truncated = (header.msg_flags & MSG_TRUNC) != 0;
    *segment = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c != NULL; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO) continue;
        int size = 0;
        memcpy(&size, CMSG_DATA(c), sizeof size);
        *segment = (uint16_t)size;
    }
    return length;
}

int clinux_wait_readable(int fd, int64_t nanoseconds) {
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    struct timespec timeout = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    return ppoll(&wanted, 1, &timeout, NULL);
}

int clinux_epoll_wait(int epoll, struct epoll_event *events, int capacity, int64_t nanoseconds) {
    if (nanoseconds < 0) return epoll_wait(epoll, events, capacity, -1);
    struct timespec timeout = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    int count = epoll_pwait2(epoll, events, capacity, &timeout, NULL);
    // Older kernels do not have the call, and the filters of older container runtimes forbid unknown calls.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    return epoll_wait(epoll, events, capacity, (int)((nanoseconds + 999999) / 1000000));
}

int clinux_event_fd(const struct epoll_event *event) { return event->data.fd; }

int clinux_epoll_add(int epoll, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data = {.fd = fd}};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int clinux_epoll_change(int epoll, int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data = {.fd = fd}};
    return epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

int clinux_epoll_mark(int epoll, int operation, int fd, uint32_t events, uint64_t mark) {
    struct epoll_event event = {.events = events, .data = {.u64 = mark}};
    return epoll_ctl(epoll, operation, fd, &event);
}

int clinux_epoll_take(int epoll, struct clinux_ready *ready, int capacity, int64_t nanoseconds) {
    struct epoll_event events[CLINUX_READY_LIMIT];
    if (capacity > CLINUX_READY_LIMIT) capacity = CLINUX_READY_LIMIT;
    int count = clinux_epoll_wait(epoll, events, capacity, nanoseconds);
    for (int i = 0; i < count; i++) ready[i] = (struct clinux_ready){events[i].data.u64, events[i].events};
    return count;
}

int clinux_tcp_listen(int is_ipv6, uint64_t high, uint64_t low, uint16_t port, int backlog) {
    int fd = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    union address address;
    socklen_t length = fill(&address, is_ipv6, high, low, port);
    int on = 1, only = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (is_ipv6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    if (bind(fd, &address.any, length) == 0 && listen(fd, backlog) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int clinux_tcp_accept(int fd, uint64_t *high, uint64_t *low, uint16_t *port) {
    union address address;
    socklen_t length = sizeof address;
    int accepted = accept4(fd, &address.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0) return -1;
    int on = 1;
    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (address.any.sa_family == AF_INET6) {
        uint64_t words[2];
        memcpy(words, &address.v6.sin6_addr, sizeof words);
        *high = be64toh(words[0]);
        *low = be64toh(words[1]);
        *port = ntohs(address.v6.sin6_port);
    } else {
        *high = 0;
        *low = 0x0000ffff00000000 | ntohl(address.v4.sin_addr.s_addr);
        *port = ntohs(address.v4.sin_port);
    }
    return accepted;
}

void clinux_discard_on_close(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

void clinux_limit_unsent(int fd, int bytes) {
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

int clinux_pin_thread(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void clinux_trim_heap(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

int clinux_usable_cpus(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return CPU_COUNT(&set);
}

int clinux_usable_cpu(int index) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && index-- == 0) return cpu;
    return -1;
}

void clinux_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }
