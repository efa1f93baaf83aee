// HMAC-SHA1 (RFC 2104) with the two keyed states kept, so that a packet costs two copies of 96 bytes instead of two extra blocks.
// OpenSSL deprecates the plain SHA1_* functions in favour of EVP; EVP's copy allocates, which costs 5 % of a packet.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "Kernels.h"

#define BLOCK_LENGTH 64

typedef struct {
    SHA_CTX inner, outer, current;
} hmac_state;

static srtp_err_status_t hmac_dealloc(srtp_auth_t *auth) {
    if (auth->state) OPENSSL_cleanse(auth->state, sizeof(hmac_state));
    free(auth->state);
    free(auth);
    return srtp_err_status_ok;
}

static srtp_err_status_t hmac_alloc(srtp_auth_pointer_t *out, int key_length, int out_length) {
    if (key_length < 0 || key_length > SHA_DIGEST_LENGTH || out_length < 0 || out_length > SHA_DIGEST_LENGTH)
        return srtp_err_status_bad_param;
    srtp_auth_t *auth = calloc(1, sizeof *auth);
    hmac_state *state = calloc(1, sizeof *state);
    if (!auth || !state) {
        free(auth);
        free(state);
        return srtp_err_status_alloc_fail;
    }
    auth->type = &csrtp_hmac_sha1;
    auth->state = state;
    auth->out_len = out_length;
    auth->key_len = key_length;
    *out = auth;
    return srtp_err_status_ok;
}

static srtp_err_status_t hmac_init(void *opaque, const uint8_t *key, int key_length) {
    hmac_state *state = opaque;
    if (key_length < 0 || key_length > BLOCK_LENGTH) return srtp_err_status_bad_param;
    uint8_t pad[BLOCK_LENGTH];
    memset(pad, 0x36, sizeof pad);
    for (int i = 0; i < key_length; i++) pad[i] ^= key[i];
    int ok = SHA1_Init(&state->inner) && SHA1_Update(&state->inner, pad, sizeof pad);
    for (int i = 0; i < BLOCK_LENGTH; i++) pad[i] ^= 0x36 ^ 0x5c;
    ok = ok && SHA1_Init(&state->outer) && SHA1_Update(&state->outer, pad, sizeof pad);
    OPENSSL_cleanse(pad, sizeof pad);
    state->current = state->inner;
    return ok ? srtp_err_status_ok : srtp_err_status_auth_fail;
}

static srtp_err_status_t hmac_start(void *opaque) {
    hmac_state *state = opaque;
    state->current = state->inner;
    return srtp_err_status_ok;
}

static srtp_err_status_t hmac_update(void *opaque, const uint8_t *message, int length) {
    hmac_state *state = opaque;
    return SHA1_Update(&state->current, message, (size_t)length) ? srtp_err_status_ok : srtp_err_status_auth_fail;
}

static srtp_err_status_t hmac_compute(void *opaque, const uint8_t *message, int length, int tag_length, uint8_t *tag) {
    hmac_state *state = opaque;
    uint8_t digest[SHA_DIGEST_LENGTH];
    if (tag_length < 0 || tag_length > SHA_DIGEST_LENGTH) return srtp_err_status_bad_param;
    SHA_CTX outer = state->outer;
    if (!SHA1_Update(&state->current, message, (size_t)length) || !SHA1_Final(digest, &state->current) ||
        !SHA1_Update(&outer, digest, sizeof digest) || !SHA1_Final(digest, &outer))
        return srtp_err_status_auth_fail;
    memcpy(tag, digest, (size_t)tag_length);
    return srtp_err_status_ok;
}

srtp_auth_type_t csrtp_hmac_sha1 = {
    .alloc = hmac_alloc, .dealloc = hmac_dealloc, .init = hmac_init, .compute = hmac_compute, .update = hmac_update,
    .start = hmac_start, .description = "HMAC-SHA1 by OpenSSL for Martlet", .id = SRTP_HMAC_SHA1,
};
