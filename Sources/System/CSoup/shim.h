#pragma once
// libsoup, with the cast macros and types that Swift does not import. No logic.
#include <glib-unix.h>
#include <libsoup/soup.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

/// The type of `SoupServer`; SOUP_TYPE_SERVER is a macro.
static inline GType csoup_server_type(void) { return SOUP_TYPE_SERVER; }
/// TRUE as a value for a construct property.
static inline GValue csoup_true_value(void) {
    GValue value = G_VALUE_INIT;
    g_value_init(&value, G_TYPE_BOOLEAN);
    g_value_set_boolean(&value, TRUE);
    return value;
}
/// The address of an Internet socket address; NULL for other families.
static inline GInetAddress *csoup_inet_address(GSocketAddress *address) {
    return G_IS_INET_SOCKET_ADDRESS(address) ? g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(address)) : NULL;
}
/// The port of an Internet socket address; 0 for other families.
static inline guint16 csoup_inet_port(GSocketAddress *address) {
    return G_IS_INET_SOCKET_ADDRESS(address) ? g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(address)) : 0;
}
/// A stream's input side as a pollable one; NULL when it is not.
static inline GPollableInputStream *csoup_pollable_input(GIOStream *stream) {
    GInputStream *input = g_io_stream_get_input_stream(stream);
    return G_IS_POLLABLE_INPUT_STREAM(input) ? G_POLLABLE_INPUT_STREAM(input) : NULL;
}
/// A stream's output side as a pollable one; NULL when it is not.
static inline GPollableOutputStream *csoup_pollable_output(GIOStream *stream) {
    GOutputStream *output = g_io_stream_get_output_stream(stream);
    return G_IS_POLLABLE_OUTPUT_STREAM(output) ? G_POLLABLE_OUTPUT_STREAM(output) : NULL;
}
/// Reads what is there: a count, 0 at the end, -1 when nothing is there now, -2 when the stream is broken.
static inline gssize csoup_read(GPollableInputStream *input, void *bytes, gsize count) {
    GError *error = NULL;
    gssize n = g_pollable_input_stream_read_nonblocking(input, bytes, count, NULL, &error);
    if (n >= 0) return n;
    gboolean again = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);
    g_error_free(error);
    return again ? -1 : -2;
}
/// Writes what fits: a count, -1 when nothing fits now, -2 when the stream is broken.
static inline gssize csoup_write(GPollableOutputStream *output, const void *bytes, gsize count) {
    GError *error = NULL;
    gssize n = g_pollable_output_stream_write_nonblocking(output, bytes, count, NULL, &error);
    if (n >= 0) return n;
    gboolean again = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK);
    g_error_free(error);
    return again ? -1 : -2;
}
/// An empty epoll set; negative when there is no descriptor left.
static inline int csoup_epoll_new(void) { return epoll_create1(EPOLL_CLOEXEC); }
/// Adds a descriptor to an epoll set: whenever it has bytes or has ended, `csoup_epoll_take` tells its mark.
static inline int csoup_epoll_add(int set, int descriptor, guint64 mark) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = mark};
    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
}
/// Takes a descriptor out of an epoll set.
static inline void csoup_epoll_remove(int set, int descriptor) {
    struct epoll_event none = {0};
    epoll_ctl(set, EPOLL_CTL_DEL, descriptor, &none);
}
/// The marks of up to 64 descriptors that are ready now; how many.
static inline int csoup_epoll_take(int set, guint64 marks[64]) {
    struct epoll_event events[64];
    int count = epoll_wait(set, events, 64, 0);
    for (int i = 0; i < count; i++) marks[i] = events[i].data.u64;
    return count;
}
/// Lets go of an accepted socket that is closed. libsoup before 3.4 forgets to drop the reference that it got from accept(): where that
/// and the caller's are the only ones left, both go.
static inline void csoup_release_accepted(GSocket *socket) {
    gboolean forgets = !soup_check_version(3, 4, 0);
    if (forgets && g_atomic_int_get(&G_OBJECT(socket)->ref_count) == 2) g_object_unref(socket);
    g_object_unref(socket);
}
/// A client session; the properties can only be set while it is made.
static inline SoupSession *csoup_session_new(int connections, int connections_per_host) {
    return soup_session_new_with_options("max-conns", connections, "max-conns-per-host", connections_per_host, NULL);
}
