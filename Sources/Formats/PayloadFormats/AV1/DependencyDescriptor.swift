/// The role of a frame for one decode target (AV1 RTP 1.0 appendix A.8.1).
public enum DecodeTargetIndication: UInt8, Sendable, Hashable {
    /// The frame is no part of the target.
    case notPresent = 0
    /// Part of it, and no later frame of the target refers to it.
    case discardable = 1
    /// From this frame on the target may be received, if the frame itself can be decoded.
    case `switch` = 2
    /// Part of it, needed, no switching point.
    case required = 3
}

/// The content of one packet's dependency descriptor extension, with its template filled in (AV1 RTP 1.0 appendix A).
///
/// ```text
///  0                   1                   2
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |S|E|template id|         frame number          |  then, in longer values, five flags and what they announce
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
public struct DependencyDescriptor: Sendable {
    /// Maximum references of one frame that are kept: AV1 frames have at most 7.
    public static let maximumReferences = 8

    /// First packet of its frame.
    public internal(set) var isFirstPacketInFrame = false
    /// Last packet of its frame.
    public internal(set) var isLastPacketInFrame = false
    /// The frame's template as sent, 0 to 63.
    public internal(set) var templateID = 0
    /// Frame number; counts frames of all layers and wraps.
    public internal(set) var frameNumber: UInt16 = 0
    /// Spatial layer of the frame.
    public internal(set) var spatialLayer = 0
    /// Temporal layer of the frame.
    public internal(set) var temporalLayer = 0
    /// Whether a template structure came with it: a keyframe of the stream.
    public internal(set) var hasStructure = false
    /// Spatial layers of that structure.
    public internal(set) var structureLayers: UInt8 = 0
    /// Indications, two bits a decode target from the lowest bits.
    public internal(set) var decodeTargetIndications: UInt64 = 0
    /// Number of decode targets.
    public internal(set) var decodeTargetCount = 0
    /// The mask of active decode targets, if the packet contains it; otherwise nil.
    public internal(set) var activeDecodeTargets: UInt32?
    /// How many frames it refers to.
    public internal(set) var referenceCount = 0
    var references = InlineArray<8, UInt16>(repeating: 0)
    /// The size of the frame's spatial layer; nil if the structure contains no sizes.
    public internal(set) var dimensions: FrameDimensions?
    /// Size of the highest spatial layer, only where the packet carries the structure.
    public internal(set) var structureDimensions: FrameDimensions?
    /// The target whose highest layers are those of the frame, if there is one.
    var ownTarget: Int?
    /// No frame of these layers refers to another of them, by the structure.
    var hasIndependentLayer = false
    /// Bits before the mask of active targets, or before the place where it would be.
    var maskPosition = 24
    /// Bits in use.
    var bitCount = 24

    /// The role of the frame for decode target `target`, below `decodeTargetCount`.
    @inlinable public func indication(for target: Int) -> DecodeTargetIndication {
        let bits = decodeTargetIndications >> (2 * UInt64(target)) & 3
        return DecodeTargetIndication(rawValue: UInt8(truncatingIfNeeded: bits))!
    }

    /// How far back reference number `index` is, in frame numbers.
    public func reference(at index: Int) -> UInt16 { references[index] }

    /// The frame refers to nothing.
    public var isKeyframe: Bool { referenceCount == 0 }

    /// The frame refers only to lower spatial layers of its own temporal unit, which are at most as many frame numbers back as there are spatial layers below.
    public var refersToNoEarlierTemporalUnit: Bool {
        for index in 0..<referenceCount where Int(references[index]) > spatialLayer { return false }
        return true
    }

    /// The target of the frame's own layers may be received from here on: the frame indicates it, or the layer's frames refer only to lower layers, in which
    /// case senders indicate no switch. One discardable frame proves nothing: libwebrtc's VP8 has some that refer to the frame before in their own layer.
    public var isSwitchingPoint: Bool {
        if let ownTarget {
            let indication = indication(for: ownTarget)
            return indication == .switch || hasIndependentLayer && indication == .discardable
        }
        // A high bit without its low bit: switch, in any target.
        return decodeTargetIndications & 0xaaaa_aaaa_aaaa_aaaa & ~(decodeTargetIndications << 1) != 0
    }

    /// No target needs the frame for later ones.
    public var isDiscardable: Bool {
        // Neither switch (2) nor required (3) anywhere: no high bit set.
        decodeTargetIndications & 0xaaaa_aaaa_aaaa_aaaa == 0
    }
}
