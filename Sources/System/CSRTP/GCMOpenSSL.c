#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

#include "GCMKernel.h"

static int openssl_key(void *state, const uint8_t key[16], int seals) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    *(EVP_CIPHER_CTX **)state = context;
    // The key is scheduled once; a packet only sets its IV. The IV length is GCM's default, 12.
    return context && EVP_CipherInit_ex(context, EVP_aes_128_gcm(), NULL, key, NULL, seals) == 1;
}

static void openssl_wipe(void *state) {
    EVP_CIPHER_CTX_free(*(EVP_CIPHER_CTX **)state);
    *(EVP_CIPHER_CTX **)state = NULL;
}

static int openssl_seal(
    void *state, const uint8_t iv[12], const uint8_t *additional, size_t additional_length, uint8_t *text, size_t length,
    uint8_t tag[16]) {
    EVP_CIPHER_CTX *context = *(EVP_CIPHER_CTX **)state;
    if (EVP_EncryptInit_ex2(context, NULL, NULL, iv, NULL) != 1) return 0;
    // EVP_Cipher skips the checks of EVP_EncryptUpdate; for an AEAD it gives the length, or a negative number.
    if (EVP_Cipher(context, NULL, additional, (unsigned)additional_length) < 0) return 0;
    // It takes a length of 0 with null pointers as the end, so an empty text must not be passed as data.
    if (length > 0 && EVP_Cipher(context, text, text, (unsigned)length) < 0) return 0;
    if (EVP_Cipher(context, NULL, NULL, 0) < 0) return 0;
    OSSL_PARAM parameters[2] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, 16), OSSL_PARAM_construct_end()};
    return EVP_CIPHER_CTX_get_params(context, parameters) == 1;
}

static int openssl_open(
    void *state, const uint8_t iv[12], const uint8_t *additional, size_t additional_length, uint8_t *text, size_t length,
    const uint8_t tag[16]) {
    EVP_CIPHER_CTX *context = *(EVP_CIPHER_CTX **)state;
    if (EVP_DecryptInit_ex2(context, NULL, NULL, iv, NULL) != 1) return 0;
    if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, (void *)tag) != 1) return 0;
    if (EVP_Cipher(context, NULL, additional, (unsigned)additional_length) < 0) return 0;
    if (length > 0 && EVP_Cipher(context, text, text, (unsigned)length) < 0) return 0;
    // The final call compares the tag: 0 if it is right, -1 if it is not.
    return EVP_Cipher(context, NULL, NULL, 0) >= 0;
}

static const csrtp_gcm_kernel openssl_kernel = {
    .name = "OpenSSL", .state_size = sizeof(EVP_CIPHER_CTX *), .key = openssl_key, .wipe = openssl_wipe,
    .seal = openssl_seal, .open = openssl_open,
};

const csrtp_gcm_kernel *csrtp_gcm_openssl(void) { return &openssl_kernel; }

int csrtp_derive(const uint8_t key[16], const uint8_t salt[14], uint8_t label, uint8_t *output, size_t length) {
    uint8_t counter[16] = {0}, zeros[32] = {0};
    if (length > sizeof zeros) return 0;
    // x = label << 48 XOR salt, then two bytes of block counter.
    memcpy(counter, salt, 14);
    counter[7] ^= label;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int written = 0;
    int done = context && EVP_EncryptInit_ex(context, EVP_aes_128_ctr(), NULL, key, counter) == 1 &&
               EVP_EncryptUpdate(context, output, &written, zeros, (int)length) == 1 && written == (int)length;
    EVP_CIPHER_CTX_free(context);
    OPENSSL_cleanse(counter, sizeof counter);
    return done;
}
