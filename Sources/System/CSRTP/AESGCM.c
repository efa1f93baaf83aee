// AES-GCM for SRTP (RFC 7714): the header is additional data, a tag of 16 bytes follows the ciphertext.
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "Kernels.h"

#define SALT_LENGTH 12

// One keyed context. libsrtp2 shares it between all streams of a session, so the IV is set for each packet.
typedef struct {
    EVP_CIPHER_CTX *context;
    int key_length;
    unsigned int tag_length;
    srtp_cipher_direction_t direction;
} gcm_state;

static srtp_err_status_t gcm_dealloc(srtp_cipher_t *cipher) {
    gcm_state *state = cipher->state;
    if (state) EVP_CIPHER_CTX_free(state->context);
    free(state);
    free(cipher);
    return srtp_err_status_ok;
}

static srtp_err_status_t gcm_alloc(srtp_cipher_pointer_t *out, int key_length, int tag_length) {
    int wide = key_length == 32 + SALT_LENGTH;
    // Profiles have tags of 16 bytes; libsrtp2's self tests try 8 too.
    if (tag_length != 16 && tag_length != 8) return srtp_err_status_bad_param;
    if (!wide && key_length != 16 + SALT_LENGTH) return srtp_err_status_bad_param;
    srtp_cipher_t *cipher = calloc(1, sizeof *cipher);
    gcm_state *state = calloc(1, sizeof *state);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (!cipher || !state || !context) {
        free(cipher);
        free(state);
        EVP_CIPHER_CTX_free(context);
        return srtp_err_status_alloc_fail;
    }
    state->context = context;
    state->key_length = key_length - SALT_LENGTH;
    state->tag_length = (unsigned int)tag_length;
    cipher->type = wide ? &csrtp_aes_gcm_256 : &csrtp_aes_gcm_128;
    cipher->algorithm = wide ? SRTP_AES_GCM_256 : SRTP_AES_GCM_128;
    cipher->key_len = key_length;
    cipher->state = state;
    *out = cipher;
    return srtp_err_status_ok;
}

static srtp_err_status_t gcm_init(void *opaque, const uint8_t *key) {
    gcm_state *state = opaque;
    state->direction = srtp_direction_any;
    const EVP_CIPHER *cipher = state->key_length == 32 ? EVP_aes_256_gcm() : EVP_aes_128_gcm();
    // The key is scheduled once; a packet only sets its IV. The IV length is GCM's default, 12.
    return EVP_CipherInit_ex(state->context, cipher, NULL, key, NULL, 1) == 1 ? srtp_err_status_ok
                                                                              : srtp_err_status_init_fail;
}

static srtp_err_status_t gcm_set_iv(void *opaque, uint8_t *iv, srtp_cipher_direction_t direction) {
    gcm_state *state = opaque;
    if (direction != srtp_direction_encrypt && direction != srtp_direction_decrypt) return srtp_err_status_bad_param;
    state->direction = direction;
    int status = direction == srtp_direction_encrypt ? EVP_EncryptInit_ex2(state->context, NULL, NULL, iv, NULL)
                                                     : EVP_DecryptInit_ex2(state->context, NULL, NULL, iv, NULL);
    return status == 1 ? srtp_err_status_ok : srtp_err_status_init_fail;
}

static srtp_err_status_t gcm_set_aad(void *opaque, const uint8_t *aad, uint32_t length) {
    gcm_state *state = opaque;
    return EVP_Cipher(state->context, NULL, aad, length) >= 0 ? srtp_err_status_ok : srtp_err_status_algo_fail;
}

static srtp_err_status_t gcm_encrypt(void *opaque, uint8_t *buffer, unsigned int *length) {
    gcm_state *state = opaque;
    if (state->direction != srtp_direction_encrypt) return srtp_err_status_bad_param;
    return EVP_Cipher(state->context, buffer, buffer, *length) >= 0 ? srtp_err_status_ok : srtp_err_status_cipher_fail;
}

static srtp_err_status_t gcm_get_tag(void *opaque, uint8_t *tag, uint32_t *length) {
    gcm_state *state = opaque;
    OSSL_PARAM parameters[2] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, state->tag_length),
                                OSSL_PARAM_construct_end()};
    if (EVP_Cipher(state->context, NULL, NULL, 0) < 0) return srtp_err_status_algo_fail;
    if (EVP_CIPHER_CTX_get_params(state->context, parameters) != 1) return srtp_err_status_algo_fail;
    *length = state->tag_length;
    return srtp_err_status_ok;
}

static srtp_err_status_t gcm_decrypt(void *opaque, uint8_t *buffer, unsigned int *length) {
    gcm_state *state = opaque;
    if (state->direction != srtp_direction_decrypt) return srtp_err_status_bad_param;
    if (*length < state->tag_length) return srtp_err_status_bad_param;
    unsigned int clear = *length - state->tag_length;
    OSSL_PARAM parameters[2] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, buffer + clear, state->tag_length),
        OSSL_PARAM_construct_end()};
    if (EVP_CIPHER_CTX_set_params(state->context, parameters) != 1) return srtp_err_status_algo_fail;
    // EVP_Cipher takes a length of 0 with null pointers as the end, so an empty payload must not be passed as data.
    if (clear > 0 && EVP_Cipher(state->context, buffer, buffer, clear) < 0) return srtp_err_status_cipher_fail;
    if (EVP_Cipher(state->context, NULL, NULL, 0) < 0) return srtp_err_status_auth_fail;
    *length = clear;
    return srtp_err_status_ok;
}

srtp_cipher_type_t csrtp_aes_gcm_128 = {
    .alloc = gcm_alloc, .dealloc = gcm_dealloc, .init = gcm_init, .set_aad = gcm_set_aad, .encrypt = gcm_encrypt,
    .decrypt = gcm_decrypt, .set_iv = gcm_set_iv, .get_tag = gcm_get_tag,
    .description = "AES-128 GCM by OpenSSL for Martlet", .id = SRTP_AES_GCM_128,
};

srtp_cipher_type_t csrtp_aes_gcm_256 = {
    .alloc = gcm_alloc, .dealloc = gcm_dealloc, .init = gcm_init, .set_aad = gcm_set_aad, .encrypt = gcm_encrypt,
    .decrypt = gcm_decrypt, .set_iv = gcm_set_iv, .get_tag = gcm_get_tag,
    .description = "AES-256 GCM by OpenSSL for Martlet", .id = SRTP_AES_GCM_256,
};
