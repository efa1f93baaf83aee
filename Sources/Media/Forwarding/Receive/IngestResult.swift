public import Primitives

/// The outcome of one RTP packet.
public enum IngestResult: Hashable, Sendable {
    /// Not to be forwarded.
    case dropped(DropReason)
    /// Stored in the history of `layer`, and listed in the track's `arrivals`.
    case stored(layer: Int, sequence: Int64)
    /// Not forwarded, but its sequence number was used: listed in `arrivals` as a gap to close.
    case gap(layer: Int, sequence: Int64, DropReason)
}

/// One packet of a turn, in order of arrival.
public struct Arrival: Hashable, Sendable {
    /// Extended sequence number.
    public var sequence: Int64
    public var layer: UInt8
    /// The number was used for padding or for something that is not forwarded: close the gap in the output numbering.
    public var isGap: Bool
}

/// The packets of one track that arrived in one turn.
struct ArrivalList: ~Copyable {
    /// More than a worker reads in one turn for one track; the engine ends a turn after 1,024 datagrams at the latest.
    static let capacity = 1024

    private var storage: UnsafeMutablePointer<Arrival>
    private var allocated: Int
    private(set) var count = 0

    init() {
        // An iOS audio burst is 26 packets; tracks with larger turns grow the list once or twice.
        allocated = 32
        storage = .allocate(capacity: allocated)
    }

    deinit { storage.deallocate() }

    var all: UnsafeBufferPointer<Arrival> { UnsafeBufferPointer(start: storage, count: count) }

    @inline(__always) mutating func append(_ arrival: Arrival) -> Bool {
        if count == allocated, !grow() { return false }
        (storage + count).initialize(to: arrival)
        count &+= 1
        return true
    }

    mutating func removeAll() { count = 0 }

    private mutating func grow() -> Bool {
        guard allocated < Self.capacity else { return false }
        let grown = UnsafeMutablePointer<Arrival>.allocate(capacity: allocated * 2)
        grown.moveInitialize(from: storage, count: count)
        storage.deallocate()
        storage = grown
        allocated *= 2
        return true
    }
}
