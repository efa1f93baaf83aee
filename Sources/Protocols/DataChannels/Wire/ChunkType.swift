/// The chunks that this end understands (RFC 9260 section 3.2, RFC 6525, RFC 3758).
enum ChunkType: UInt8 {
    case data = 0, initiation = 1, initiationAck = 2, sack = 3, heartbeat = 4, heartbeatAck = 5, abort = 6, shutdown = 7
    case shutdownAck = 8, error = 9, cookieEcho = 10, cookieAck = 11, shutdownComplete = 14
    case reconfiguration = 130, forwardTSN = 192
}

/// Sizes on the wire.
enum PacketSize {
    /// Ports, verification tag, checksum.
    static let header = 12
    static let chunkHeader = 4
    /// Chunk header, TSN, stream, sequence number, payload protocol identifier.
    static let dataHeader = 16
    /// 1,200 bytes of UDP payload minus 37 of a DTLS record under AES-GCM, rounded down to a multiple of four.
    static let largest = 1_160
    /// Longer packets are not from a WebRTC peer: an Ethernet frame holds no more.
    static let largestReceived = 1_500
    /// Bytes of a message in one packet.
    static let largestFragment = largest - header - dataHeader

    /// Chunks and parameters are padded to four bytes.
    static func padded(_ length: Int) -> Int { (length + 3) & ~3 }
}

/// Transmission sequence numbers are counted here without wrap-around; the wire has the lower 32 bits.
enum Serial {
    /// The number whose lower bits are `wire` and that is nearest to `reference`.
    static func unwrap(_ wire: UInt32, near reference: Int64) -> Int64 {
        reference &+ Int64(Int32(bitPattern: wire &- UInt32(truncatingIfNeeded: reference)))
    }

    /// The lower 32 bits.
    static func wire(_ number: Int64) -> UInt32 { UInt32(truncatingIfNeeded: number) }
}
