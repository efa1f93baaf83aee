#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/// What became of a request.
enum http_post_result { HTTP_POST_ANSWERED = 0, HTTP_POST_FAILED = 1, HTTP_POST_ADDRESS_REFUSED = 2 };

/// One POST by libcurl, whose options are variadic and so out of Swift's reach. Blocks for at most `timeout_ms`.
///
/// No redirects are followed and no proxy of the environment is used: nobody but the named host may be spoken to. `may_connect` is asked about each
/// address before a socket is opened to it, after names were resolved. `status` is the response's; its body is not kept. `error` is a text for people.
enum http_post_result http_post(
    const char *url, const uint8_t *body, size_t body_size, const char *const *headers, size_t header_count,
    long timeout_ms, int (*may_connect)(const struct sockaddr *, void *), void *context, long *status, char *error,
    size_t error_size);
