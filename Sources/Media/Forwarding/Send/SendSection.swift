import MediaControl
import Primitives

/// The m-section of a subscription: its negotiated parameters, and how the bound track's formats are sent in it.
struct SendSection {
    private(set) var wire: SubscriptionWire
    private var accepted: [PayloadFormat]
    private var formats = FormatMap()
    /// The publisher sends one stream only.
    private var isSingleStream = true
    /// Until the receiver's first report on the SSRC, packets of the media stream carry the mid.
    private(set) var sendsMID = true
    /// Publisher's clock to server's clock, 32.32 fixed point; nil before the publisher's first sender report.
    var captureOffset: Int64?
    /// The highest number when the encoding of packets changed: other ids or payload types.
    private var renegotiatedAt = Int64.min

    init(_ description: SubscriptionDescription) {
        wire = SubscriptionWire(description)
        accepted = description.formats
    }

    // MARK: - What changes it

    /// Another track is bound.
    mutating func bind(_ track: PublishedTrack) {
        formats = FormatMap(from: track.description.formats, to: accepted)
        isSingleStream = track.layerCount == 1
        captureOffset = nil
    }

    /// The bound track's formats were renegotiated; numbers up to `highest` were written the old way.
    mutating func trackUpdated(_ track: PublishedTrack, highest: Int64) {
        let former = formats
        formats = FormatMap(from: track.description.formats, to: accepted)
        if formats != former { renegotiatedAt = highest }
    }

    /// The section was renegotiated; its SSRCs stay.
    mutating func update(_ description: SubscriptionDescription, track: PublishedTrack?, highest: Int64) {
        let former = wire
        wire = SubscriptionWire(description)
        wire.ssrc = former.ssrc
        wire.rtxSSRC = former.rtxSSRC
        accepted = description.formats
        sendsMID = true
        if let track { trackUpdated(track, highest: highest) }
        if !wire.writes(like: former) { renegotiatedAt = highest }
    }

    /// The receiver has identified the stream's section: the mid need not be sent any more (RFC 9143 section 6).
    mutating func receiverReported() { sendsMID = false }

    // MARK: - Formats

    /// How the publisher's format at `index` is sent.
    @inline(__always) subscript(index: UInt8) -> FormatMapping { formats[index] }

    /// A format whose payload type padding can use, `format` if possible; nil if none is negotiated.
    func fillerFormat(preferring format: UInt8) -> UInt8? {
        if formats[format].isMapped { return format }
        return (0..<formats.count).map { UInt8($0) }.first { formats[$0].isMapped }
    }

    /// The payload type of padding on the RTX stream; nil if none is negotiated.
    func paddingPayloadType(preferring format: UInt8) -> UInt8? {
        guard wire.rtxSSRC != 0 else { return nil }
        let current = formats[format].rtxPayloadType
        if current != FormatMapping.unmapped { return current }
        for index in 0..<formats.count where formats[UInt8(index)].rtxPayloadType != FormatMapping.unmapped {
            return formats[UInt8(index)].rtxPayloadType
        }
        return nil
    }

    // MARK: - Bytes

    @inline(__always)
    func renderer(for format: UInt8) -> PacketRenderer {
        PacketRenderer(
            wire: wire, mapping: formats[format], isSingleStream: isSingleStream, captureOffset: captureOffset ?? 0)
    }

    /// For padding on the retransmission stream.
    func paddingRenderer(payloadType: UInt8) -> PacketRenderer {
        var mapping = FormatMapping()
        mapping.payloadType = payloadType
        mapping.rtxPayloadType = payloadType
        return PacketRenderer(wire: wire, mapping: mapping, isSingleStream: isSingleStream, captureOffset: 0)
    }

    /// Whether `number` was written as it would be now, as far as the section determines it.
    func isUnchanged(since number: Int64) -> Bool { number > renegotiatedAt }
}
