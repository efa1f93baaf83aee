import MediaControl
import Primitives

/// The negotiated parameters of a subscription's m-section, flattened for the packet path.
struct SubscriptionWire {
    var ssrc: UInt32
    /// nil if RTX was not negotiated.
    var rtxSSRC: UInt32?
    var extensions: HeaderExtensionIDs
    var midLength: UInt8 = 0
    /// At most 16 characters of mid (RFC 9143 section 6 leaves the length to the application).
    var mid: (UInt64, UInt64) = (0, 0)
    /// The playout delay that is written on every packet in place of the publisher's; nil: the publisher's is forwarded.
    private(set) var ownPlayoutDelay: UInt32?
    /// Transport-wide feedback was negotiated.
    var hasTransportFeedback: Bool
    /// An id above 14 exists, so the one-byte form cannot always be used.
    var hasLargeIDs: Bool

    init(_ description: SubscriptionDescription) {
        ssrc = description.ssrc
        rtxSSRC = description.rtxSSRC
        extensions = description.extensions
        hasTransportFeedback = description.feedback.contains(.transportCC)
        hasLargeIDs = HeaderExtension.allCases.contains { description.extensions[$0] > 14 }
        if let bounds = description.playoutDelay, description.extensions[.playoutDelay] != 0 {
            ownPlayoutDelay = bounds.wireValue
        }
        withUnsafeMutableBytes(of: &mid) { bytes in
            for byte in description.mid.utf8.prefix(16) {
                bytes[Int(midLength)] = byte
                midLength += 1
            }
        }
    }

    /// Whether both render the same bytes.
    func writes(like other: Self) -> Bool {
        extensions == other.extensions && mid == other.mid && midLength == other.midLength
            && ownPlayoutDelay == other.ownPlayoutDelay
    }

    /// Number of elements that `PacketRenderer.writeOwn` writes, and their bytes without element headers.
    @inline(__always) func ownElements(withMID: Bool) -> (count: Int, bytes: Int) {
        var elements = (count: 0, bytes: 0)
        if extensions[.absoluteSendTime] != 0 { elements = (1, 3) }
        if extensions[.transportSequence] != 0 { elements = (elements.count &+ 1, elements.bytes &+ 2) }
        if withMID, extensions[.mid] != 0, midLength > 0 {
            elements = (elements.count &+ 1, elements.bytes &+ Int(midLength))
        }
        if ownPlayoutDelay != nil { elements = (elements.count &+ 1, elements.bytes &+ 3) }
        return elements
    }

    /// Whether `meaning` is forwarded unchanged from publisher to subscriber.
    ///
    /// mid, rid, send time and transport-wide number belong to one hop. The transmission offset (RFC 5450) describes when the publisher's
    /// packet left, not this one. A layer allocation describes all streams of the sender: behind an SFU it is true only for a single
    /// stream.
    @inline(__always) func passes(_ meaning: HeaderExtension, ofSingleStream single: Bool) -> Bool {
        switch meaning {
        case .mid, .rid, .repairedRID, .absoluteSendTime, .transportSequence, .transmissionOffset: false
        case .videoLayersAllocation: single
        case .playoutDelay: ownPlayoutDelay == nil
        case .audioLevel, .videoOrientation, .videoContentType, .videoTiming, .colorSpace,
            .absoluteCaptureTime, .dependencyDescriptor:
            true
        }
    }
}

/// How one of the publisher's formats is sent to the subscriber.
struct FormatMapping: Equatable {
    /// `unmapped` if the subscriber does not accept it.
    var payloadType: UInt8 = FormatMapping.unmapped
    /// `unmapped` if RTX was not negotiated.
    var rtxPayloadType: UInt8 = FormatMapping.unmapped
    /// The codec that is sent.
    var codec: Codec = .otherAudio
    /// The publisher sends RED, the subscriber gets its primary block.
    var stripsRED = false
    /// The payload type of blocks inside RED in the subscriber's session.
    var redBlockPayloadType: UInt8 = FormatMapping.unmapped
    var clockRate: UInt32 = 0

    static let unmapped: UInt8 = 0xff
    @inline(__always) var isMapped: Bool { payloadType != Self.unmapped }
    /// Whether the subscriber accepts a packet of the format. RED that is encrypted end to end cannot be stripped.
    @inline(__always)
    func accepts(_ flags: PacketRecord.Flags) -> Bool { isMapped && !(stripsRED && flags.contains(.opaque)) }

    /// The mapping of a publisher's `format`; unmapped when the subscriber accepts nothing that fits.
    init(of format: PayloadFormat, among accepted: [PayloadFormat]) {
        codec = format.codec
        clockRate = format.clockRateHz
        let match =
            accepted.first {
                $0.codec == format.codec && $0.variant == format.variant && $0.clockRateHz == format.clockRateHz
            }
        if let match {
            set(match)
            if codec == .red {
                redBlockPayloadType = accepted.first { $0.codec == .opus }?.payloadType ?? Self.unmapped
            }
        } else if format.codec == .red, let opus = accepted.first(where: { $0.codec == .opus }) {
            set(opus)
            codec = .opus
            stripsRED = true
        }
    }

    init() {}

    private mutating func set(_ format: PayloadFormat) {
        payloadType = format.payloadType
        rtxPayloadType = format.rtxPayloadType ?? Self.unmapped
    }
}

/// The mappings of all formats of the bound track, by index into its description's `formats`. They are in separate memory: an array inside the subscription
/// would be copied for each packet that reads one of them.
struct FormatMap: ~Copyable {
    /// A track with more formats is served by its first 16: Chromium's longest list for one m-line is 12 without RTX.
    private static let capacity = 16
    private let mappings: UnsafeMutablePointer<FormatMapping>
    private(set) var count = 0

    init() {
        mappings = .allocate(capacity: Self.capacity)
        mappings.initialize(repeating: FormatMapping(), count: Self.capacity)
    }

    deinit { mappings.deallocate() }

    /// Bytes of memory besides the struct itself.
    static var memoryBytes: Int { capacity * MemoryLayout<FormatMapping>.stride }

    /// Maps the formats of another track, or the same ones differently; returns whether that changes anything.
    mutating func map(_ published: [PayloadFormat], to accepted: [PayloadFormat]) -> Bool {
        let former = count
        count = min(published.count, Self.capacity)
        var isChanged = count != former
        for index in 0..<count {
            let mapping = FormatMapping(of: published[index], among: accepted)
            if mapping != mappings[index] { isChanged = true }
            mappings[index] = mapping
        }
        return isChanged
    }

    @inline(__always) subscript(index: UInt8) -> FormatMapping {
        Int(index) < count ? mappings[Int(index)] : FormatMapping()
    }

    /// Prefetches the first mappings, of which most tracks use one.
    @inline(__always) func prefetch() { Prefetch.lines(mappings, 64) }
}
