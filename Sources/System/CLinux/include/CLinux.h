#pragma once
// Linux calls that Glibc's Swift overlay lacks, with the control messages that only C macros can build. No logic.
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/types.h>

/// The most messages of one `clinux_send`: its arrays are on the stack.
#define CLINUX_SEND_LIMIT 64

/// One message for one destination: a datagram, or several of `segment` bytes (the last may be shorter) when `segment` is not 0.
struct clinux_message {
    const void *bytes;
    uint32_t length;
    uint16_t segment;
    /// Destination port in host order.
    uint16_t port;
    /// Destination address in IPv6 form (RFC 4291), as two words in host order.
    uint64_t high, low;
    /// The octet with the DSCP (RFC 2474), IPv4's type of service or IPv6's traffic class; 0: the socket's own.
    uint8_t traffic_class;
};

/// Opens a non-blocking, close-on-exec UDP socket; -1 and errno on failure. `dual` asks an IPv6 socket to serve IPv4 too.
int clinux_udp_socket(int is_ipv6, int dual);
/// Binds to an address in IPv6 form (for an IPv4 socket: the mapped one, or all zeros for any).
int clinux_bind(int fd, int is_ipv6, uint64_t high, uint64_t low, uint16_t port);
/// The port that a socket is bound to; -1 and errno on failure.
int clinux_bound_port(int fd);
/// Sets a socket buffer, beyond the system's limit if the process is permitted to; returns the size in force.
int clinux_set_buffer(int fd, int is_send, int bytes);
/// Permits or forbids the kernel to fragment datagrams that exceed the path's known MTU. If forbidden, it assigns no packet ids, which
/// cost 0.1 us each, and refuses (EMSGSIZE) those that are too long.
void clinux_set_fragments(int fd, int is_ipv6, int allowed);
/// Requests runs of equal datagrams from the kernel in one piece (UDP_GRO).
int clinux_enable_gro(int fd, int on);
/// Lets sockets of this user bind to the port that `fd` has or will have.
int clinux_share_port(int fd);
/// Of two sockets that share a port, the second one gets transport-wide feedback and the first one everything else; 0, or -1 and errno.
/// Feedback is recognized by its first two bytes, which SRTCP does not encrypt: version 2, format 15, packet type 205.
int clinux_split_feedback(int fd);
/// Datagrams that the kernel dropped because the receive buffer was full.
uint32_t clinux_receive_drops(int fd);

/// Sends at most CLINUX_SEND_LIMIT messages in one call; returns how many were sent, or -1 and errno if the first was not.
int clinux_send(int fd, int is_ipv6, const struct clinux_message *messages, unsigned count);

/// Receives one message without waiting. `segment` is the size of its datagrams if the kernel joined several, otherwise 0.
/// `truncated` is set if it did not fit.
ssize_t clinux_receive(
    int fd, int is_ipv6, void *bytes, size_t capacity, uint64_t *high, uint64_t *low, uint16_t *port, uint16_t *segment,
    int *truncated);

/// Waits until a descriptor is readable, at most `nanoseconds`; 0 if it is not by then, -1 and errno on failure.
int clinux_wait_readable(int fd, int64_t nanoseconds);
/// epoll_wait with nanoseconds; negative waits for ever. Falls back to whole milliseconds on kernels without it.
int clinux_epoll_wait(int epoll, struct epoll_event *events, int capacity, int64_t nanoseconds);
/// The descriptor that an event was registered with.
int clinux_event_fd(const struct epoll_event *event);
/// Adds a descriptor to an epoll set, with its own number as its mark.
int clinux_epoll_add(int epoll, int fd, uint32_t events);
/// Changes what a descriptor of an epoll set waits for.
int clinux_epoll_change(int epoll, int fd, uint32_t events);

/// One descriptor that is ready: the mark that it was added with, and its events.
struct clinux_ready {
    uint64_t mark;
    uint32_t events;
};
/// The most descriptors that one `clinux_epoll_take` returns.
#define CLINUX_READY_LIMIT 256
/// epoll_ctl with a mark of the caller's; 0, or -1 and errno.
int clinux_epoll_mark(int epoll, int operation, int fd, uint32_t events, uint64_t mark);
/// `clinux_epoll_wait` with marks; returns how many, at most CLINUX_READY_LIMIT.
int clinux_epoll_take(int epoll, struct clinux_ready *ready, int capacity, int64_t nanoseconds);

/// Opens a listening TCP socket, non-blocking and close-on-exec, at an address in IPv6 form; -1 and errno on failure.
int clinux_tcp_listen(int is_ipv6, uint64_t high, uint64_t low, uint16_t port, int backlog);
/// Accepts one connection, non-blocking, close-on-exec and without Nagle's delay, with its peer; -1 and errno if there is none.
int clinux_tcp_accept(int fd, uint64_t *high, uint64_t *low, uint16_t *port);
/// Makes `close` discard what a TCP socket has not sent, so that a peer that reads nothing occupies no memory.
void clinux_discard_on_close(int fd);
/// Bytes that may wait unsent in the kernel before a TCP socket counts as not writable.
void clinux_limit_unsent(int fd, int bytes);

/// Prefers the calling thread when processors are busy: sets a nice value, if the process is permitted to, and time slices of `slice`
/// nanoseconds (Linux 6.12), with which it is woken sooner. Threads that it creates are ordinary ones. Returns the nice value in force.
int clinux_prefer_thread(int nice, uint64_t slice);
/// Binds the calling thread to one processor.
int clinux_pin_thread(int cpu);
/// The number of processors that the process may use.
int clinux_usable_cpus(void);
/// Makes the allocator return whole free pages to the kernel, if it can.
void clinux_trim_heap(void);
/// The number of the `index`th processor that the process may use; -1 if there are fewer.
int clinux_usable_cpu(int index);
/// Names the calling thread, at most 15 bytes.
void clinux_name_thread(const char *name);
/// Whether the process may give its threads this nice value (CAP_SYS_NICE, RLIMIT_NICE).
int clinux_may_nice(int nice);
/// Whether the machine's clock is synchronized (NTP, PTP); true if the kernel does not say.
int clinux_clock_is_kept(void);
/// Whether the processor has instructions for AES and for the multiplication of GCM.
int clinux_has_aes(void);

/// Starts a program with the lowest priority: nice value 19, idle for the processor (SCHED_IDLE) and for the disk, killed first if memory runs out, without
/// this process's files and signals, and ended when the calling thread ends. It runs in `folder` with at most `memory` bytes of address space (0: no limit);
/// its standard output and error are the two descriptors. Returns the process's number, or -1 and errno. If it cannot become the program, it ends with 127 and
/// the reason on its standard error.
pid_t clinux_spawn_idle(
    const char *program, char *const arguments[], char *const environment[], const char *folder, int output, int errors,
    uint64_t memory);
/// A pipe whose ends no other program inherits: `ends[0]` to read, `ends[1]` to write; 0, or -1 and errno.
int clinux_pipe(int ends[2]);
/// The status of an ended process: its exit code, or 128 plus the signal.
int clinux_exit_code(int status);
