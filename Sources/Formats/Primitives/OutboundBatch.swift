/// The datagrams of one turn, in the order in which they leave: one preallocated arena and a list of its contents.
///
/// Packets of one destination are written back to back, so that NetworkIO can hand runs of equal size to the kernel in one
/// UDP_SEGMENT call. The batch is emptied by its owner after each turn and never grows.
///
/// Not Sendable, single owner: the worker's loop lends it to the engine as an `inout` argument.
public struct OutboundBatch: ~Copyable {
    /// What a datagram carries, as far as sending depends on it.
    public enum Content: UInt8, Sendable { case other, audio, video }

    /// One datagram in the arena.
    public struct Entry {
        /// Where it starts in the arena.
        public var offset: Int
        /// Its length in bytes.
        public var length: Int
        /// Where it goes.
        public var destination: SocketAddress
        /// What it carries.
        public var content: Content
    }

    /// The arena; entries point into it.
    public let arena: UnsafeMutableRawBufferPointer
    private let entryStorage: UnsafeMutablePointer<Entry>
    private let entryCapacity: Int
    /// Number of datagrams waiting.
    public private(set) var count = 0
    /// Bytes of the arena in use.
    public private(set) var used = 0

    /// A batch for at most `datagrams` datagrams and `bytes` bytes.
    public init(datagrams: Int, bytes: Int) {
        arena = .allocate(byteCount: bytes, alignment: 64)
        entryStorage = .allocate(capacity: datagrams)
        entryCapacity = datagrams
    }

    deinit {
        arena.deallocate()
        entryStorage.deallocate()
    }

    /// The datagrams waiting, in order.
    public var entries: UnsafeBufferPointer<Entry> { .init(start: entryStorage, count: count) }

    /// The bytes of one of its datagrams.
    @inlinable public func bytes(of entry: Entry) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: arena[entry.offset..<(entry.offset + entry.length)])
    }

    /// Whether `length` more bytes in one more datagram fit.
    @inlinable public func hasRoom(for length: Int) -> Bool { count < capacity && used + length <= arena.count }

    /// The most datagrams it holds.
    public var capacity: Int { entryCapacity }

    /// Room for a datagram of at most `maximumLength` bytes right after the last one; nil when the batch is full.
    ///
    /// Write into it, then call `commit(length:to:)`; without a commit nothing is sent.
    @inlinable public func reserve(_ maximumLength: Int) -> UnsafeMutableRawBufferPointer? {
        guard hasRoom(for: maximumLength) else { return nil }
        return UnsafeMutableRawBufferPointer(rebasing: arena[used..<(used + maximumLength)])
    }

    /// Makes the first `length` bytes of the last reservation a datagram to `destination`.
    public mutating func commit(length: Int, to destination: SocketAddress, content: Content = .other) {
        precondition(count < entryCapacity && used + length <= arena.count, "commit without a reservation")
        (entryStorage + count).initialize(
            to: Entry(offset: used, length: length, destination: destination, content: content))
        count += 1
        used += length
    }

    /// Appends a datagram by copying it; false when the batch is full.
    public mutating func append(_ bytes: UnsafeRawBufferPointer, to destination: SocketAddress) -> Bool {
        guard let room = reserve(bytes.count) else { return false }
        room.copyMemory(from: bytes)
        commit(length: bytes.count, to: destination)
        return true
    }

    /// How full a batch was at some moment.
    public struct Mark {
        fileprivate let count: Int
        /// Bytes of the arena that were in use.
        public let used: Int
    }

    /// How full it is now.
    public var mark: Mark { Mark(count: count, used: used) }

    /// Takes back what was written since `mark` was taken.
    public mutating func rewind(to mark: Mark) {
        precondition(mark.count <= count && mark.used <= used, "a mark of a batch that was emptied since")
        count = mark.count
        used = mark.used
    }

    /// Empties the batch after its datagrams have left.
    public mutating func removeAll() {
        count = 0
        used = 0
    }
}
