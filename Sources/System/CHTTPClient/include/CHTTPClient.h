#pragma once
#include <stddef.h>
#include <stdint.h>

/// What became of a request.
enum http_result { HTTP_ANSWERED = 0, HTTP_FAILED = 1, HTTP_ADDRESS_REFUSED = 2, HTTP_STOPPED = 3, HTTP_NOBODY_LISTENS = 4 };

/// One request. All pointers are borrowed for the call; those that are NULL ask for nothing.
struct http_request {
    const char *method;
    const char *url;
    const uint8_t *body;
    size_t body_size;
    /// Complete lines.
    const char *const *headers;
    size_t header_count;
    /// All of it; 0: as long as something passes, in either direction, within `silence_ms`.
    long timeout_ms;
    long silence_ms;
    /// Certificates to trust in place of the system's.
    const char *ca_file;
    /// Those of `ca_file` are trusted whatever names they have.
    int is_pinned;
    /// Signs the request as AWS wants it, for "provider1:provider2:region:service", by "id:secret".
    const char *signature_scope;
    const char *signature_user;
    /// Asked about each `struct sockaddr` before a socket is opened to it, after names were resolved.
    int (*may_connect)(const void *, void *);
    /// Given the response's body in pieces; 0 ends the request.
    int (*on_bytes)(const uint8_t *, size_t, long status, void *);
    /// Given each line of the response's header.
    void (*on_header)(const char *, size_t, void *);
    /// Asked several times a second; other than 0 ends the request.
    int (*is_stopped)(void *);
    void *context;
};

/// One request by libcurl, whose options are variadic and so out of Swift's reach. Blocks until it is over.
///
/// No redirects are followed and no proxy of the environment is used: nobody but the named host is spoken to. `status` is the response's. `error` is a text
/// for people.
enum http_result http_perform(const struct http_request *request, long *status, char *error, size_t error_size);
