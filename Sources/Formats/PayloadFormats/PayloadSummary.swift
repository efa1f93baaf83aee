import Primitives

/// A codec whose payload format is known here.
public enum PayloadCodec: UInt8, Sendable, Hashable, CaseIterable {
    /// RFC 7741.
    case vp8
    /// RFC 9628.
    case vp9
    /// RFC 6184.
    case h264
    /// AV1 RTP payload format 1.0 with the dependency descriptor extension.
    case av1
    /// RFC 7587.
    case opus
    /// RFC 2198.
    case red
    /// Audio that is forwarded without being examined.
    case otherAudio
}

/// What one packet reveals about its frame: enough to select, switch and rewrite without decoding.
///
/// A *frame* is the output of one encoder call for one spatial layer; a *picture*, as in RFC 9628, is all frames of one moment (one RTP timestamp).
/// Without spatial layers the two are the same.
public struct PayloadSummary: Sendable, Hashable {
    /// The packet starts a frame. H.264 does not mark this: it is set for every packet with a parameter set or the first slice of a picture, and is right for
    /// the first one of a timestamp.
    public var startsFrame = false
    /// The packet ends a frame: the end of a layer frame if the format marks it, otherwise the marker bit.
    public var endsFrame = false
    /// The packet ends the picture (the marker). It may be missing if an encoder drops the upper layers.
    public var endsPicture = false
    /// The packet is known to belong to a keyframe. Only a keyframe's first packet is certain to show this.
    public var isKeyframe = false
    /// A receiver without any state may begin with this packet: it starts a keyframe of the lowest spatial layer. With H.264, parameter sets ahead of the IDR
    /// picture count, and so does an IDR picture without any.
    public var startsKeyframe = false
    /// The packet carries decoder parameters: H.264 SPS or PPS, VP9 scalability structure, AV1 sequence header.
    public var containsParameterSets = false
    /// Spatial layer, 0 is the lowest.
    public var spatialLayer = 0
    /// Temporal layer, 0 is the lowest.
    public var temporalLayer = 0
    /// A receiver of lower temporal layers may receive this temporal layer from this frame on. True for keyframes, and
    /// for streams without temporal layers.
    public var isSwitchingPoint = false
    /// A receiver of the next lower spatial layer may receive this spatial layer from this frame on: the frame refers to
    /// no earlier picture. Like `isDiscardable`, it is for the reviewed reports on captured packets: forwarding needs neither.
    public var startsSpatialLayer = false
    /// No other frame refers to this one.
    public var isDiscardable = false
    /// The frame refers to the next lower spatial layer of its picture (VP9 D).
    public var usesLowerSpatialLayer = false
    /// The size of the frame (of the highest spatial layer if there are several); nil if the packet does not contain it.
    public var dimensions: FrameDimensions?

    /// VP8 and VP9 picture id; meaningful when `pictureIDOffset` is not 0.
    public var pictureID: UInt16 = 0
    /// Where the picture id is in the payload; 0 when there is none.
    public var pictureIDOffset = 0
    /// Whether the picture id has 15 bits in two bytes; otherwise 7 bits in one.
    public var isLongPictureID = false
    /// VP8 and VP9 TL0PICIDX; meaningful when `tl0Offset` is not 0.
    public var tl0PictureIndex: UInt8 = 0
    /// Where TL0PICIDX is in the payload; 0 when there is none.
    public var tl0Offset = 0
    /// VP8 KEYIDX (5 bits); 0 when there is none.
    public var keyIndex: UInt8 = 0
    /// VP9 flexible mode: references are signalled as differences, and TL0PICIDX is absent.
    public var isFlexible = false

    /// Frame number of the dependency descriptor; meaningful when `hasDescriptor`.
    public var frameNumber: UInt16 = 0
    /// Whether there was a dependency descriptor.
    public var hasDescriptor = false
    /// The number of spatial layers of the stream, if the packet contains it (VP9's scalability structure, a descriptor's structure); otherwise 0.
    public var spatialLayers: UInt8 = 0

    /// Audio at 48 kHz: the number of samples in the packet, if the format reveals it; otherwise 0.
    public var sampleCount = 0
    /// RED: the payload type of the primary block and where it is; length 0 with an offset is a silent primary block.
    public var primaryPayloadType: UInt8 = 0
    /// RED: where the primary block starts.
    public var primaryOffset = 0

    /// An empty summary.
    public init() {}
}

/// Width and height of a frame in pixels.
public struct FrameDimensions: Sendable, Hashable {
    /// Width in pixels.
    public var width: Int
    /// Height in pixels.
    public var height: Int

    /// A size.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }
}

extension PayloadCodec {
    /// Summarises `payload` (RTP payload without padding); nil when it is malformed or empty.
    ///
    /// `descriptor` is the result of the stream's `DependencyDescriptorReader` for the packet's extension, if it had one. Then AV1 and H.264 are summarised
    /// only from it, and VP8 uses it for what its payload descriptor leaves out: the payload may be encrypted end to end.
    public func summary(
        of payload: RawSpan, marker: Bool, descriptor: DependencyDescriptor? = nil
    ) -> PayloadSummary? {
        switch self {
        case .vp8: VP8.summary(of: payload, marker: marker, descriptor: descriptor)
        case .vp9: VP9.summary(of: payload, marker: marker, descriptor: descriptor)
        case .h264: H264.summary(of: payload, marker: marker, descriptor: descriptor)
        case .av1: AV1.summary(of: payload, marker: marker, descriptor: descriptor)
        case .opus: Opus.summary(of: payload)
        case .red: RED.summary(of: payload)
        case .otherAudio: payload.byteCount > 0 ? .audio(samples: 0) : nil
        }
    }

    /// Whether the codec carries video.
    public var isVideo: Bool {
        switch self {
        case .vp8, .vp9, .h264, .av1: true
        case .opus, .red, .otherAudio: false
        }
    }
}

extension PayloadSummary {
    /// What a dependency descriptor reveals about the frame, whatever the payload is.
    init(_ descriptor: DependencyDescriptor, marker: Bool) {
        self.init()
        note(descriptor)
        copyTemporalLayer(of: descriptor)
        startsFrame = descriptor.isFirstPacketInFrame
        endsFrame = descriptor.isLastPacketInFrame
        endsPicture = marker
        isKeyframe = descriptor.isKeyframe
        startsKeyframe = descriptor.isFirstPacketInFrame && descriptor.isKeyframe
        startsSpatialLayer = descriptor.refersToNoEarlierTemporalUnit
        spatialLayer = descriptor.spatialLayer
        isDiscardable = descriptor.isDiscardable
        dimensions = descriptor.structureDimensions
    }

    /// What the mandatory fields of a dependency descriptor reveal (AV1 RTP 1.0 appendix A.8.2) while its template structure has not arrived: where a frame
    /// begins and ends. A receiver cannot begin here. Nil without these fields.
    public init?(mandatoryFieldsOf descriptor: RawSpan, marker: Bool) {
        guard descriptor.byteCount >= 3 else { return nil }
        self.init()
        let first = descriptor.readUInt8(0)
        startsFrame = first & 0x80 != 0
        endsFrame = first & 0x40 != 0
        endsPicture = marker
    }

    /// Takes over a frame's numbers.
    mutating func note(_ numbers: FrameNumbers) {
        if numbers.pictureOffset >= 0 {
            pictureIDOffset = numbers.pictureOffset
            isLongPictureID = numbers.pictureMask == 0x7fff
            pictureID = numbers.picture
        }
        if numbers.temporalZeroOffset >= 0 {
            tl0Offset = numbers.temporalZeroOffset
            tl0PictureIndex = numbers.temporalZero
        }
        keyIndex = numbers.keyIndex
    }

    /// Takes over the values that only a descriptor has.
    mutating func note(_ descriptor: DependencyDescriptor) {
        hasDescriptor = true
        if descriptor.hasStructure { spatialLayers = descriptor.structureLayers }
        frameNumber = descriptor.frameNumber
    }

    /// Takes over the temporal layer.
    mutating func copyTemporalLayer(of descriptor: DependencyDescriptor) {
        temporalLayer = descriptor.temporalLayer
        isSwitchingPoint = descriptor.isSwitchingPoint
    }

    /// An audio packet: a frame of its own, with which a receiver can begin.
    static func audio(samples: Int) -> PayloadSummary {
        var summary = PayloadSummary()
        summary.startsFrame = true
        summary.endsFrame = true
        summary.endsPicture = true
        summary.isSwitchingPoint = true
        summary.startsSpatialLayer = true
        summary.sampleCount = samples
        return summary
    }
}
