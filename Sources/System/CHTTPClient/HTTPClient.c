#include "CHTTPClient.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

struct call {
    const struct http_request *request;
    CURL *curl;
    int refused;
    int stopped;
    // How many bytes had passed in either direction at the last progress, and when that was.
    curl_off_t passed;
    int64_t passed_at_ms;
    int silent;
};

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t write_bytes(char *bytes, size_t size, size_t count, void *context) {
    struct call *call = context;
    if (!call->request->on_bytes) return size * count;
    long status = 0;
    curl_easy_getinfo(call->curl, CURLINFO_RESPONSE_CODE, &status);
    if (call->request->on_bytes((const uint8_t *)bytes, size * count, status, call->request->context)) return size * count;
    call->stopped = 1;
    return 0;
}

static size_t read_header(char *bytes, size_t size, size_t count, void *context) {
    struct call *call = context;
    call->request->on_header(bytes, size * count, call->request->context);
    return size * count;
}

static int progress(void *context, curl_off_t all_down, curl_off_t down, curl_off_t all_up, curl_off_t up) {
    (void)all_down, (void)all_up;
    struct call *call = context;
    const struct http_request *request = call->request;
    if (request->is_stopped && request->is_stopped(request->context)) return 1;
    if (request->timeout_ms > 0 || request->silence_ms <= 0) return 0;
    int64_t now = now_ms();
    if (down + up != call->passed) {
        call->passed = down + up;
        call->passed_at_ms = now;
    }
    call->silent = now - call->passed_at_ms >= request->silence_ms;
    return call->silent;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)purpose;
    struct call *call = context;
    const struct http_request *request = call->request;
    if (request->may_connect && !request->may_connect(&address->addr, request->context)) {
        call->refused = 1;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void initialise(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

// "Expect:" without a value: no round trip before a body. libcurl 7.88 would sign that line but not send it, so signed requests do not have it.
static struct curl_slist *header_list(const struct http_request *request) {
    const char *first = request->signature_scope ? "Accept: */*" : "Expect:";
    struct curl_slist *list = curl_slist_append(NULL, first);
    for (size_t index = 0; list && index < request->header_count; index++) {
        struct curl_slist *longer = curl_slist_append(list, request->headers[index]);
        if (!longer) curl_slist_free_all(list);
        list = longer;
    }
    return list;
}

enum http_result http_perform(const struct http_request *request, long *status, char *error, size_t error_size) {
    pthread_once(&once, initialise);
    *status = 0;
    char message[CURL_ERROR_SIZE] = "";
    CURL *curl = curl_easy_init();
    struct curl_slist *list = header_list(request);
    struct call call = {.request = request, .curl = curl, .passed_at_ms = now_ms()};
    if (!curl || !list) {
        snprintf(error, error_size, "out of memory");
        curl_slist_free_all(list);
        curl_easy_cleanup(curl);
        return HTTP_FAILED;
    }
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(curl, CURLOPT_URL, request->url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
    if (request->timeout_ms > 0) curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, request->timeout_ms);
    // Not CURLOPT_LOW_SPEED_TIME, which requires one byte per second on average: a quiet event stream has three in 15 s.
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &call);
    // With only the method set, libcurl would wait for the body of a HEAD.
    if (!strcmp(request->method, "HEAD")) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    if (request->signature_scope) {
        curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, request->signature_scope);
        curl_easy_setopt(curl, CURLOPT_USERPWD, request->signature_user);
    }
    if (request->on_header) {
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, read_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, &call);
    }
    if (request->ca_file) curl_easy_setopt(curl, CURLOPT_CAINFO, request->ca_file);
    if (request->is_pinned) curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    if (request->body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
    }
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, write_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &call);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &call);
    CURLcode code = curl_easy_perform(curl);
    long fault = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &fault);
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
    if (call.stopped) return HTTP_STOPPED;
    if (code == CURLE_OK) return HTTP_ANSWERED;
    if (call.silent) {
        snprintf(error, error_size, "nothing came for %g s", (double)request->silence_ms / 1000);
        return HTTP_FAILED;
    }
    snprintf(error, error_size, "%s", message[0] ? message : curl_easy_strerror(code));
    if (call.refused) return HTTP_ADDRESS_REFUSED;
    return code == CURLE_COULDNT_CONNECT && fault == ECONNREFUSED ? HTTP_NOBODY_LISTENS : HTTP_FAILED;
}
