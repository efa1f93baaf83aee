#pragma once
#include <stddef.h>
#include <stdint.h>

// AES-128-GCM over a whole packet in one call.
//
// libsrtp2 asks a cipher for four steps a packet (IV, additional data, text, tag), each through a pointer and a library of its own.
// The packet path does without: one keyed state in one piece of memory a direction, one call a packet.
typedef struct csrtp_gcm_kernel {
    const char *name;
    // Bytes of one keyed state, to be aligned to 64.
    size_t state_size;
    // Keys a state for `seal` (seals = 1) or for `open` (0); 0 on failure. A state that was keyed must be wiped once.
    int (*key)(void *state, const uint8_t key[16], int seals);
    // Frees what a state holds and forgets the key.
    void (*wipe)(void *state);
    // Encrypts `length` bytes in place and writes the tag; 0 on failure.
    int (*seal)(
        void *state, const uint8_t iv[12], const uint8_t *additional, size_t additional_length, uint8_t *text, size_t length,
        uint8_t tag[16]);
    // Decrypts `length` bytes in place; 0 when the tag is wrong, and what stands in `text` then is worth nothing.
    int (*open)(
        void *state, const uint8_t iv[12], const uint8_t *additional, size_t additional_length, uint8_t *text, size_t length,
        const uint8_t tag[16]);
} csrtp_gcm_kernel;

// OpenSSL's: everywhere.
const csrtp_gcm_kernel *csrtp_gcm_openssl(void);

// Intel's IPsec multi-buffer library (Debian: libipsec-mb1), four times faster on processors with vector AES. NULL where it was not
// there at build (headers) or is not there now (library), or where the processor lacks what it needs.
const csrtp_gcm_kernel *csrtp_gcm_ipsec_mb(void);

// Session keys of RFC 3711 section 4.3.1 (AES-CM, key derivation rate 0): `length` bytes, at most 32, for `label` from a 16-byte master
// key and a 14-byte master salt. 0 on failure.
int csrtp_derive(const uint8_t key[16], const uint8_t salt[14], uint8_t label, uint8_t *output, size_t length);
