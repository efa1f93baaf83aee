internal import CNice
public import Primitives

/// One request to a STUN server for the address and port from which it sees a socket's packets (RFC 8489 section 2).
///
/// The request leaves from the socket itself, so a NAT on the path gives it the address and port that clients must send to, if the NAT maps all of the socket's
/// packets alike (RFC 4787 section 4.1). Only an answer from the server's address with the transaction's 96 random bits counts.
public final class AddressProbe {
    /// Who is asked.
    public let server: SocketAddress
    /// The server's answer; nil until it arrives.
    public private(set) var mapped: SocketAddress?
    private let agent: UnsafeMutablePointer<StunAgent>
    /// libnice keeps the pointer. Servers still add the attributes of RFC 3489, which it would otherwise refuse as unknown. Ends with 0.
    private let knownAttributes: UnsafeMutablePointer<UInt16>
    private var request: [UInt8] = []

    /// A header and SOFTWARE at the most.
    private static let maximumRequest = 256

    /// A request that was not sent yet.
    public init(server: SocketAddress) {
        self.server = server
        let known: [UInt16] = [
            UInt16(STUN_ATTRIBUTE_MAPPED_ADDRESS.rawValue), UInt16(STUN_ATTRIBUTE_XOR_MAPPED_ADDRESS.rawValue),
            UInt16(STUN_ATTRIBUTE_ERROR_CODE.rawValue), Self.sourceAddress, Self.changedAddress, 0,
        ]
        knownAttributes = .allocate(capacity: known.count)
        knownAttributes.initialize(from: known, count: known.count)
        agent = .allocate(capacity: 1)
        agent.initialize(to: StunAgent())
        stun_agent_init(
            agent, knownAttributes, STUN_COMPATIBILITY_RFC5389,
            StunAgentUsageFlags(STUN_AGENT_USAGE_IGNORE_CREDENTIALS.rawValue))
        var message = StunMessage()
        var bytes = [UInt8](repeating: 0, count: Self.maximumRequest)
        let length = stun_usage_bind_create(agent, &message, &bytes, bytes.count)
        request = Array(bytes.prefix(length))
    }

    deinit {
        agent.deallocate()
        knownAttributes.deallocate()
    }

    /// SOURCE-ADDRESS and CHANGED-ADDRESS of RFC 3489 section 11.2.
    private static let sourceAddress: UInt16 = 0x0004, changedAddress: UInt16 = 0x0005

    /// Writes the request, the same one each time (RFC 8489 section 6.2.1); false when the batch is full.
    public func send(into output: inout OutboundBatch) -> Bool {
        request.withUnsafeBytes { output.append($0, to: server) }
    }

    /// Whether a datagram is the server's answer, which is then stored.
    public func receive(_ datagram: UnsafeRawBufferPointer, from source: SocketAddress) -> Bool {
        guard mapped == nil, source == server, datagram.count >= 20, let start = datagram.baseAddress else {
            return false
        }
        var message = StunMessage()
        let bytes = start.assumingMemoryBound(to: UInt8.self)
        guard
            stun_agent_validate(agent, &message, bytes, datagram.count, nil, nil) == STUN_VALIDATION_SUCCESS,
            stun_message_get_class(&message) == STUN_RESPONSE
        else { return false }
        var address = sockaddr_storage(), other = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size), otherLength = length
        let result = withUnsafeMutablePointer(to: &address) { address in
            withUnsafeMutablePointer(to: &other) { other in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    other.withMemoryRebound(to: sockaddr.self, capacity: 1) { other in
                        stun_usage_bind_process(&message, address, &length, other, &otherLength)
                    }
                }
            }
        }
        guard result == STUN_USAGE_BIND_RETURN_SUCCESS else { return false }
        mapped = Self.socketAddress(&address)
        return mapped != nil
    }

    private static func socketAddress(_ address: inout sockaddr_storage) -> SocketAddress? {
        let family = Int32(address.ss_family)
        return withUnsafeBytes(of: &address) { raw in
            let port = UInt16(bigEndian: raw.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
            switch family {
            case AF_INET:
                let ipv4 = UInt32(bigEndian: raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
                return SocketAddress(ipv4: ipv4, port: port)
            case AF_INET6:
                return SocketAddress(
                    high: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
                    low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 16, as: UInt64.self)), port: port)
            default: return nil
            }
        }
    }
}
