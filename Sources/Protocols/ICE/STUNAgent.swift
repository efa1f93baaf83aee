internal import CNice
public import Primitives

/// The identifier of one STUN transaction (RFC 8489 section 5): 96 bits.
public struct TransactionID: Hashable, Sendable {
    var high: UInt32
    var low: UInt64

    /// The identifier in the header of a STUN message of at least 20 bytes.
    public init(of message: UnsafeRawBufferPointer) {
        high = message.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
        low = message.loadUnaligned(fromByteOffset: 12, as: UInt64.self)
    }
}

/// libnice's STUN agent: builds and validates messages with MESSAGE-INTEGRITY and FINGERPRINT (RFC 8489).
///
/// One per worker: it takes 13 kB, and peers keep their own transactions, so it has no state between two calls.
public final class STUNAgent {
    let agent: UnsafeMutablePointer<StunAgent>
    /// libnice keeps the pointer: comprehension-required attributes that are accepted. Ends with 0.
    private let knownAttributes: UnsafeMutablePointer<UInt16>
    /// The controlled side's tie-breaker (RFC 8445 section 5.2). A lite server is always controlled, so its value
    /// decides nothing.
    private let tieBreaker: UInt64

    /// An agent whose ICE-CONTROLLED or ICE-CONTROLLING attribute has the given tie-breaker.
    public init(tieBreaker: UInt64) {
        self.tieBreaker = tieBreaker
        let known: [UInt16] = [
            UInt16(STUN_ATTRIBUTE_USERNAME.rawValue), UInt16(STUN_ATTRIBUTE_MESSAGE_INTEGRITY.rawValue),
            UInt16(STUN_ATTRIBUTE_ERROR_CODE.rawValue), UInt16(STUN_ATTRIBUTE_XOR_MAPPED_ADDRESS.rawValue),
            UInt16(STUN_ATTRIBUTE_PRIORITY.rawValue), UInt16(STUN_ATTRIBUTE_USE_CANDIDATE.rawValue), 0,
        ]
        knownAttributes = .allocate(capacity: known.count)
        knownAttributes.initialize(from: known, count: known.count)
        agent = .allocate(capacity: 1)
        agent.initialize(to: StunAgent())
        stun_agent_init(
            agent, knownAttributes, STUN_COMPATIBILITY_RFC5389,
            StunAgentUsageFlags(
                STUN_AGENT_USAGE_SHORT_TERM_CREDENTIALS.rawValue | STUN_AGENT_USAGE_USE_FINGERPRINT.rawValue))
    }

    deinit {
        agent.deallocate()
        knownAttributes.deallocate()
    }

    /// The largest message written: header, XOR-MAPPED-ADDRESS, USERNAME of at most 513 bytes, three small
    /// attributes, MESSAGE- INTEGRITY and FINGERPRINT.
    static let maximumMessage = 20 + 24 + 520 + 28 + 24 + 8

    /// A Binding request (a check) to the holder of `remote`, written into `output`; nil when the batch is full.
    ///
    /// `controlling` and `nominate` are the client's side of ICE: the server never sets them.
    public func sendCheck(
        to destination: SocketAddress, local: ICECredential, remote: ICECredential, controlling: Bool, nominate: Bool,
        priority: UInt32, into output: inout OutboundBatch
    ) -> TransactionID? {
        guard let room = output.reserve(Self.maximumMessage) else { return nil }
        let length = Self.withUsername(remote.ufrag, local.ufrag) { username in
            var message = StunMessage()
            return stun_usage_ice_conncheck_create(
                agent, &message, room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count,
                username.baseAddress, username.count, remote.password.baseAddress, remote.passwordLength, nominate,
                controlling, priority, tieBreaker, nil, STUN_USAGE_ICE_COMPATIBILITY_RFC5245)
        }
        guard length >= 20 else { return nil }
        // For libnice a transaction id begins with the magic cookie. The sender keeps the transaction; the agent's
        // own list would fill up with those that are never answered.
        stun_agent_forget_transaction(agent, room.baseAddress?.advanced(by: 4).assumingMemoryBound(to: UInt8.self))
        output.commit(length: length, to: destination)
        return TransactionID(of: UnsafeRawBufferPointer(room))
    }

    /// Joins both fragments with a colon (RFC 8445 section 7.2.2) on the stack: a consent check allocates nothing.
    private static func withUsername(
        _ first: [UInt8], _ second: [UInt8], _ body: (UnsafeMutableBufferPointer<UInt8>) -> Int
    ) -> Int {
        let count = first.count + 1 + second.count
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { username in
            _ = username.initialize(from: first)
            username.initializeElement(at: first.count, to: UInt8(ascii: ":"))
            _ = UnsafeMutableBufferPointer(rebasing: username[(first.count + 1)...]).initialize(from: second)
            return body(username)
        }
    }

    /// Whether a Binding success response is authentic under `remote`'s password; the caller has matched its
    /// transaction.
    public func isAuthenticResponse(_ response: UnsafeRawBufferPointer, remote: ICECredential) -> Bool {
        guard response.count >= 20, let base = response.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            return false
        }
        cnice_lend_transaction(agent, base + 4, remote.password.baseAddress, remote.passwordLength)
        defer { cnice_return_transaction(agent) }
        var message = StunMessage()
        let status = stun_agent_validate(agent, &message, base, response.count, nil, nil)
        return status == STUN_VALIDATION_SUCCESS && stun_message_get_class(&message) == STUN_RESPONSE
            && stun_message_has_attribute(&message, STUN_ATTRIBUTE_MESSAGE_INTEGRITY)
    }
}
