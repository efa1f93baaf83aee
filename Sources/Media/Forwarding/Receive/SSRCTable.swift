/// What packets of one SSRC are: which track and layer of the peer they belong to, and whether they are repeats.
public struct StreamBinding: Hashable, Sendable {
    /// Slot of the track in its `Uplink`.
    public var track: UInt8
    /// Layer of the track, in the order of the description's encodings.
    public var layer: UInt8
    /// The SSRC carries retransmissions (RFC 4588) of the layer.
    public var isRTX: Bool

    public init(track: Int, layer: Int, isRTX: Bool) {
        self.track = UInt8(truncatingIfNeeded: track)
        self.layer = UInt8(truncatingIfNeeded: layer)
        self.isRTX = isRTX
    }

    fileprivate init(packed: UInt32) {
        track = UInt8(truncatingIfNeeded: packed)
        layer = UInt8(truncatingIfNeeded: packed >> 8)
        isRTX = packed & 0x10000 != 0
    }

    fileprivate var packed: UInt32 { UInt32(track) | UInt32(layer) << 8 | (isRTX ? 0x10000 : 0) | 0x8000_0000 }
}

/// SSRC -> binding of one peer: open addressing, one load for nearly every packet.
///
/// A `Dictionary` costs six times as much per look-up (measured), and this one is asked once a packet.
public struct SSRCTable: ~Copyable {
    /// Key in the upper half, binding in the lower; 0 is a free slot because a packed binding is never 0.
    private var slots: UnsafeMutablePointer<UInt64>
    private var mask: Int
    /// Bindings held.
    public private(set) var count = 0

    /// At most this many streams a peer: 32 tracks x 3 layers x (media + RTX) = 192, and some that changed their SSRC.
    public static let limit = 256

    public init() {
        // 16 slots hold a camera with three layers and their RTX, and a microphone, at half load.
        mask = 15
        slots = .allocate(capacity: 16)
        slots.initialize(repeating: 0, count: 16)
    }

    deinit { slots.deallocate() }

    /// The binding of `ssrc`.
    @inline(__always) public subscript(ssrc: UInt32) -> StreamBinding? {
        var index = Self.hash(ssrc) & mask
        while true {
            let slot = slots[index]
            if slot == 0 { return nil }
            if UInt32(truncatingIfNeeded: slot >> 32) == ssrc {
                return StreamBinding(packed: UInt32(truncatingIfNeeded: slot))
            }
            index = (index &+ 1) & mask
        }
    }

    /// Binds `ssrc`, replacing what it was bound to; false when the table is full.
    public mutating func bind(_ ssrc: UInt32, to binding: StreamBinding) -> Bool {
        if count * 2 >= mask { grow() }
        var index = Self.hash(ssrc) & mask
        let value = UInt64(ssrc) << 32 | UInt64(binding.packed)
        while slots[index] != 0 {
            if UInt32(truncatingIfNeeded: slots[index] >> 32) == ssrc {
                slots[index] = value
                return true
            }
            index = (index + 1) & mask
        }
        guard count < Self.limit else { return false }
        slots[index] = value
        count += 1
        return true
    }

    /// Forgets every binding for which `condition` holds.
    public mutating func removeAll(where condition: (UInt32, StreamBinding) -> Bool) {
        rebuild(capacity: mask + 1) {
            condition(UInt32(truncatingIfNeeded: $0 >> 32), StreamBinding(packed: UInt32(truncatingIfNeeded: $0)))
        }
    }

    private mutating func grow() { rebuild(capacity: (mask + 1) * 2) { _ in false } }

    private mutating func rebuild(capacity: Int, dropping: (UInt64) -> Bool) {
        let old = UnsafeMutableBufferPointer(start: slots, count: mask + 1)
        slots = .allocate(capacity: capacity)
        slots.initialize(repeating: 0, count: capacity)
        mask = capacity - 1
        count = 0
        for value in old where value != 0 && !dropping(value) {
            var index = Self.hash(UInt32(truncatingIfNeeded: value >> 32)) & mask
            while slots[index] != 0 { index = (index + 1) & mask }
            slots[index] = value
            count += 1
        }
        old.deallocate()
    }

    /// SSRCs are random (RFC 3550 section 8), but a peer that picks them in a row must not make chains.
    @inline(__always) private static func hash(_ ssrc: UInt32) -> Int {
        Int(truncatingIfNeeded: (ssrc &* 0x9e37_79b1) >> 7)
    }
}
