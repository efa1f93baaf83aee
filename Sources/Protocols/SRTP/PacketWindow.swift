/// The packet indices that one SSRC has used: its newest, and which of the 1,024 before it (RFC 3711 sections 3.3.1 and 3.3.2).
struct PacketWindow {
    /// A packet this far behind the newest cannot be distinguished from a duplicate.
    static let length = 1_024

    /// The newest 48-bit index (roll-over counter and sequence number); -1 before the first packet.
    private(set) var newest: Int64 = -1
    /// Bit n of the window is index n modulo 1,024.
    private var used = InlineArray<16, UInt64>(repeating: 0)

    /// The index nearest to the newest with this sequence number. May be negative, which no packet has.
    @inline(__always) func index(of sequence: UInt16) -> Int64 {
        guard newest >= 0 else { return Int64(sequence) }
        return newest &+ Int64(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: newest)))
    }

    /// Whether the index is known not to have been used.
    @inline(__always) func isFresh(_ index: Int64) -> Bool {
        if index > newest { return true }
        return index >= 0 && newest &- index < Int64(Self.length) && !isMarked(index)
    }

    /// Marks a fresh index as used.
    @inline(__always) mutating func use(_ index: Int64) {
        if newest >= 0, index > newest {
            if index == newest &+ 1 {
                unmark(index)
            } else if index &- newest >= Int64(Self.length) {
                used = InlineArray(repeating: 0)
            } else {
                for skipped in (newest &+ 1)...index { unmark(skipped) }
            }
        }
        newest = max(newest, index)
        used[Int(index >> 6) & 15] |= 1 << UInt64(index & 63)
    }

    @inline(__always) private func isMarked(_ index: Int64) -> Bool {
        used[Int(index >> 6) & 15] & (1 << UInt64(index & 63)) != 0
    }

    @inline(__always) private mutating func unmark(_ index: Int64) {
        used[Int(index >> 6) & 15] &= ~(1 << UInt64(index & 63))
    }
}
