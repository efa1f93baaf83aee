import Primitives

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

    fileprivate init(packed: Int) {
        track = UInt8(truncatingIfNeeded: packed)
        layer = UInt8(truncatingIfNeeded: packed >> 8)
        isRTX = packed & 0x10000 != 0
    }

    fileprivate var packed: Int { Int(track) | Int(layer) << 8 | (isRTX ? 0x10000 : 0) }
}

/// SSRC -> binding of one peer, asked once a packet. SSRCs are random (RFC 3550 section 8); a peer that picks others finds only its own packets late.
public struct SSRCTable: ~Copyable {
    /// A camera with three layers and their RTX, and a microphone, without growing.
    private var bindings = FlatTable<UInt32>(capacity: 8)

    /// At most this many streams a peer: 32 tracks x 3 layers x (media + RTX) = 192, and some that changed their SSRC.
    public static let limit = 256

    public init() {}

    /// Bindings held.
    public var count: Int { bindings.count }

    /// The binding of `ssrc`.
    @inline(__always) public subscript(ssrc: UInt32) -> StreamBinding? {
        bindings[ssrc].map(StreamBinding.init(packed:))
    }

    /// Binds `ssrc`, replacing what it was bound to; false when the table is full.
    public mutating func bind(_ ssrc: UInt32, to binding: StreamBinding) -> Bool {
        guard bindings[ssrc] != nil || count < Self.limit else { return false }
        bindings.set(ssrc, to: binding.packed)
        return true
    }

    /// Forgets every binding for which `condition` holds.
    public mutating func removeAll(where condition: (UInt32, StreamBinding) -> Bool) {
        bindings.removeAll { condition($0, StreamBinding(packed: $1)) }
    }
}
