/// What one turn has for recorders: records in one preallocated arena, in order.
///
/// ```text
/// | header, 32 bytes | content | header | content | …    each record padded to 8 bytes
/// ```
/// A recorder never holds anybody up: if it has no room, `reserve` returns nil, and the writer notes the gap.
public struct RecordBatch: ~Copyable {
    /// What a record is.
    public enum Kind: UInt32, Sendable {
        /// An RTP packet.
        case packet
        /// A point of the sender's clock; no content.
        case anchor
        /// Packets were dropped for lack of room; no content.
        case gap
        /// Nothing more of this stream follows; no content.
        case ended
    }

    /// The header that precedes a record's content.
    public struct Header: Sendable, Hashable {
        /// Bytes of it in memory.
        public static let length = 32

        public var kind: Kind
        /// Bytes of content.
        public var length: Int
        /// Which stream.
        public var stream: UInt64
        /// When it arrived.
        public var arrival: MonotonicTime
        /// Of an anchor: NTP time, 32.32 fixed point.
        public var ntp: UInt64
        /// Of an anchor: RTP timestamp.
        public var timestamp: UInt32

        /// A header of these values.
        public init(
            kind: Kind, length: Int = 0, stream: UInt64, arrival: MonotonicTime, ntp: UInt64 = 0, timestamp: UInt32 = 0
        ) {
            self.kind = kind
            self.length = length
            self.stream = stream
            self.arrival = arrival
            self.ntp = ntp
            self.timestamp = timestamp
        }

        /// Bytes of the whole record.
        public var recordLength: Int { RecordBatch.recordLength(content: length) }

        /// Reads the header at the start of `bytes`; nil for what is none.
        public init?(_ bytes: UnsafeRawBufferPointer) {
            guard bytes.count >= Self.length,
                let kind = Kind(rawValue: bytes.load(fromByteOffset: 4, as: UInt32.self) & 0xff)
            else { return nil }
            let packed = bytes.load(fromByteOffset: 4, as: UInt32.self)
            self.kind = kind
            length = Int(packed >> 8)
            timestamp = bytes.load(fromByteOffset: 0, as: UInt32.self)
            stream = bytes.load(fromByteOffset: 8, as: UInt64.self)
            arrival = MonotonicTime(nanoseconds: bytes.load(fromByteOffset: 16, as: Int64.self))
            ntp = bytes.load(fromByteOffset: 24, as: UInt64.self)
        }

        func write(to bytes: UnsafeMutableRawBufferPointer) {
            bytes.storeBytes(of: timestamp, toByteOffset: 0, as: UInt32.self)
            bytes.storeBytes(
                of: kind.rawValue | UInt32(truncatingIfNeeded: length) << 8, toByteOffset: 4, as: UInt32.self)
            bytes.storeBytes(of: stream, toByteOffset: 8, as: UInt64.self)
            bytes.storeBytes(of: arrival.nanoseconds, toByteOffset: 16, as: Int64.self)
            bytes.storeBytes(of: ntp, toByteOffset: 24, as: UInt64.self)
        }
    }

    private let arena: UnsafeMutableRawBufferPointer
    /// Bytes that a reader has room for.
    private var limit: Int
    /// Bytes in use.
    public private(set) var used = 0
    /// Whether streams that were dropped may continue: there is room for a while.
    public private(set) var hasAmpleRoom: Bool

    /// A batch of at most `capacity` bytes, whose reader has room for them.
    public init(capacity: Int) {
        arena = .allocate(byteCount: capacity, alignment: 64)
        limit = capacity
        hasAmpleRoom = true
    }

    deinit { arena.deallocate() }

    /// The records, in order.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: arena[..<used]) }

    static func recordLength(content: Int) -> Int { Header.length + (content + 7) & ~7 }

    /// Room for a record with a content of at most `maximumLength` bytes; nil when there is none.
    @inlinable public func reserve(_ maximumLength: Int) -> UnsafeMutableRawBufferPointer? {
        hasRoom(for: maximumLength) ? content(maximumLength) : nil
    }

    @usableFromInline func hasRoom(for content: Int) -> Bool { used + Self.recordLength(content: content) <= limit }

    @usableFromInline func content(_ length: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: arena[(used + Header.length)..<(used + Header.length + length)])
    }

    /// Makes the reserved bytes the content of a record with `header`.
    public mutating func commit(_ header: Header) {
        precondition(hasRoom(for: header.length), "commit without a reservation")
        header.write(to: UnsafeMutableRawBufferPointer(rebasing: arena[used..<(used + Header.length)]))
        used += header.recordLength
    }

    /// Appends a record without content; false when there is no room.
    public mutating func append(_ header: Header) -> Bool {
        guard hasRoom(for: header.length) else { return false }
        commit(header)
        return true
    }

    /// Empties the batch after its records were handed on; the reader has room for `room` more bytes.
    public mutating func removeAll(room: Int, isAmple: Bool) {
        used = 0
        limit = min(room, arena.count)
        hasAmpleRoom = isAmple
    }
}
