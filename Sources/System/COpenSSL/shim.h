#pragma once
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <stdint.h>
#include <sys/time.h>

// Swift does not import compound macros; these give them names.
static const uint64_t COPENSSL_DTLS_OPTIONS =
    SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_QUERY_MTU | SSL_OP_NO_COMPRESSION |
    SSL_OP_CIPHER_SERVER_PREFERENCE;
static const int COPENSSL_RETRY_READ = BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY;
static const int COPENSSL_RETRY_FLAGS = BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY;

// The retransmission timer of a DTLS association, in the caller's time.
//
// OpenSSL compares the moment of the next retransmission with the wall clock. In OpenSSL 3.0 it hands the BIO the address of
// that moment each time it changes (BIO_CTRL_DGRAM_SET_NEXT_TIMEOUT; the address is inside the SSL object and lives as long), so
// the owner can hold the timer (it never expires by the wall clock) and let it expire by its own clock. From 3.2 on the
// address is that of a copy: there `copenssl_timer_is_lent` returns 0, and only OpenSSL's own clock counts.
static inline int copenssl_timer_is_lent(void) { return (OpenSSL_version_num() >> 20) == 0x300; }

// Holds an armed timer and returns 1; returns 0 for a stopped one.
static inline int copenssl_hold_timer(void *timer) {
    struct timeval *moment = (struct timeval *)timer;
    if (moment->tv_sec == 0 && moment->tv_usec == 0) return 0;
    if (copenssl_timer_is_lent()) moment->tv_sec = (time_t)1 << 40;
    return 1;
}

// Lets a held timer expire at once.
static inline void copenssl_expire_timer(void *timer) {
    struct timeval *moment = (struct timeval *)timer;
    moment->tv_sec = 1;
    moment->tv_usec = 0;
}

// Options of a TLS server on the Internet: no renegotiation, no compression, its own order of ciphers.
static const uint64_t COPENSSL_TLS_OPTIONS =
    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE;
