#pragma once
#include <stddef.h>
#include <stdint.h>

// AES-128-GCM over a whole packet in one call.
//
// libsrtp2 asks a cipher for four steps per packet (IV, additional data, text, tag), each through a pointer and a separate library.
// The packet path avoids this: one keyed state in one piece of memory per direction, one call per packet.
typedef struct csrtp_gcm_kernel {
    const char *name;
    // Bytes of one keyed state, to be aligned to 64.
    size_t state_size;
    // Keys a state for `seal` (seals = 1) or for `open` (0); 0 on failure. A keyed state must be wiped once.
    int (*key)(void *state, const uint8_t key[16], int seals);
    // Frees a state's resources and erases the key.
    void (*wipe)(void *state);
    // Encrypts `length` bytes in place and writes the tag; 0 on failure.
    int (*seal)(
        void *state, const uint8_t iv[12], const uint8_t *additional, size_t additional_length, uint8_t *text, size_t length,
        uint8_t tag[16]);
    // Decrypts `length` bytes in place; 0 if the tag is wrong; the content of `text` is then undefined.
    int (*open)(
        void *state, const uint8_t iv[12], const uint8_t *additional, size_t additional_length, uint8_t *text, size_t length,
        const uint8_t tag[16]);
} csrtp_gcm_kernel;

// OpenSSL's: everywhere.
const csrtp_gcm_kernel *csrtp_gcm_openssl(void);

// Intel's IPsec multi-buffer library (Debian: libipsec-mb1), four times faster on processors with vector AES. NULL if its
// headers were missing at build, if the library is not installed, or if the processor lacks what it needs.
const csrtp_gcm_kernel *csrtp_gcm_ipsec_mb(void);

// Session keys of RFC 3711 section 4.3.1 (AES-CM, key derivation rate 0): `length` bytes, at most 32, for `label` from a 16-byte master
// key and a 14-byte master salt. 0 on failure.
int csrtp_derive(const uint8_t key[16], const uint8_t salt[14], uint8_t label, uint8_t *output, size_t length);
