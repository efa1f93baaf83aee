#pragma once
#include <srtp2/cipher.h>
#include <srtp2/srtp.h>

#include "GCMKernel.h"

// OpenSSL's AES-GCM, AES-CTR and HMAC-SHA1 for libsrtp2's kernel.
//
// Debian builds libsrtp2 on NSS, which makes a new token context for each packet; OpenSSL behind the same interface is four
// to eight times faster. libsrtp2 runs its own self tests on a replacement before it accepts it.

// Which replacement failed in csrtp_install_openssl; 0 if none did.
typedef enum {
    CSRTP_OK = 0,
    CSRTP_AES_ICM_128,
    CSRTP_AES_ICM_256,
    CSRTP_AES_GCM_128,
    CSRTP_AES_GCM_256,
    CSRTP_HMAC_SHA1,
} csrtp_kernel;

// Installs all replacements; call once, after srtp_init and before the first srtp_create. On failure `status` has libsrtp2's
// reason.
csrtp_kernel csrtp_install_openssl(srtp_err_status_t *status);

// The cipher now used for `id`; for tests with the vectors of RFC 3711 and 7714. NULL for an unknown one.
const srtp_cipher_type_t *csrtp_cipher_type(uint32_t id);

// The implementation now used for AES-128-GCM; shows in a log and in a test that the replacement is in place.
const char *csrtp_gcm_description(void);
