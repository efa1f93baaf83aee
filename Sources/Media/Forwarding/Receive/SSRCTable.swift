import Primitives

/// The meaning of one SSRC: which track and layer of the peer its packets belong to, and whether they are retransmissions.
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

    fileprivate init(packed: Int) {
        track = UInt8(truncatingIfNeeded: packed)
        layer = UInt8(truncatingIfNeeded: packed >> 8)
        isRTX = packed & 0x10000 != 0
    }

    fileprivate var packed: Int { Int(track) | Int(layer) << 8 | (isRTX ? 0x10000 : 0) }
}

/// SSRC -> binding of one peer, looked up once per packet. SSRCs are random (RFC 3550 section 8); a peer that picks others only delays its own packets.
public struct SSRCTable: ~Copyable {
    /// Holds a camera with three layers and their RTX, and a microphone, without growing.
    private var bindings = FlatTable<UInt32>(capacity: 8)

    /// Maximum streams per peer: 32 tracks x 3 layers x (media + RTX) = 192, and some that changed their SSRC.
    public static let limit = 256

    public init() {}

    /// Number of bindings.
    public var count: Int { bindings.count }

    /// The binding of `ssrc`.
    @inline(__always) public subscript(ssrc: UInt32) -> StreamBinding? {
        bindings[ssrc].map(StreamBinding.init(packed:))
    }

    /// Binds `ssrc`, replacing an earlier binding; false when the table is full.
    public mutating func bind(_ ssrc: UInt32, to binding: StreamBinding) -> Bool {
        guard bindings[ssrc] != nil || count < Self.limit else { return false }
        bindings.set(ssrc, to: binding.packed)
        return true
    }

    /// Removes every binding for which `condition` holds.
    public mutating func removeAll(where condition: (UInt32, StreamBinding) -> Bool) {
        bindings.removeAll { condition($0, StreamBinding(packed: $1)) }
    }
}
