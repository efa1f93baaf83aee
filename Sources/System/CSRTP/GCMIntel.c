#include "GCMKernel.h"

#if defined(__x86_64__) && __has_include(<intel-ipsec-mb.h>)

#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <string.h>

// Built with the headers; the library is loaded by name if it is installed, so that the server starts without it.
static const IMB_MGR *manager;
static csrtp_gcm_kernel intel_kernel;

static int intel_key(void *state, const uint8_t key[16], int seals) {
    (void)seals;  // One state serves both directions.
    manager->gcm128_pre(key, state);
    return 1;
}

static void intel_wipe(void *state) { explicit_bzero(state, sizeof(struct gcm_key_data)); }

static int intel_seal(
    void *state, const uint8_t iv[12], const uint8_t *additional, size_t additional_length, uint8_t *text, size_t length,
    uint8_t tag[16]) {
    struct gcm_context_data scratch;
    manager->gcm128_enc(state, &scratch, text, text, length, iv, additional, additional_length, tag, 16);
    return 1;
}

static int intel_open(
    void *state, const uint8_t iv[12], const uint8_t *additional, size_t additional_length, uint8_t *text, size_t length,
    const uint8_t tag[16]) {
    struct gcm_context_data scratch;
    uint8_t right[16];
    manager->gcm128_dec(state, &scratch, text, text, length, iv, additional, additional_length, right, 16);
    return CRYPTO_memcmp(right, tag, 16) == 0;
}

static void load(void) {
    // Soname 1 keeps the manager's layout (1.0 to 2.0); older versions have other sonames.
    void *library = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    IMB_MGR *(*allocate)(uint64_t) = (IMB_MGR * (*)(uint64_t)) dlsym(library, "alloc_mb_mgr");
    void (*initialise)(IMB_MGR *, IMB_ARCH *) = (void (*)(IMB_MGR *, IMB_ARCH *))dlsym(library, "init_mb_mgr_auto");
    unsigned (*version)(void) = (unsigned (*)(void))dlsym(library, "imb_get_version");
    if (!allocate || !initialise || !version || version() < IMB_VERSION_NUM) return;
    IMB_MGR *made = allocate(0);
    if (!made) return;
    IMB_ARCH arch = IMB_ARCH_NONE;
    initialise(made, &arch);
    if (arch == IMB_ARCH_NONE || arch == IMB_ARCH_NOAESNI || !made->gcm128_pre || !made->gcm128_enc || !made->gcm128_dec)
        return;
    intel_kernel = (csrtp_gcm_kernel){
        .name = arch == IMB_ARCH_AVX512 ? "Intel IPsec MB (AVX512)"
                : arch == IMB_ARCH_AVX2 ? "Intel IPsec MB (AVX2)"
                                        : "Intel IPsec MB",
        .state_size = sizeof(struct gcm_key_data),
        .key = intel_key,
        .wipe = intel_wipe,
        .seal = intel_seal,
        .open = intel_open,
    };
    manager = made;
}

const csrtp_gcm_kernel *csrtp_gcm_ipsec_mb(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return manager ? &intel_kernel : 0;
}

#else

const csrtp_gcm_kernel *csrtp_gcm_ipsec_mb(void) { return 0; }

#endif
