import Primitives

/// The packets sent, by transport-wide sequence number, until the receiver reports them
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01; libwebrtc's `TransportFeedbackAdapter`).
///
/// A ring by number. It doubles while the entry to overwrite is still unreported and recent, so that most peers do not need the memory of one with
/// twelve cameras.
struct SentPackets: ~Copyable {
    struct Entry {
        /// Nanoseconds of the server's clock.
        var sent: Int64 = 0
        /// Bytes on the wire, IP and UDP headers included.
        var size: UInt16 = 0
        var sequence: UInt16 = 0
        /// The probe it belongs to; 0 for none.
        var probe: UInt8 = 0
        var state = State.free
    }

    enum State: UInt8 {
        case free
        /// In flight.
        case waiting
        /// Not reported although later ones were: the report was lost, or the packet will still be reported.
        case passed
        /// Reported as missing while the path was reliable, which counts as no loss, also if it arrives after the path has changed.
        case leftOut
        case lost, received

        var isOpen: Bool { self != .free && self != .received }
    }

    /// 200 packets/s, some 1.5 Mbit/s with audio, x 1 s, next power of two: 4 kB.
    private static let least = 256
    /// 20 Mbit/s / 1,100 B x 1.5 s = 3,400, next power of two.
    private static let most = 4_096
    /// Younger packets still wait for their feedback.
    private static let patience = TimeSpan.seconds(1)

    private var entries: UnsafeMutablePointer<Entry>
    private var mask: Int
    /// Unreported bytes sent after everything that was reported.
    private(set) var bytesInFlight = 0
    /// The last reported number; nil before any.
    private var lastReported: UInt16?
    /// The newest reported number, up to which nothing is in flight; nil before any.
    private var newestReported: UInt16?

    init() {
        entries = Self.allocate(Self.least)
        mask = Self.least - 1
    }

    deinit { entries.deallocate() }

    var memoryBytes: Int { (mask + 1) * MemoryLayout<Entry>.stride }

    private static func allocate(_ count: Int) -> UnsafeMutablePointer<Entry> {
        let entries = UnsafeMutablePointer<Entry>.allocate(capacity: count)
        entries.initialize(repeating: Entry(), count: count)
        return entries
    }

    /// Records `size` bytes sent with `sequence`. `mayGrow` is false before the first feedback, when there is no need to remember more.
    @inline(__always)
    mutating func note(_ sequence: UInt16, size: Int, probe: UInt8, mayGrow: Bool, at now: MonotonicTime) {
        var entry = entries + (Int(sequence) & mask)
        if entry.pointee.state == .waiting {
            if mayGrow, now.nanoseconds &- entry.pointee.sent < Self.patience.nanoseconds, mask < Self.most &- 1 {
                grow()
                entry = entries + (Int(sequence) & mask)
            }
            if entry.pointee.state == .waiting { bytesInFlight &-= Int(entry.pointee.size) }
        }
        entry.pointee = Entry(
            sent: now.nanoseconds, size: UInt16(truncatingIfNeeded: size), sequence: sequence, probe: probe,
            state: .waiting)
        bytesInFlight &+= size
    }

    /// Prefetches the entries of `sequence` and of the next ones.
    @inline(__always) func prefetch(_ sequence: UInt16) {
        Prefetch.lines(entries + (Int(sequence) & mask), 2 * MemoryLayout<Entry>.stride)
    }

    /// Packets in one feedback: 50 ms of 200 packets per second.
    private static let usualReportSize = 10

    /// Prefetches the entries after those reported last.
    @inline(__always) func prefetchReported() {
        Prefetch.lines(entries + (Int(lastReported ?? 0) & mask), Self.usualReportSize * MemoryLayout<Entry>.stride)
    }

    /// The entry of `sequence`; nil if it was never sent, was overwritten, or was reported as received.
    @inline(__always) func open(_ sequence: UInt16) -> UnsafeMutablePointer<Entry>? {
        let entry = entries + (Int(sequence) & mask)
        return entry.pointee.sequence == sequence && entry.pointee.state.isOpen ? entry : nil
    }

    /// Marks an entry as reported.
    @inline(__always) mutating func close(_ entry: UnsafeMutablePointer<Entry>, as state: State) {
        if entry.pointee.state == .waiting { bytesInFlight &-= Int(entry.pointee.size) }
        entry.pointee.state = state
        lastReported = entry.pointee.sequence
    }

    /// Ends a report: packets sent before the last one that it covers are no longer in flight, whether reported or not. A report may be
    /// lost, and the next one begins after it (libwebrtc's `TransportFeedbackAdapter` does the same).
    mutating func endReport() {
        guard let last = lastReported else { return }
        // A reported number is in the ring, so its distance is at most the ring's size.
        let distance = newestReported.map { Int(last &- $0) } ?? mask
        guard distance > 0, distance < 0x1_0000 - mask else { return }
        newestReported = last
        for back in 0..<UInt16(truncatingIfNeeded: min(distance, mask + 1)) where bytesInFlight > 0 {
            let entry = entries + (Int(last &- back) & mask)
            if entry.pointee.sequence == last &- back { leave(entry, as: .passed) }
        }
    }

    /// Treats no packet as in flight any more: their state is unknown.
    mutating func passAll() {
        for index in 0...mask { leave(entries + index, as: .passed) }
    }

    /// Discards unreported packets, after an outage: they will not be reported.
    mutating func abandon(before moment: MonotonicTime) {
        for index in 0...mask where entries[index].sent < moment.nanoseconds { leave(entries + index, as: .free) }
    }

    private mutating func leave(_ entry: UnsafeMutablePointer<Entry>, as state: State) {
        guard entry.pointee.state == .waiting else { return }
        bytesInFlight &-= Int(entry.pointee.size)
        entry.pointee.state = state
    }

    /// Number of packets in flight that were sent between these moments.
    func waiting(from start: MonotonicTime, to end: MonotonicTime) -> Int {
        (0...mask).count { index in
            entries[index].state == .waiting && entries[index].sent >= start.nanoseconds
                && entries[index].sent <= end.nanoseconds
        }
    }

    private mutating func grow() {
        let count = (mask + 1) * 2
        let grown = Self.allocate(count)
        for index in 0...mask where entries[index].state != .free {
            grown[Int(entries[index].sequence) & (count - 1)] = entries[index]
        }
        entries.deallocate()
        entries = grown
        mask = count - 1
    }
}
