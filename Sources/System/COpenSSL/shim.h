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

// Compound macros are not imported by Swift; these give them names.
static const uint64_t SSL_OP_ALL_ = SSL_OP_ALL;
