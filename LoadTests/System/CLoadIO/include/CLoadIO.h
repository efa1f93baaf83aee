#pragma once
// The load generator's system calls: one socket that plays many hosts, and other processes' CPU clocks. It has no logic.
#include <stddef.h>
#include <stdint.h>

/// The most runs read by one `loadio_receive`.
#define LOADIO_RUNS 16
/// The most bytes of one run: what UDP_GRO joins.
#define LOADIO_RUN_BYTES 65536
/// From one run's buffer to the next: a multiple of a large power of two would put all of them into the same few cache sets.
#define LOADIO_RUN_STRIDE (LOADIO_RUN_BYTES + 67 * 64)
/// The most messages sent by one `loadio_send`.
#define LOADIO_SENDS 64

/// Datagrams of one sender to one of our addresses, back to back.
struct loadio_run {
    /// Within the receiver's buffer.
    uint8_t *bytes;
    uint32_t length;
    /// Bytes of each datagram except the last.
    uint32_t segment;
    /// Our address, in host order.
    uint32_t to;
    /// When the kernel had the datagram, by CLOCK_REALTIME in nanoseconds.
    int64_t time;
};

/// One datagram from one of our addresses.
struct loadio_message {
    const uint8_t *bytes;
    uint32_t length;
    uint32_t from, to;
    uint16_t to_port;
};

/// A non-blocking IPv4 UDP socket bound to `address` (0: any) and `port` (0: the system's choice), with kernel time stamps,
/// destination addresses and, with `offload`, joined runs; -1 and errno on failure.
int loadio_socket(uint32_t address, uint16_t port, int receive_buffer, int offload);
int loadio_port(int fd);
/// Datagrams that the kernel dropped because nobody read them in time.
uint32_t loadio_drops(int fd);
/// Buffers and message headers of one thread.
typedef struct loadio_receiver loadio_receiver;
loadio_receiver *loadio_receiver_new(void);
void loadio_receiver_free(loadio_receiver *receiver);
/// Reads up to LOADIO_RUNS runs into the receiver's buffer; returns how many, 0 if none wait.
int loadio_receive(int fd, loadio_receiver *receiver, struct loadio_run *runs);
/// Sends up to LOADIO_SENDS datagrams, each in a separate message, as separate hosts would; returns how many were sent. With `any` the source
/// address is `from`.
int loadio_send(int fd, const struct loadio_message *messages, unsigned count, int any);
/// Waits until one of the sockets is readable, at most `nanoseconds`.
int loadio_epoll(void);
int loadio_epoll_add(int epoll, int fd, uint32_t mark);
int loadio_epoll_wait(int epoll, uint32_t *marks, int capacity, int64_t nanoseconds);

/// CPU time of a whole process (ended threads too) in nanoseconds; -1 if it has ended.
int64_t loadio_process_time(int pid);
/// CPU time of this thread, and the clocks, in nanoseconds.
int64_t loadio_thread_time(void);
int64_t loadio_realtime(void);
int64_t loadio_monotonic(void);
