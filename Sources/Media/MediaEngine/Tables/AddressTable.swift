import Primitives

/// Source address -> peer, asked once a datagram: open addressing, usually one cache line.
struct AddressTable: ~Copyable {
    private struct Slot {
        var address: SocketAddress
        /// Peer index plus one; 0 is a free slot.
        var peer: UInt32
    }

    private var slots: UnsafeMutablePointer<Slot>
    private var mask: Int
    private(set) var count = 0
    /// Mixed into the hash: who picks addresses must not be able to make chains.
    private let seed: UInt64

    init(seed: UInt64) {
        self.seed = seed
        mask = 63
        slots = Self.allocate(64)
    }

    deinit { slots.deallocate() }

    private static func allocate(_ count: Int) -> UnsafeMutablePointer<Slot> {
        let slots = UnsafeMutablePointer<Slot>.allocate(capacity: count)
        slots.initialize(repeating: Slot(address: SocketAddress(high: 0, low: 0, port: 0), peer: 0), count: count)
        return slots
    }

    @inline(__always) private func home(_ address: SocketAddress) -> Int {
        Int(truncatingIfNeeded: ((address.mixed ^ seed) &* 0x9e37_79b9_7f4a_7c15) >> 24) & mask
    }

    /// The peer that datagrams from `address` belong to.
    @inline(__always) subscript(address: SocketAddress) -> Int? {
        var index = home(address)
        while slots[index].peer != 0 {
            if slots[index].address == address { return Int(slots[index].peer &- 1) }
            index = (index &+ 1) & mask
        }
        return nil
    }

    /// Gives `address` to `peer`, whoever had it before.
    mutating func set(_ address: SocketAddress, to peer: Int) {
        if (count + 1) * 2 > mask + 1 { grow() }
        var index = home(address)
        while slots[index].peer != 0, slots[index].address != address { index = (index + 1) & mask }
        if slots[index].peer == 0 { count += 1 }
        slots[index] = Slot(address: address, peer: UInt32(peer) + 1)
    }

    /// Takes `address` from `peer`; nothing happens when another peer has it by now.
    mutating func remove(_ address: SocketAddress, of peer: Int) {
        guard self[address] == peer else { return }
        var hole = home(address)
        while slots[hole].address != address { hole = (hole + 1) & mask }
        count -= 1
        var index = (hole + 1) & mask
        while slots[index].peer != 0 {
            if (index &- home(slots[index].address)) & mask >= (index &- hole) & mask {
                slots[hole] = slots[index]
                hole = index
            }
            index = (index + 1) & mask
        }
        slots[hole].peer = 0
    }

    private mutating func grow() {
        let old = UnsafeMutableBufferPointer(start: slots, count: mask + 1)
        mask = (mask + 1) * 2 - 1
        slots = Self.allocate(mask + 1)
        count = 0
        for slot in old where slot.peer != 0 { set(slot.address, to: Int(slot.peer - 1)) }
        old.deallocate()
    }
}
