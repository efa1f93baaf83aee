#pragma once
#include <srtp2/auth.h>
#include <srtp2/cipher.h>
#include <srtp2/srtp.h>

extern srtp_cipher_type_t csrtp_aes_icm_128, csrtp_aes_icm_256, csrtp_aes_gcm_128, csrtp_aes_gcm_256;
extern srtp_auth_type_t csrtp_hmac_sha1;
