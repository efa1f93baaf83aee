/// The key type of a `FlatTable`.
public protocol FlatTableKey: BitwiseCopyable, Equatable {
    /// The key in one word: equal keys give equal words, and few others do.
    var word: UInt64 { get }
}

extension UInt32: FlatTableKey {
    @inlinable @inline(__always) public var word: UInt64 { UInt64(self) }
}

extension UInt64: FlatTableKey {
    @inlinable @inline(__always) public var word: UInt64 { self ^ (self >> 32) }
}

extension SocketAddress: FlatTableKey {
    @inlinable @inline(__always) public var word: UInt64 { mixed }
}

/// Small numbers found by key: open addressing with linear probing at no more than half load, so usually one cache line per look-up.
///
/// A `Dictionary` costs six times as much per look-up (measured), and these tables are used once per packet. Removal moves the chain back, so that churn leaves
/// nothing behind. Inlinable, because a generic called from another module would query the runtime for its key's type each time.
@frozen
public struct FlatTable<Key: FlatTableKey>: ~Copyable {
    @usableFromInline struct Slot {
        @usableFromInline var key: Key
        /// Value plus one; 0 is a free slot.
        @usableFromInline var value: UInt32

        @inlinable init(key: Key, value: UInt32) {
            self.key = key
            self.value = value
        }
    }

    @usableFromInline var slots: UnsafeMutableRawPointer
    @usableFromInline var mask: Int
    /// Mixed into the hash, so that an attacker who picks keys cannot make chains.
    @usableFromInline let seed: UInt64
    /// How many entries it has.
    public private(set) var count = 0

    /// A table that holds `capacity` entries (a power of two) without growing. If others pick the keys, `seed` must be random.
    public init(capacity: Int = 16, seed: UInt64 = 0) {
        self.seed = seed
        mask = capacity * 2 - 1
        slots = Self.allocate(capacity * 2)
    }

    deinit { slots.deallocate() }

    private static func allocate(_ count: Int) -> UnsafeMutableRawPointer {
        let bytes = count * MemoryLayout<Slot>.stride
        let slots = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: MemoryLayout<Slot>.alignment)
        // Keys are plain values, and a free slot's key is never read.
        slots.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
        return slots
    }

    @inlinable @inline(__always)
    func slot(_ index: Int) -> UnsafeMutablePointer<Slot> {
        slots.assumingMemoryBound(to: Slot.self) + index
    }

    /// Where the search for a key begins; the multiplier is 2^64 by the golden ratio (Knuth, The Art of Computer Programming, volume 3, 6.4).
    @inlinable @inline(__always)
    func home(_ key: Key) -> Int {
        Int(truncatingIfNeeded: ((key.word ^ seed) &* 0x9e37_79b9_7f4a_7c15) >> 32) & mask
    }

    /// The value of `key`.
    @inlinable @inline(__always)
    public subscript(key: Key) -> Int? {
        var index = home(key)
        while slot(index).pointee.value != 0 {
            if slot(index).pointee.key == key { return Int(slot(index).pointee.value &- 1) }
            index = (index &+ 1) & mask
        }
        return nil
    }

    /// Sets the value of `key`, 0 to 2^32 - 2, replacing an older one.
    public mutating func set(_ key: Key, to value: Int) {
        if (count + 1) * 2 > mask + 1 { rebuild(slots: (mask + 1) * 2) { _, _ in false } }
        var index = home(key)
        while slot(index).pointee.value != 0, slot(index).pointee.key != key { index = (index + 1) & mask }
        if slot(index).pointee.value == 0 { count += 1 }
        slot(index).pointee = Slot(key: key, value: UInt32(value) + 1)
    }

    /// Removes `key`; its value, if it was there.
    @discardableResult
    public mutating func remove(_ key: Key) -> Int? {
        var hole = home(key)
        while slot(hole).pointee.value != 0, slot(hole).pointee.key != key { hole = (hole + 1) & mask }
        guard slot(hole).pointee.value != 0 else { return nil }
        let value = Int(slot(hole).pointee.value - 1)
        count -= 1
        var index = (hole + 1) & mask
        while slot(index).pointee.value != 0 {
            // An entry may fill the hole if its own place is not between the hole and its current place.
            if (index &- home(slot(index).pointee.key)) & mask >= (index &- hole) & mask {
                slot(hole).pointee = slot(index).pointee
                hole = index
            }
            index = (index + 1) & mask
        }
        slot(hole).pointee.value = 0
        return value
    }

    /// The values of the first entries from `place` on for which `condition` holds, at most `limit`; the next call continues after them. It reads the whole
    /// table.
    public func values(atMost limit: Int, from place: inout Int, where condition: (Key, Int) -> Bool) -> [Int] {
        var values: [Int] = []
        let start = place
        for step in 0...mask where values.count < limit {
            let index = (start &+ step) & mask
            let entry = slot(index).pointee
            guard entry.value != 0, condition(entry.key, Int(entry.value - 1)) else { continue }
            values.append(Int(entry.value - 1))
            place = index + 1
        }
        return values
    }

    /// Removes every entry for which `condition` holds.
    public mutating func removeAll(where condition: (Key, Int) -> Bool) {
        rebuild(slots: mask + 1, dropping: condition)
    }

    private mutating func rebuild(slots number: Int, dropping condition: (Key, Int) -> Bool) {
        let old = slots, oldMask = mask
        slots = Self.allocate(number)
        mask = number - 1
        count = 0
        for index in 0...oldMask {
            let entry = (old.assumingMemoryBound(to: Slot.self) + index).pointee
            guard entry.value != 0, !condition(entry.key, Int(entry.value - 1)) else { continue }
            set(entry.key, to: Int(entry.value - 1))
        }
        old.deallocate()
    }

    /// Prefetches the table's memory, up to `bytes` of it.
    @inlinable @inline(__always)
    public func prefetch(bytes: Int) {
        Prefetch.lines(UnsafeRawPointer(slots), min((mask &+ 1) &* MemoryLayout<Slot>.stride, bytes))
    }
}
