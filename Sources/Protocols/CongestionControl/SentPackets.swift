import Primitives

/// What left under which transport-wide sequence number, until the receiver tells what became of it
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01; libwebrtc's `TransportFeedbackAdapter`).
///
/// A ring by number. It doubles while what would be overwritten still waits and is young, so that most peers do not pay for what one with
/// twelve cameras needs.
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
        /// On its way.
        case waiting
        /// Not told about by a report that speaks of later ones: that one's predecessor was lost, or it will still be told.
        case passed
        case lost, received

        var isOpen: Bool { self == .waiting || self == .passed || self == .lost }
    }

    /// 200 packets/s, some 1.5 Mbit/s with sound, x 1 s, next power of two: 4 kB.
    private static let least = 256
    /// 20 Mbit/s / 1,100 B x 1.5 s = 3,400, next power of two.
    private static let most = 4_096
    /// What is younger still waits for its feedback.
    private static let patience = TimeInterval.seconds(1)

    private var entries: UnsafeMutablePointer<Entry>
    private var mask: Int
    /// Bytes that wait to be told about, behind all that was told about.
    private(set) var bytesInFlight = 0
    /// The number that was told about last; nil before any.
    private var lastTold: UInt16?
    /// The newest number that was told about, up to which nothing is on its way; nil before any.
    private var newestTold: UInt16?

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

    /// Notes that `size` bytes leave under `sequence`. Where no feedback ever came there is nothing to remember more for: `mayGrow`.
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

    /// Asks for the places of `sequence` and of those behind it.
    @inline(__always) func prefetch(_ sequence: UInt16) {
        Prefetch.lines(entries + (Int(sequence) & mask), 2 * MemoryLayout<Entry>.stride)
    }

    /// Packets of one feedback: 50 ms of 200 packets a second.
    private static let usuallyTold = 10

    /// Asks for the entries behind those that were told about last.
    @inline(__always) func prefetchReported() {
        Prefetch.lines(entries + (Int(lastTold ?? 0) & mask), Self.usuallyTold * MemoryLayout<Entry>.stride)
    }

    /// The entry of `sequence`; nil when it was never sent, is forgotten, or has been told as received.
    @inline(__always) func open(_ sequence: UInt16) -> UnsafeMutablePointer<Entry>? {
        let entry = entries + (Int(sequence) & mask)
        return entry.pointee.sequence == sequence && entry.pointee.state.isOpen ? entry : nil
    }

    /// Marks an entry as told.
    @inline(__always) mutating func close(_ entry: UnsafeMutablePointer<Entry>, as state: State) {
        if entry.pointee.state == .waiting { bytesInFlight &-= Int(entry.pointee.size) }
        entry.pointee.state = state
        lastTold = entry.pointee.sequence
    }

    /// Ends a report: what left before the last packet that it told about is not on its way any more, whether told about or not. A report may be
    /// lost, and the next one begins behind it (libwebrtc's `TransportFeedbackAdapter` does the same).
    mutating func endReport() {
        guard let last = lastTold else { return }
        // What is told about lies in the ring, so that it is behind by no more than that.
        let distance = newestTold.map { Int(last &- $0) } ?? mask
        guard distance > 0, distance < 0x1_0000 - mask else { return }
        newestTold = last
        for back in 0..<UInt16(truncatingIfNeeded: min(distance, mask + 1)) where bytesInFlight > 0 {
            let entry = entries + (Int(last &- back) & mask)
            if entry.pointee.sequence == last &- back { leave(entry, as: .passed) }
        }
    }

    /// Takes nothing as on its way any more: there is no telling.
    mutating func passAll() {
        for index in 0...mask { leave(entries + index, as: .passed) }
    }

    /// Forgets what waits, after an outage: nothing more will be heard of it.
    mutating func abandon(before moment: MonotonicTime) {
        for index in 0...mask where entries[index].sent < moment.nanoseconds { leave(entries + index, as: .free) }
    }

    private mutating func leave(_ entry: UnsafeMutablePointer<Entry>, as state: State) {
        guard entry.pointee.state == .waiting else { return }
        bytesInFlight &-= Int(entry.pointee.size)
        entry.pointee.state = state
    }

    /// How many packets are on their way that left between these moments.
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
