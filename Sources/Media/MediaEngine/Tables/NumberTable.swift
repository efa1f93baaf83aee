import Primitives

/// UInt64 -> UInt32 by open addressing: ids, and pairs of peer and SSRC packed into one word.
///
/// A `Dictionary` costs six times as much per look-up (measured). Linear probing at no more than half load; removal moves the
/// chain back, so that nothing is left behind by churn. Keys are numbered by the server or mixed with a seed by `hash`.
struct NumberTable: ~Copyable {
    private struct Slot {
        var key: UInt64
        /// Value plus one; 0 is a free slot.
        var value: UInt32
    }

    private var slots: UnsafeMutablePointer<Slot>
    private var mask: Int
    private(set) var count = 0

    /// A table that holds `capacity` entries (a power of two) without growing.
    init(capacity: Int = 16) {
        mask = capacity * 2 - 1
        slots = Self.allocate(mask + 1)
    }

    deinit { slots.deallocate() }

    private static func allocate(_ count: Int) -> UnsafeMutablePointer<Slot> {
        let slots = UnsafeMutablePointer<Slot>.allocate(capacity: count)
        slots.initialize(repeating: Slot(key: 0, value: 0), count: count)
        return slots
    }

    @inline(__always) private static func hash(_ key: UInt64) -> Int {
        let mixed = (key ^ (key >> 32)) &* 0x9e37_79b9_7f4a_7c15
        return Int(truncatingIfNeeded: mixed >> 20)
    }

    /// The value of `key`.
    @inline(__always) subscript(key: UInt64) -> Int? {
        var index = Self.hash(key) & mask
        while slots[index].value != 0 {
            if slots[index].key == key { return Int(slots[index].value &- 1) }
            index = (index &+ 1) & mask
        }
        return nil
    }

    /// Sets the value of `key`, replacing an older one.
    mutating func set(_ key: UInt64, to value: Int) {
        if (count + 1) * 2 > mask + 1 { grow() }
        var index = Self.hash(key) & mask
        while slots[index].value != 0, slots[index].key != key { index = (index + 1) & mask }
        if slots[index].value == 0 { count += 1 }
        slots[index] = Slot(key: key, value: UInt32(value) + 1)
    }

    /// Removes `key`; its value, if it was there.
    @discardableResult mutating func remove(_ key: UInt64) -> Int? {
        var hole = Self.hash(key) & mask
        while slots[hole].value != 0, slots[hole].key != key { hole = (hole + 1) & mask }
        guard slots[hole].value != 0 else { return nil }
        let value = Int(slots[hole].value - 1)
        count -= 1
        var index = (hole + 1) & mask
        while slots[index].value != 0 {
            // An entry may fill the hole if its own place is not between the hole and where it lies.
            let home = Self.hash(slots[index].key) & mask
            if (index &- home) & mask >= (index &- hole) & mask {
                slots[hole] = slots[index]
                hole = index
            }
            index = (index + 1) & mask
        }
        slots[hole].value = 0
        return value
    }

    private mutating func grow() {
        let old = UnsafeMutableBufferPointer(start: slots, count: mask + 1)
        mask = (mask + 1) * 2 - 1
        slots = Self.allocate(mask + 1)
        count = 0
        for slot in old where slot.value != 0 { set(slot.key, to: Int(slot.value - 1)) }
        old.deallocate()
    }
}
