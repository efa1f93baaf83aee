public import Primitives
public import RTP

/// What left with which transport-wide sequence number, until the receiver's feedback tells what became of it
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01).
///
/// The seam for the send-side estimator: it will read one `FeedbackSummary` a feedback; now losses and the acknowledged rate are counted.
/// Exists only for subscribers whose sections negotiated the extension.
public struct SentPacketLog: ~Copyable {
    private struct Entry {
        var sentMicroseconds: Int64
        var size: UInt16
        var sequence: UInt16
        /// 1 waits for feedback, 0 is free or told.
        var isOpen: UInt8
    }

    /// 500 packets/s (4 Mbit/s) x 2 s until feedback is given up, next power of two.
    private static let capacity = 1_024
    private let entries: UnsafeMutablePointer<Entry>
    /// Packets reported as received and as lost.
    public private(set) var received: UInt64 = 0
    public private(set) var lost: UInt64 = 0
    private var acknowledged = RateMeter()

    public init() {
        entries = .allocate(capacity: Self.capacity)
        entries.initialize(
            repeating: Entry(sentMicroseconds: 0, size: 0, sequence: 0, isOpen: 0), count: Self.capacity)
    }

    deinit { entries.deallocate() }

    /// Bytes of memory in use.
    public static var memoryBytes: Int { capacity * MemoryLayout<Entry>.stride }

    /// Notes that `size` bytes leave under `sequence`.
    @inline(__always) public mutating func note(_ sequence: UInt16, size: Int, at now: MonotonicTime) {
        entries[Int(sequence) & (Self.capacity - 1)] = Entry(
            sentMicroseconds: now.microseconds, size: UInt16(truncatingIfNeeded: size), sequence: sequence, isOpen: 1)
    }

    /// Takes one feedback; nil when it is incomplete.
    public mutating func take(_ feedback: TransportFeedback, in datagram: RawSpan, at now: MonotonicTime)
        -> FeedbackSummary?
    {
        guard var reader = feedback.makeReader(in: datagram) else { return nil }
        var summary = FeedbackSummary()
        while let status = reader.next(in: datagram) {
            let entry = entries + (Int(status.sequence) & (Self.capacity - 1))
            guard entry.pointee.sequence == status.sequence, entry.pointee.isOpen == 1 else { continue }
            guard status.arrival != nil else {
                // May still be told as received by a later feedback.
                summary.lost += 1
                continue
            }
            entry.pointee.isOpen = 0
            summary.received += 1
            summary.receivedBytes += Int(entry.pointee.size)
            summary.newestSent = max(summary.newestSent, entry.pointee.sentMicroseconds)
        }
        received &+= UInt64(summary.received)
        lost &+= UInt64(summary.lost)
        acknowledged.add(summary.receivedBytes, at: now)
        return summary
    }

    /// The rate at which packets arrive at the receiver.
    public func acknowledgedBitrate(at now: MonotonicTime) -> Bitrate {
        .bitsPerSecond(Int64(acknowledged.perSecond(at: now) * 8))
    }
}

/// What one transport-wide feedback said.
public struct FeedbackSummary: Sendable {
    public var received = 0
    public var receivedBytes = 0
    public var lost = 0
    /// When the newest packet that arrived was sent, in microseconds of the server's clock.
    public var newestSent: Int64 = 0

    public init() {}
}
