import MediaControl
import PayloadFormats
import Primitives
import RTP

/// The m-section of a subscription: its negotiated parameters, how the bound track's formats are sent in it, and its retransmission stream.
struct SendSection: ~Copyable {
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
    private var rtxNumbers: RTXNumbers

    /// Numbers of the retransmission stream begin after `rtxNumber`.
    init(_ description: SubscriptionDescription, rtxNumber: UInt16) {
        wire = SubscriptionWire(description)
        accepted = description.formats
        rtxNumbers = RTXNumbers(after: rtxNumber)
    }

    // MARK: - What changes it

    /// Another track is bound.
    mutating func bind(_ track: PublishedTrack) {
        _ = formats.map(track.description.formats, to: accepted)
        isSingleStream = track.layerCount == 1
        captureOffset = nil
    }

    /// The bound track's formats were renegotiated; numbers up to `highest` were written the old way.
    mutating func trackUpdated(_ track: PublishedTrack, highest: Int64) {
        if formats.map(track.description.formats, to: accepted) { renegotiatedAt = highest }
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

    /// Bytes of memory besides the struct itself.
    var memoryBytes: Int { FormatMap.memoryBytes }

    /// Prefetches the memory outside the struct that planning will use.
    @inline(__always) func prefetch() { formats.prefetch() }

    /// How the publisher's format at `index` is sent.
    @inline(__always) subscript(index: UInt8) -> FormatMapping { formats[index] }

    /// Whether the subscriber can tell layers inside a stream apart by their descriptors.
    @inline(__always) var hasDependencyDescriptor: Bool { wire.extensions[.dependencyDescriptor] != 0 }

    /// Whether the history still has the packet that `sent` was made from.
    func isKept(_ sent: SentPacket, of track: PublishedTrack) -> Bool {
        guard let forwarded = sent.forwarded else { return true }
        return Self.record(of: forwarded, in: track.layer(Int(sent.layer))) != nil
    }

    /// Whether the receiver shows the frames up to the temporal layer `limit` without a sent packet of a higher one. They do not refer to it, but the receiver
    /// must be able to tell that. libwebrtc uses the dependency descriptor; in VP9 the layer of each frame; in VP8 TL0PICIDX, only for the lowest layer.
    /// Without these it waits for any packet that is missing before a frame. (It needs every packet of a higher spatial layer: it shows a frame only when all
    /// layers that began are complete.)
    func shows(upTo limit: UInt8, without sent: SentPacket, of track: PublishedTrack?) -> Bool {
        guard let forwarded = sent.forwarded, let layer = track?.layer(Int(sent.layer)),
            let record = Self.record(of: forwarded, in: layer),
            record.pointee.summary.temporalLayer > Int(limit)
        else { return false }
        if hasDependencyDescriptor, record.pointee.summary.hasDescriptor { return true }
        switch formats[record.pointee.format].codec {
        case .vp9: return true
        case .vp8:
            let packet = layer.pointee.history.packet(record)
            let payload = UnsafeRawBufferPointer(rebasing: packet[Int(record.pointee.payloadOffset)...])
            let numbers = FrameNumbers(codec: .vp8, payload: payload)
            return limit == 0 && numbers.pictureOffset >= 0 && numbers.temporalZeroOffset >= 0
        case .av1, .h264, .opus, .red, .otherAudio: return false
        }
    }

    /// The first packet of a keyframe that a decoder can start with; delimiters before the parameter sets are skipped.
    func firstDecodable(of keyframe: KeyframePosition, in layer: UnsafeMutablePointer<ReceiveLayer>) -> Int64? {
        var sequence = keyframe.firstSequence
        while let record = layer.pointee.history.record(sequence), record.pointee.timestamp == keyframe.timestamp {
            let mapping = formats[record.pointee.format]
            guard mapping.isMapped else { return nil }
            if record.pointee.summary.startsKeyframe {
                // An IDR picture without parameter sets is useless before the sets have arrived.
                let lacksSets = mapping.codec == .h264 && !record.pointee.summary.containsParameterSets
                return lacksSets && !layer.pointee.parameterSets.isComplete ? nil : sequence
            }
            sequence += 1
        }
        return nil
    }

    /// A format whose payload type padding can use, `format` if possible; nil if none is negotiated.
    func fillerFormat(preferring format: UInt8) -> UInt8? {
        if formats[format].isMapped { return format }
        return (0..<formats.count).map { UInt8($0) }.first { formats[$0].isMapped }
    }

    /// The payload type of padding on the RTX stream; nil if none is negotiated.
    func paddingPayloadType(preferring format: UInt8) -> UInt8? {
        guard repeatsAsRTX else { return nil }
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

    // MARK: - The retransmission stream

    /// Whether retransmissions have a stream of their own (RFC 4588).
    ///
    /// All packets of the RTX stream carry the mid: Firefox accepts no packet of that SSRC, nor reports it in transport-wide feedback, before one of
    /// them named its section (RFC 9143 section 9.2), whatever the FID group says; and a report about the media SSRC, after which the mid is omitted there,
    /// proves nothing about this one.
    var repeatsAsRTX: Bool { wire.rtxSSRC != nil }

    /// Renders a packet of `track` once more, as RTX if that was negotiated for it; returns its length, or nil when the history has lost it or the
    /// bytes would not be the same. `number` is its extended output number.
    mutating func renderRepeat(
        _ former: SentPacket, number: Int64, of track: PublishedTrack, stamp: SendStamp,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        var sent = former
        var rtxSequence: UInt16?
        if isRepeatedAsRTX(sent, of: track) {
            rtxSequence = rtxNumbers.next
            sent.apply(stamp)
            sent.flags.insert(.mid)
        } else if !isReproducible(sent, number: number, of: track) {
            return nil
        }
        guard let packet = render(sent, of: track, repeatedAs: rtxSequence, into: slot) else { return nil }
        if let rtxSequence { rtxNumbers.use(rtxSequence) }
        return packet.length
    }

    /// Renders a packet of the RTX stream with only `count` bytes of padding (RFC 3550 section 5.1); returns its length.
    mutating func renderPadding(
        _ count: Int, preferring format: UInt8, timestamp: UInt32, stamp: SendStamp,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard let payloadType = paddingPayloadType(preferring: format), let base = slot.baseAddress else { return nil }
        let number = rtxNumbers.next
        rtxNumbers.use(number)
        var mapping = FormatMapping()
        mapping.payloadType = payloadType
        mapping.rtxPayloadType = payloadType
        let renderer = PacketRenderer(wire: wire, mapping: mapping, isSingleStream: isSingleStream, captureOffset: 0)
        var sent = SentPacket(sequence: 0, content: .padding(.init(timestamp: timestamp, format: format)))
        sent.apply(stamp)
        sent.flags = .mid
        renderer.writeHeader(sent, timestamp: timestamp, marker: false, repeatedAs: number, into: base)
        var writer = ExtensionBlockWriter(slot: base, isTwoByte: wire.hasLargeIDs)
        renderer.writeOwn(sent, with: &writer)
        return RTPPatch.pad(slot, length: writer.finish(), by: count)
    }

    /// Whether a packet of `track` is retransmitted on that stream: its format has a payload type there.
    func isRepeatedAsRTX(_ sent: SentPacket, of track: PublishedTrack) -> Bool {
        guard repeatsAsRTX else { return false }
        let format: UInt8? =
            switch sent.content {
            case .none: nil
            case .forwarded(let packet):
                Self.record(of: packet, in: track.layer(Int(sent.layer)))?.pointee.format
            case .parameterSets(let generated, _), .padding(let generated): generated.format
            }
        return format.map { formats[$0].rtxPayloadType != FormatMapping.unmapped } ?? false
    }

    /// Whether rendering gives the same bytes again. Packets depend on negotiated parameters and on the state of the layer, which may have changed
    /// since; different bytes must not be sent under the same number on the media stream, see `SentPacket`.
    private func isReproducible(_ sent: SentPacket, number: Int64, of track: PublishedTrack) -> Bool {
        guard number > renegotiatedAt else { return false }
        let layer = track.layer(Int(sent.layer))
        switch sent.content {
        case .none: return false
        case .padding: return true
        case .parameterSets(_, let revision): return revision == layer.pointee.parameterSets.revision
        case .forwarded(let packet):
            guard packet.mark.hasTargets else { return true }
            guard let record = Self.record(of: packet, in: layer) else { return false }
            return record.pointee.sequence >= layer.pointee.targetsSince
        }
    }
}
