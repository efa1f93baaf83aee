public import Primitives

/// How much of a peer's packets is stored during a capture.
public struct CaptureSettings: Sendable, Hashable {
    /// RTP payloads too; otherwise RTP headers and whole RTCP packets.
    public var keepsPayload: Bool

    /// Settings with this value.
    public init(keepsPayload: Bool) { self.keepsPayload = keepsPayload }
}

/// Packets of one peer in clear text, oldest first, as the engine stored them: headers of ``recordLength`` bytes, each followed by the stored part of its
/// packet.
public struct CapturedPackets: Sendable, Hashable {
    /// One packet.
    public struct Packet: Sendable {
        public var time: MonotonicTime
        /// From the server to the peer.
        public var isSent: Bool
        public var isRTCP: Bool
        /// Bytes that the packet had.
        public var length: Int
        /// The stored part of it.
        public var bytes: ArraySlice<UInt8>
    }

    /// Bytes before each packet: time (8), length (2), bytes kept (2), 1 if sent, 1 if RTCP, in the machine's order.
    public static let recordLength = 14

    public var peer: PeerID
    private var records: [UInt8]
    /// Packets that found no room since the last report.
    public var dropped: UInt64

    /// The records for which there was room when they were written.
    public init(peer: PeerID, records: [UInt8], dropped: UInt64) {
        self.peer = peer
        self.records = records
        self.dropped = dropped
    }

    /// Calls `body` with each packet.
    public func forEach(_ body: (Packet) -> Void) {
        var start = 0
        while start + Self.recordLength <= records.count {
            let (time, length, kept) = records.withUnsafeBytes { bytes in
                (
                    bytes.loadUnaligned(fromByteOffset: start, as: Int64.self),
                    Int(bytes.loadUnaligned(fromByteOffset: start + 8, as: UInt16.self)),
                    Int(bytes.loadUnaligned(fromByteOffset: start + 10, as: UInt16.self))
                )
            }
            let first = start + Self.recordLength
            let end = min(first + kept, records.count)
            body(
                Packet(
                    time: MonotonicTime(nanoseconds: time), isSent: records[start + 12] != 0,
                    isRTCP: records[start + 13] != 0, length: length, bytes: records[first..<end]))
            start = end
        }
    }
}
