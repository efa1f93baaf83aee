public import Primitives
import Synchronization

/// Carries a worker's records to the recorder's thread: one producer, one consumer, a bounded number of bytes. Neither waits for the other.
public final class RecordRing: @unchecked Sendable {
    // Unchecked: the producer writes only between `tail` and `head + capacity`, the consumer reads only between `head` and `tail`, and each
    // publishes its own position with release ordering.
    private let storage: UnsafeMutableRawBufferPointer
    /// Total bytes read and written.
    private let head = Atomic<Int>(0)
    private let tail = Atomic<Int>(0)
    /// Its capacity in bytes, a power of two.
    public let capacity: Int

    /// More than the records of one turn.
    private static let minimum = 1 << 22

    /// A ring of at least `bytes` bytes; its memory is touched once, so that no packet pays for page faults.
    public init(bytes: Int) {
        var capacity = Self.minimum
        while capacity < bytes { capacity *= 2 }
        self.capacity = capacity
        storage = .allocate(byteCount: capacity, alignment: 64)
        storage.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit { storage.deallocate() }

    /// Bytes that wait to be read.
    public var waiting: Int { tail.load(ordering: .acquiring) - head.load(ordering: .acquiring) }

    /// The producer: how many more bytes fit, and whether more than half of the ring is free.
    public var room: (room: Int, isAmple: Bool) {
        let free = capacity - (tail.load(ordering: .relaxed) - head.load(ordering: .acquiring))
        return (free, free > capacity / 2)
    }

    /// The producer: appends whole records, for which there must be room.
    public func push(_ records: UnsafeRawBufferPointer) {
        let start = tail.load(ordering: .relaxed)
        precondition(records.count <= capacity - (start - head.load(ordering: .acquiring)), "more records than room")
        copy(records, to: start & (capacity - 1))
        tail.store(start + records.count, ordering: .releasing)
    }

    private func copy(_ records: UnsafeRawBufferPointer, to place: Int) {
        let first = min(records.count, capacity - place)
        UnsafeMutableRawBufferPointer(rebasing: storage[place..<(place + first)])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: records[..<first]))
        guard first < records.count else { return }
        UnsafeMutableRawBufferPointer(rebasing: storage[..<(records.count - first)])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: records[first...]))
    }

    /// The consumer: the next record, its content copied into `content`, which gets its length; nil if there is none.
    public func pop(into content: inout [UInt8]) -> RecordBatch.Header? {
        let start = head.load(ordering: .relaxed)
        guard tail.load(ordering: .acquiring) > start else { return nil }
        // Records are padded to 8 bytes, but a header may cross the end.
        let header = withUnsafeTemporaryAllocation(byteCount: RecordBatch.Header.length, alignment: 8) { buffer in
            read(start, into: buffer)
            return RecordBatch.Header(UnsafeRawBufferPointer(buffer))
        }
        guard let header else { preconditionFailure("the ring holds no record where one should begin") }
        if content.count != header.length { content = Array(repeating: 0, count: header.length) }
        content.withUnsafeMutableBytes { read(start + RecordBatch.Header.length, into: $0) }
        head.store(start + header.recordLength, ordering: .releasing)
        return header
    }

    private func read(_ position: Int, into bytes: UnsafeMutableRawBufferPointer) {
        let place = position & (capacity - 1)
        let first = min(bytes.count, capacity - place)
        bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[place..<(place + first)]))
        guard first < bytes.count else { return }
        UnsafeMutableRawBufferPointer(rebasing: bytes[first...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[..<(bytes.count - first)]))
    }
}
