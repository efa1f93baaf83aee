// AES in integer counter mode (RFC 3711 section 4.1.1): the counter block is (salt XOR packet index XOR SSRC) with 16 low bits
// of block counter, which is what OpenSSL's CTR mode counts.
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "Kernels.h"

#define SALT_LENGTH 14

typedef struct {
    EVP_CIPHER_CTX *context;
    int key_length;
    uint8_t offset[16];
} icm_state;

static srtp_err_status_t icm_dealloc(srtp_cipher_t *cipher) {
    icm_state *state = cipher->state;
    if (state) EVP_CIPHER_CTX_free(state->context);
    free(state);
    free(cipher);
    return srtp_err_status_ok;
}

static srtp_err_status_t icm_alloc(srtp_cipher_pointer_t *out, int key_length, int tag_length) {
    (void)tag_length;
    int wide = key_length == 32 + SALT_LENGTH;
    if (!wide && key_length != 16 + SALT_LENGTH) return srtp_err_status_bad_param;
    srtp_cipher_t *cipher = calloc(1, sizeof *cipher);
    icm_state *state = calloc(1, sizeof *state);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (!cipher || !state || !context) {
        free(cipher);
        free(state);
        EVP_CIPHER_CTX_free(context);
        return srtp_err_status_alloc_fail;
    }
    state->context = context;
    state->key_length = key_length - SALT_LENGTH;
    cipher->type = wide ? &csrtp_aes_icm_256 : &csrtp_aes_icm_128;
    cipher->algorithm = wide ? SRTP_AES_ICM_256 : SRTP_AES_ICM_128;
    cipher->key_len = key_length;
    cipher->state = state;
    *out = cipher;
    return srtp_err_status_ok;
}

static srtp_err_status_t icm_init(void *opaque, const uint8_t *key) {
    icm_state *state = opaque;
    memset(state->offset, 0, sizeof state->offset);
    memcpy(state->offset, key + state->key_length, SALT_LENGTH);
    const EVP_CIPHER *cipher = state->key_length == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr();
    return EVP_EncryptInit_ex(state->context, cipher, NULL, key, NULL) == 1 ? srtp_err_status_ok
                                                                            : srtp_err_status_init_fail;
}

static srtp_err_status_t icm_set_iv(void *opaque, uint8_t *iv, srtp_cipher_direction_t direction) {
    (void)direction;
    icm_state *state = opaque;
    uint8_t counter[16];
    for (int i = 0; i < 16; i++) counter[i] = state->offset[i] ^ iv[i];
    return EVP_EncryptInit_ex2(state->context, NULL, NULL, counter, NULL) == 1 ? srtp_err_status_ok
                                                                               : srtp_err_status_init_fail;
}

static srtp_err_status_t icm_encrypt(void *opaque, uint8_t *buffer, unsigned int *length) {
    icm_state *state = opaque;
    if (*length == 0) return srtp_err_status_ok;
    return EVP_Cipher(state->context, buffer, buffer, *length) >= 0 ? srtp_err_status_ok : srtp_err_status_cipher_fail;
}

srtp_cipher_type_t csrtp_aes_icm_128 = {
    .alloc = icm_alloc, .dealloc = icm_dealloc, .init = icm_init, .encrypt = icm_encrypt, .decrypt = icm_encrypt,
    .set_iv = icm_set_iv, .description = "AES-128 counter mode by OpenSSL for Martlet", .id = SRTP_AES_ICM_128,
};

srtp_cipher_type_t csrtp_aes_icm_256 = {
    .alloc = icm_alloc, .dealloc = icm_dealloc, .init = icm_init, .encrypt = icm_encrypt, .decrypt = icm_encrypt,
    .set_iv = icm_set_iv, .description = "AES-256 counter mode by OpenSSL for Martlet", .id = SRTP_AES_ICM_256,
};
