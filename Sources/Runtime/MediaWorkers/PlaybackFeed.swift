public import Primitives
import Synchronization

/// Carries the packets of one played track to the worker that hosts its room, each with the time at which it is due: one producer, one consumer, a limited
/// number of bytes. Neither waits for the other; a producer that is ahead finds the feed full and tries again later.
public final class PlaybackFeed: @unchecked Sendable {
    // Unchecked: the producer writes only between `tail` and `head + capacity`, the consumer reads only between `head` and `tail`, and each
    // publishes its own position with release ordering.
    private let storage: UnsafeMutableRawBufferPointer
    /// Total bytes read and written.
    private let head = Atomic<Int>(0)
    private let tail = Atomic<Int>(0)
    private let closed = Atomic<Bool>(false)
    private let resting = Atomic<Bool>(false)
    private let late = Atomic<UInt64>(0)
    private let taken = Atomic<UInt64>(0)
    /// The track's peer in the worker's engine.
    public let peer: PeerID
    private let capacity: Int

    /// Due time, then length and kind; content padded to 8 bytes.
    private static let headerLength = 16
    /// No packet exceeds this; see `Forwarding`.
    static let maximumPacket = 2_048
    /// A packet that a worker takes more than this after its due time counts as late: a frame at 50 per second.
    private static let patience = TimeSpan.milliseconds(20)

    /// A feed of `capacity` bytes, a power of two, whose memory is touched once, so that no packet pays for page faults.
    public init(peer: PeerID, capacity: Int) {
        let isPowerOfTwo = capacity & (capacity - 1) == 0
        precondition(capacity >= 4 * Self.maximumPacket && isPowerOfTwo, "a feed holds a power of two")
        self.peer = peer
        self.capacity = capacity
        storage = .allocate(byteCount: capacity, alignment: 64)
        storage.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit { storage.deallocate() }

    /// Packets that were late, and all that a worker took.
    public var counts: (late: UInt64, taken: UInt64) {
        (late.load(ordering: .relaxed), taken.load(ordering: .relaxed))
    }

    /// Whether it is empty.
    public var isEmpty: Bool { tail.load(ordering: .acquiring) == head.load(ordering: .acquiring) }

    /// No more packets follow, and waiting ones are dropped.
    public func close() { closed.store(true, ordering: .releasing) }

    /// Whether nothing is pushed for now. The producer that ends the idle time must have the worker play the feed once more (`MediaWorkerPool.play`), so that
    /// it checks at once.
    public var isResting: Bool {
        get { resting.load(ordering: .acquiring) }
        set { resting.store(newValue, ordering: .releasing) }
    }

    /// Whether it is closed.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    // MARK: - Producer

    /// Appends a packet of at most 2,048 bytes; false if there is no room.
    public func push(_ packet: UnsafeRawBufferPointer, isRTCP: Bool, due: MonotonicTime) -> Bool {
        precondition(packet.count <= Self.maximumPacket, "a packet is longer than any path carries")
        let start = tail.load(ordering: .relaxed)
        let length = Self.headerLength + (packet.count + 7) & ~7
        guard length <= capacity - (start - head.load(ordering: .acquiring)) else { return false }
        // Records are padded to 8 bytes, so that neither word crosses the end.
        storage.storeBytes(of: due.nanoseconds, toByteOffset: start & (capacity - 1), as: Int64.self)
        storage.storeBytes(
            of: UInt64(packet.count) << 1 | (isRTCP ? 1 : 0), toByteOffset: (start + 8) & (capacity - 1),
            as: UInt64.self)
        let place = (start + Self.headerLength) & (capacity - 1), first = min(packet.count, capacity - place)
        UnsafeMutableRawBufferPointer(rebasing: storage[place..<(place + first)])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: packet[..<first]))
        if first < packet.count {
            UnsafeMutableRawBufferPointer(rebasing: storage[..<(packet.count - first)])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: packet[first...]))
        }
        tail.store(start + length, ordering: .releasing)
        return true
    }

    // MARK: - Consumer

    /// When the next packet is due; nil if there is none.
    @inline(__always) var nextDue: MonotonicTime? {
        let start = head.load(ordering: .relaxed)
        guard tail.load(ordering: .acquiring) != start else { return nil }
        return MonotonicTime(nanoseconds: storage.load(fromByteOffset: start & (capacity - 1), as: Int64.self))
    }

    /// Copies the next packet, which must exist, to the start of `packet`, which must be large enough for any.
    func pop(
        into packet: UnsafeMutableRawBufferPointer, at now: MonotonicTime
    ) -> (length: Int, isRTCP: Bool) {
        let start = head.load(ordering: .relaxed)
        let due = storage.load(fromByteOffset: start & (capacity - 1), as: Int64.self)
        let word = storage.load(fromByteOffset: (start + 8) & (capacity - 1), as: UInt64.self)
        let length = Int(word >> 1), place = (start + Self.headerLength) & (capacity - 1)
        let first = min(length, capacity - place)
        packet.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[place..<(place + first)]))
        if first < length {
            UnsafeMutableRawBufferPointer(rebasing: packet[first...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[..<(length - first)]))
        }
        head.store(start + Self.headerLength + (length + 7) & ~7, ordering: .releasing)
        taken.store(taken.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        if now - MonotonicTime(nanoseconds: due) > Self.patience {
            late.store(late.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        }
        return (length, word & 1 != 0)
    }
}
