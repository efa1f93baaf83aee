#include "CSRTP.h"
#include "Kernels.h"

// Exported by libsrtp2 but not in an installed header. They contain the test data that a replacement must pass.
const srtp_cipher_type_t *srtp_crypto_kernel_get_cipher_type(srtp_cipher_type_id_t id);
const srtp_auth_type_t *srtp_crypto_kernel_get_auth_type(srtp_auth_type_id_t id);

static srtp_err_status_t replace_cipher(srtp_cipher_type_t *type) {
    const srtp_cipher_type_t *old = srtp_crypto_kernel_get_cipher_type(type->id);
    if (!old || !old->test_data) return srtp_err_status_no_such_op;
    type->test_data = old->test_data;
    return srtp_replace_cipher_type(type, type->id);
}

csrtp_kernel csrtp_install_openssl(srtp_err_status_t *status) {
    if ((*status = replace_cipher(&csrtp_aes_icm_128))) return CSRTP_AES_ICM_128;
    if ((*status = replace_cipher(&csrtp_aes_icm_256))) return CSRTP_AES_ICM_256;
    if ((*status = replace_cipher(&csrtp_aes_gcm_128))) return CSRTP_AES_GCM_128;
    if ((*status = replace_cipher(&csrtp_aes_gcm_256))) return CSRTP_AES_GCM_256;
    const srtp_auth_type_t *old = srtp_crypto_kernel_get_auth_type(SRTP_HMAC_SHA1);
    if (!old || !old->test_data) return *status = srtp_err_status_no_such_op, CSRTP_HMAC_SHA1;
    csrtp_hmac_sha1.test_data = old->test_data;
    if ((*status = srtp_replace_auth_type(&csrtp_hmac_sha1, SRTP_HMAC_SHA1))) return CSRTP_HMAC_SHA1;
    return CSRTP_OK;
}

const srtp_cipher_type_t *csrtp_cipher_type(uint32_t id) { return srtp_crypto_kernel_get_cipher_type(id); }

const char *csrtp_gcm_description(void) {
    const srtp_cipher_type_t *type = srtp_crypto_kernel_get_cipher_type(SRTP_AES_GCM_128);
    return type ? type->description : "";
}
