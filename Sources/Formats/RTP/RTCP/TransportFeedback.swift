import Primitives

/// Arrival times of a transport's packets (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
///
/// ```text
/// |      base sequence number     |      packet status count      |
/// |                 reference time                | fb pkt. count |
/// |          packet chunk         |         packet chunk          |
/// |         packet chunk          |  recv delta   |  recv delta   |
/// ```
/// ```swift
/// var reader = feedback.makeReader()
/// while let status = reader.next(in: datagram) { … }
/// ```
public struct TransportFeedback: Sendable, Hashable {
    /// Who received the packets.
    public let senderSSRC: UInt32
    /// Any stream of the sender.
    public let mediaSSRC: UInt32
    /// Number of the first packet reported.
    public let baseSequence: UInt16
    /// How many packets are reported, received or not.
    public let packetCount: Int
    /// Start of the deltas on the receiver's clock, in steps of 64 ms; 24 bits, signed, wraps.
    public let referenceTime: Int32
    /// Counts feedback packets, so that a lost one is noticed.
    public let feedbackCount: UInt8
    let chunks: Int
    let end: Int

    init?(_ frame: RTCPFrame, in datagram: RawSpan) {
        guard frame.bodyLength >= 18 else { return nil }
        senderSSRC = datagram.readUInt32(frame.body)
        mediaSSRC = datagram.readUInt32(frame.body + 4)
        baseSequence = datagram.readUInt16(frame.body + 8)
        packetCount = Int(datagram.readUInt16(frame.body + 10))
        referenceTime = Int32(bitPattern: datagram.readUInt24(frame.body + 12) << 8) >> 8
        feedbackCount = datagram.readUInt8(frame.body + 15)
        chunks = frame.body + 16
        end = frame.bodyEnd
        guard packetCount > 0 else { return nil }
    }

    /// One reported packet.
    public struct Status: Sendable, Hashable {
        /// The transport-wide sequence number.
        public var sequence: UInt16
        /// When it arrived, in steps of 250 us since `referenceTime` 0; nil when it did not arrive.
        public var arrival: Int64?
    }

    /// Walks the reported packets; nil when the chunks or deltas are incomplete.
    public func makeReader(in datagram: RawSpan) -> TransportFeedbackReader? {
        TransportFeedbackReader(self, in: datagram)
    }
}

/// Walks the packets of one transport-wide feedback in order of sequence.
public struct TransportFeedbackReader: Sendable {
    private var sequence: UInt16
    private var remaining: Int
    private var chunkPosition: Int
    private var deltaPosition: Int
    private var chunk = StatusChunk(0)
    private var time: Int64

    init?(_ feedback: TransportFeedback, in datagram: RawSpan) {
        // A dry run over the chunks: their number shows where the deltas start, and their content shows how many deltas there are.
        var position = feedback.chunks
        var remaining = feedback.packetCount
        var deltaBytes = 0
        while remaining > 0 {
            guard position + 2 <= feedback.end else { return nil }
            let chunk = StatusChunk(datagram.readUInt16(position))
            position += 2
            deltaBytes += chunk.deltaBytes(ofFirst: remaining)
            remaining -= chunk.remaining
        }
        guard position + deltaBytes <= feedback.end else { return nil }
        sequence = feedback.baseSequence
        self.remaining = feedback.packetCount
        chunkPosition = feedback.chunks
        deltaPosition = position
        time = Int64(feedback.referenceTime) * 256
    }

    /// The next packet; nil at the end.
    public mutating func next(in datagram: RawSpan) -> TransportFeedback.Status? {
        guard remaining > 0 else { return nil }
        while chunk.remaining == 0 {  // A run may be empty.
            chunk = StatusChunk(datagram.readUInt16(chunkPosition))
            chunkPosition += 2
        }
        remaining -= 1
        defer { sequence &+= 1 }
        switch chunk.next() {
        case 1:
            time += Int64(datagram.readUInt8(deltaPosition))
            deltaPosition += 1
        case 2:
            time += Int64(Int16(bitPattern: datagram.readUInt16(deltaPosition)))
            deltaPosition += 2
        default:
            // 0 is "not received"; 3 is reserved and has no delta.
            return TransportFeedback.Status(sequence: sequence, arrival: nil)
        }
        return TransportFeedback.Status(sequence: sequence, arrival: time)
    }
}

/// One packet status chunk: a run of one symbol, or a vector of 14 one-bit or 7 two-bit symbols.
struct StatusChunk: Sendable {
    private var bits: UInt16
    private let isRun: Bool
    private let symbolBits: UInt16
    private(set) var remaining: Int

    init(_ word: UInt16) {
        isRun = word & 0x8000 == 0
        if isRun {
            symbolBits = 0
            bits = word >> 13 & 3
            remaining = Int(word & 0x1fff)
            return
        }
        symbolBits = word & 0x4000 == 0 ? 1 : 2
        bits = word << 2
        remaining = symbolBits == 1 ? 14 : 7
    }

    /// The next symbol: 0 not received, 1 small delta, 2 large or negative delta.
    mutating func next() -> UInt16 {
        remaining -= 1
        if isRun { return bits }
        let symbol = bits >> (16 - symbolBits)
        bits <<= symbolBits
        return symbol
    }

    /// Bytes of deltas that the first `count` symbols have.
    func deltaBytes(ofFirst count: Int) -> Int {
        let used = min(count, remaining)
        if isRun { return bits == 3 ? 0 : used * Int(bits) }
        var copy = self
        var bytes = 0
        for _ in 0..<used {
            let symbol = copy.next()
            bytes += symbol == 3 ? 0 : Int(symbol)
        }
        return bytes
    }
}
