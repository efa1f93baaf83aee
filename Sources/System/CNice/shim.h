#pragma once
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <stun/stunagent.h>
#include <stun/stunmessage.h>
#include <stun/constants.h>
#include <stun/usages/ice.h>
#include <stun/usages/bind.h>

// The socket address of an IPv6 address given as two words in host order; IPv4-mapped ones become IPv4, as STUN requires.
static inline socklen_t cnice_socket_address(
    struct sockaddr_storage *out, uint64_t high, uint64_t low, uint16_t port
) {
    memset(out, 0, sizeof *out);
    if (high == 0 && low >> 32 == 0xffff) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)out;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        v4->sin_addr.s_addr = htonl((uint32_t)low);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    for (int i = 0; i < 8; i++) {
        v6->sin6_addr.s6_addr[i] = (uint8_t)(high >> (56 - 8 * i));
        v6->sin6_addr.s6_addr[8 + i] = (uint8_t)(low >> (56 - 8 * i));
    }
    return sizeof *v6;
}

// Makes the agent expect the response to a Binding request that was built by `agent` and then forgotten. The agent keeps at most
// 200 open requests and has no clock; the peers keep their own requests and lend one to the agent while its response is validated. `transaction`
// begins with the magic cookie, 4 bytes into the message.
static inline void cnice_lend_transaction(
    StunAgent *agent, const uint8_t *transaction, const uint8_t *password, size_t length
) {
    StunAgentSavedIds *saved = &agent->sent_ids[0];
    memcpy(saved->id, transaction, sizeof(StunTransactionId));
    saved->method = STUN_BINDING;
    saved->key = (uint8_t *)password;
    saved->key_len = length;
    saved->long_term_valid = 0;
    saved->valid = 1;
}

// Ends what cnice_lend_transaction began.
static inline void cnice_return_transaction(StunAgent *agent) { agent->sent_ids[0].valid = 0; }
