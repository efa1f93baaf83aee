import PayloadFormats
import Primitives

/// Layer information of one output packet. One byte, because a subscription remembers a thousand packets; its two highest bits
/// select one of three meanings.
///
/// ```text
/// |0|0|0|   key index delta |    VP8: added to KEYIDX (RFC 7741), 5 bits
/// |1|0| temporal | spatial  |    the layers that the dependency descriptor announces; 7: no limit
/// |0|1|0 0 0 0|  AV1Joining |    AV1 without a descriptor: how the packet is joined to its neighbours
/// ```
struct LayerMark: Sendable, Hashable {
    private var byte: UInt8 = 0

    private static let targetsFlag: UInt8 = 0x80
    private static let joiningFlag: UInt8 = 0x40
    private static let all = LayerMark(targets: LayerCaps())

    /// A mark without information.
    init() {}

    /// Shifts a VP8 key index by this.
    init(keyIndexDelta: UInt8) { byte = keyIndexDelta & 0x1f }

    /// The subscriber gets layers up to these.
    init(targets: LayerCaps) { byte = Self.targetsFlag | min(targets.temporal, 7) << 3 | min(targets.spatial, 7) }

    /// Joins the packet to a neighbour, in addition to earlier joins.
    mutating func join(_ neighbour: AV1Joining) { byte |= Self.joiningFlag | neighbour.rawValue }

    /// 0 if the mark has another meaning.
    @inline(__always) var keyIndexDelta: UInt8 { byte & (Self.targetsFlag | Self.joiningFlag) == 0 ? byte : 0 }

    /// The packet's descriptor announces layers.
    @inline(__always) var hasTargets: Bool { byte & Self.targetsFlag != 0 }

    /// Every layer is announced, which lifts all limits.
    var announcesAll: Bool { self == Self.all }

    /// The highest layers that are announced, 7 for no limit; only valid with `hasTargets`.
    var targets: LayerCaps { LayerCaps(spatial: byte & 7, temporal: byte >> 3 & 7) }

    /// Empty if the mark has another meaning.
    @inline(__always) var joining: AV1Joining {
        byte & (Self.targetsFlag | Self.joiningFlag) == Self.joiningFlag ? AV1Joining(rawValue: byte & 3) : []
    }
}
