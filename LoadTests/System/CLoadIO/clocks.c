#define _GNU_SOURCE
#include "CLoadIO.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t clock) {
    struct timespec time;
    if (clock_gettime(clock, &time) != 0) return -1;
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

int64_t loadio_process_time(int pid) {
    clockid_t clock;
    return clock_getcpuclockid(pid, &clock) == 0 ? read_clock(clock) : -1;
}

int64_t loadio_thread_time(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
int64_t loadio_realtime(void) { return read_clock(CLOCK_REALTIME); }
int64_t loadio_monotonic(void) { return read_clock(CLOCK_MONOTONIC); }

void loadio_sleep_until(int64_t nanoseconds) {
    struct timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

enum { REFERENCE_BYTES = 1050 };

static int encrypt(EVP_CIPHER_CTX *cipher, uint8_t *bytes, uint32_t round) {
    uint8_t nonce[12] = {0};
    int length = 0;
    memcpy(nonce, &round, sizeof round);
    return EVP_EncryptInit_ex(cipher, NULL, NULL, NULL, nonce) == 1
        && EVP_EncryptUpdate(cipher, bytes, &length, bytes, REFERENCE_BYTES) == 1
        && EVP_EncryptFinal_ex(cipher, bytes + length, &length) == 1
        && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, 16, bytes + REFERENCE_BYTES) == 1;
}

// A socket that sends to itself: one pass through the whole stack and back.
static int open_loop(struct sockaddr_in *name) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof *name;
    *name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd >= 0 && bind(fd, (struct sockaddr *)name, length) == 0
        && getsockname(fd, (struct sockaddr *)name, &length) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

double loadio_reference_packet(int rounds) {
    static const uint8_t key[16] = "reference packet";
    uint8_t bytes[REFERENCE_BYTES + 16] = {0};
    struct sockaddr_in name;
    int fd = open_loop(&name);
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    double result = -1;
    if (fd >= 0 && cipher && EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), NULL, key, NULL) == 1) {
        int64_t start = 0;
        int good = 1;
        // One round in eight warms caches and is not counted.
        for (int i = -(rounds / 8) - 1; i < rounds && good; i++) {
            if (i == 0) start = loadio_thread_time();
            good = encrypt(cipher, bytes, (uint32_t)i)
                && sendto(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&name, sizeof name) > 0
                && recv(fd, bytes, sizeof bytes, 0) > 0;
        }
        if (good) result = (double)(loadio_thread_time() - start) / rounds;
    }
    EVP_CIPHER_CTX_free(cipher);
    if (fd >= 0) close(fd);
    return result;
}
