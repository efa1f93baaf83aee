#define _GNU_SOURCE
#include "CLoadIO.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

int loadio_socket(uint32_t address, uint16_t port, int receive_buffer, int offload) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0) return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_buffer, sizeof receive_buffer) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
    if (offload) setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    // AnyIP: addresses of a locally routed network need not be assigned one by one.
    setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof on);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
    if (bind(fd, (struct sockaddr *)&name, sizeof name) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int loadio_port(int fd) {
    struct sockaddr_in name;
    socklen_t length = sizeof name;
    return getsockname(fd, (struct sockaddr *)&name, &length) == 0 ? ntohs(name.sin_port) : -1;
}

uint32_t loadio_drops(int fd) {
    uint32_t info[16] = {0};
    socklen_t length = sizeof info;
    return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &length) == 0 ? info[8] : 0;
}

static void read_control(struct msghdr *header, struct loadio_run *run) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(c), sizeof time);
            run->time = time.tv_sec * 1000000000ll + time.tv_nsec;
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            run->to = ntohl(info.ipi_addr.s_addr);
        } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int size = 0;
            memcpy(&size, CMSG_DATA(c), sizeof size);
            run->segment = (uint32_t)size;
        }
    }
}

struct loadio_receiver {
    uint8_t *bytes;
    struct mmsghdr headers[LOADIO_RUNS];
    struct iovec vectors[LOADIO_RUNS];
    union {
        char bytes[CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(struct in_pktinfo)) + CMSG_SPACE(sizeof(int))];
        struct cmsghdr alignment;
    } controls[LOADIO_RUNS];
};

loadio_receiver *loadio_receiver_new(void) {
    loadio_receiver *receiver = calloc(1, sizeof *receiver);
    if (!receiver) return NULL;
    receiver->bytes = malloc((size_t)LOADIO_RUNS * LOADIO_RUN_STRIDE);
    if (!receiver->bytes) {
        free(receiver);
        return NULL;
    }
    for (int i = 0; i < LOADIO_RUNS; i++) {
        receiver->vectors[i] = (struct iovec){receiver->bytes + (size_t)i * LOADIO_RUN_STRIDE, LOADIO_RUN_BYTES};
        receiver->headers[i].msg_hdr = (struct msghdr){
            .msg_iov = &receiver->vectors[i], .msg_iovlen = 1, .msg_control = receiver->controls[i].bytes,
            .msg_controllen = sizeof receiver->controls[i].bytes};
    }
    return receiver;
}

void loadio_receiver_free(loadio_receiver *receiver) {
    if (!receiver) return;
    free(receiver->bytes);
    free(receiver);
}

int loadio_receive(int fd, loadio_receiver *receiver, struct loadio_run *runs) {
    int count = recvmmsg(fd, receiver->headers, LOADIO_RUNS, MSG_DONTWAIT, NULL);
    if (count < 0) return 0;
    for (int i = 0; i < count; i++) {
        struct msghdr *header = &receiver->headers[i].msg_hdr;
        struct loadio_run *run = &runs[i];
        run->bytes = receiver->vectors[i].iov_base;
        run->length = run->segment = receiver->headers[i].msg_len;
        run->to = 0;
        run->time = 0;
        read_control(header, run);
        header->msg_controllen = sizeof receiver->controls[i].bytes;
    }
    return count;
}

int loadio_send(int fd, const struct loadio_message *messages, unsigned count, int any) {
    struct mmsghdr headers[LOADIO_SENDS];
    struct iovec vectors[LOADIO_SENDS];
    struct sockaddr_in names[LOADIO_SENDS];
    union {
        char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
        struct cmsghdr alignment;
    } controls[LOADIO_SENDS];
    if (count > LOADIO_SENDS) count = LOADIO_SENDS;
    for (unsigned i = 0; i < count; i++) {
        const struct loadio_message *message = &messages[i];
        vectors[i] = (struct iovec){(void *)message->bytes, message->length};
        names[i] = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(message->to_port), .sin_addr.s_addr = htonl(message->to)};
        headers[i].msg_hdr = (struct msghdr){
            .msg_name = &names[i], .msg_namelen = sizeof names[i], .msg_iov = &vectors[i], .msg_iovlen = 1};
        if (!any) continue;
        struct msghdr *header = &headers[i].msg_hdr;
        header->msg_control = controls[i].bytes;
        header->msg_controllen = sizeof controls[i].bytes;
        struct cmsghdr *control = CMSG_FIRSTHDR(header);
        control->cmsg_level = IPPROTO_IP;
        control->cmsg_type = IP_PKTINFO;
        control->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
        struct in_pktinfo info = {.ipi_spec_dst.s_addr = htonl(message->from)};
        memcpy(CMSG_DATA(control), &info, sizeof info);
    }
    int sent = sendmmsg(fd, headers, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? 0 : sent;
}

int loadio_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }

int loadio_epoll_add(int epoll, int fd, uint32_t mark) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = mark};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int loadio_epoll_wait(int epoll, uint32_t *marks, int capacity, int64_t nanoseconds) {
    struct epoll_event events[64];
    if (nanoseconds < 0) nanoseconds = 0;
    struct timespec timeout = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    int count = epoll_pwait2(epoll, events, capacity < 64 ? capacity : 64, &timeout, NULL);
    if (count < 0 && errno == ENOSYS)
        count = epoll_wait(epoll, events, capacity < 64 ? capacity : 64, (int)((nanoseconds + 999999) / 1000000));
    for (int i = 0; i < count; i++) marks[i] = events[i].data.u32;
    return count < 0 ? 0 : count;
}
