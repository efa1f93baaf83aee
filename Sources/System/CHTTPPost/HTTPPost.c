#include "CHTTPPost.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct call {
    int (*may_connect)(const struct sockaddr *, void *);
    void *context;
    int refused;
    size_t received;
};

// A receiver's answer is its status. One that sends more than this sends something else.
static const size_t max_response = 64 << 10;

static size_t discard(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes;
    struct call *call = context;
    call->received += size * count;
    return call->received > max_response ? 0 : size * count;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)purpose;
    struct call *call = context;
    if (!call->may_connect(&address->addr, call->context)) {
        call->refused = 1;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void initialise(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

enum http_post_result http_post(
    const char *url, const uint8_t *body, size_t body_size, const char *const *headers, size_t header_count,
    long timeout_ms, int (*may_connect)(const struct sockaddr *, void *), void *context, long *status, char *error,
    size_t error_size) {
    pthread_once(&once, initialise);
    *status = 0;
    char message[CURL_ERROR_SIZE] = "";
    struct call call = {may_connect, context, 0, 0};
    CURL *curl = curl_easy_init();
    // No "Expect: 100-continue": a round trip for nothing.
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    for (size_t index = 0; list && index < header_count; index++) {
        struct curl_slist *longer = curl_slist_append(list, headers[index]);
        if (!longer) curl_slist_free_all(list);
        list = longer;
    }
    if (!curl || !list) {
        snprintf(error, error_size, "out of memory");
        curl_slist_free_all(list);
        curl_easy_cleanup(curl);
        return HTTP_POST_FAILED;
    }
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_size);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &call);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &call);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
    // The status stands once it was received, whatever follows it.
    if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && *status > 0)) return HTTP_POST_ANSWERED;
    snprintf(error, error_size, "%s", message[0] ? message : curl_easy_strerror(code));
    return call.refused ? HTTP_POST_ADDRESS_REFUSED : HTTP_POST_FAILED;
}
