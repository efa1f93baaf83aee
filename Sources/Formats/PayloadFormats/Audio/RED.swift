import Primitives

/// Redundant audio (RFC 2198): older blocks ahead of the primary one.
///
/// ```text
///  0                   1                    2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3  4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |1|   block PT  |  timestamp offset         |   block length    |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |0|   block PT  |  then the blocks' data in the order of headers
/// +-+-+-+-+-+-+-+-+
/// ```
public enum RED {
    /// One block.
    public struct Block: Sendable, Hashable {
        /// Payload type of the block.
        public var payloadType: UInt8
        /// How much earlier than the packet's timestamp; 0 for the primary.
        public var timestampOffset: UInt32
        /// Where its data starts in the payload.
        public var offset: Int
        /// Bytes of data.
        public var length: Int
        /// Whether it is the primary, last block.
        public var isPrimary: Bool
    }

    /// Walks the blocks, oldest first, the primary last.
    public struct Blocks: Sendable {
        private var header = 0
        private var data: Int
        private let end: Int
        private var isDone = false
        /// Where the data of the primary block starts; it extends to the payload's end.
        public let primaryOffset: Int

        /// A walk over `payload`; nil when its headers or blocks are cut off.
        public init?(_ payload: RawSpan) {
            end = payload.byteCount
            var position = 0
            var total = 0
            while true {
                guard position < end else { return nil }
                if payload.readUInt8(position) & 0x80 == 0 { break }
                guard position + 4 <= end else { return nil }
                total += Int(payload.readUInt16(position + 2) & 0x3ff)
                position += 4
            }
            data = position + 1
            primaryOffset = data + total
            guard primaryOffset <= end else { return nil }
        }

        /// The next block; nil after the primary.
        public mutating func next(in payload: RawSpan) -> Block? {
            guard !isDone else { return nil }
            let first = payload.readUInt8(header)
            if first & 0x80 == 0 {
                isDone = true
                return Block(
                    payloadType: first, timestampOffset: 0, offset: data, length: end - data, isPrimary: true)
            }
            let bits = payload.readUInt24(header + 1)
            let length = Int(bits & 0x3ff)
            defer {
                header += 4
                data += length
            }
            return Block(
                payloadType: first & 0x7f, timestampOffset: bits >> 10, offset: data, length: length,
                isPrimary: false)
        }
    }

    /// The primary block; nil when the payload is malformed.
    public static func primary(of payload: RawSpan) -> Block? {
        guard var blocks = Blocks(payload) else { return nil }
        while let block = blocks.next(in: payload) {
            if block.isPrimary { return block }
        }
        return nil
    }

    /// Summarises a payload, assuming that the primary block is Opus if it looks like it; nil when it is empty. A payload without blocks may be encrypted end
    /// to end, and is accepted.
    public static func summary(of payload: RawSpan) -> PayloadSummary? {
        guard let primary = primary(of: payload) else { return payload.byteCount > 0 ? .audio(samples: 0) : nil }
        let data = payload.extracting(primary.offset..<(primary.offset + primary.length))
        var summary = PayloadSummary.audio(samples: Opus(data)?.sampleCount ?? 0)
        summary.primaryPayloadType = primary.payloadType
        summary.primaryOffset = primary.offset
        return summary
    }
}
