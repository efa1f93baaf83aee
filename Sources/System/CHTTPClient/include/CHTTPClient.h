#pragma once
#include <stddef.h>
#include <stdint.h>

/// The outcome of a request.
enum http_result { HTTP_ANSWERED = 0, HTTP_FAILED = 1, HTTP_ADDRESS_REFUSED = 2, HTTP_STOPPED = 3, HTTP_NOBODY_LISTENS = 4 };

/// One request. All pointers are borrowed for the call; NULL means that an option is not used.
struct http_request {
    const char *method;
    const char *url;
    const uint8_t *body;
    size_t body_size;
    /// Complete lines.
    const char *const *headers;
    size_t header_count;
    /// The time limit of the whole request; 0: as long as something passes, in either direction, within `silence_ms`.
    long timeout_ms;
    long silence_ms;
    /// Certificates to trust instead of the system's.
    const char *ca_file;
    /// The certificates of `ca_file` are trusted whatever names they have.
    int is_pinned;
    /// Signs the request as AWS requires, for "provider1:provider2:region:service", by "id:secret".
    const char *signature_scope;
    const char *signature_user;
    /// Called with each `struct sockaddr` before a socket is opened to it, after names were resolved.
    int (*may_connect)(const void *, void *);
    /// Called with pieces of the response's body; 0 ends the request.
    int (*on_bytes)(const uint8_t *, size_t, long status, void *);
    /// Called with each line of the response's header.
    void (*on_header)(const char *, size_t, void *);
    /// Called several times per second; other than 0 ends the request.
    int (*is_stopped)(void *);
    void *context;
};

/// Performs one request with libcurl, whose options are variadic, so that Swift cannot call them. Blocks until it is over.
///
/// No redirects are followed and no proxy from the environment is used: only the named host is contacted. `status` is the response's. `error` is a text
/// for people.
enum http_result http_perform(const struct http_request *request, long *status, char *error, size_t error_size);
