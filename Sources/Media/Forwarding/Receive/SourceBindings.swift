internal import MediaControl
internal import Primitives
internal import RTP

/// An SSRC that is now received, or no longer.
public struct SourceChange: Hashable, Sendable {
    public var ssrc: UInt32
    public var isReceived: Bool
}

/// Which track and layer an SSRC belongs to (RFC 8843 section 9.2, RFC 8852, RFC 8853).
///
/// Browsers write mid and rid only into the first packets of a stream, until the first feedback arrives, so learned bindings
/// are remembered; retransmissions (repaired-rid) may arrive before their media SSRC.
struct SourceBindings: ~Copyable {
    private var table = SSRCTable()
    private var changes: [SourceChange] = []

    /// The binding of `ssrc`.
    @inline(__always) subscript(ssrc: UInt32) -> StreamBinding? { table[ssrc] }

    /// Whether `consumeChanges()` has any.
    @inline(__always) var hasChanges: Bool { !changes.isEmpty }

    /// The SSRCs whose binding has changed since the last call, in order.
    mutating func consumeChanges() -> [SourceChange] {
        defer { changes.removeAll() }
        return changes
    }

    // MARK: - Binding

    /// Binds the SSRCs in the SDP.
    mutating func bindAnnounced(_ track: PublishedTrack, slot: Int) {
        for (index, encoding) in track.description.encodings.enumerated() where index < track.layerCount {
            if let ssrc = encoding.ssrc { bind(ssrc, track, slot: slot, layer: index, isRTX: false) }
            if let ssrc = encoding.rtxSSRC { bind(ssrc, track, slot: slot, layer: index, isRTX: true) }
        }
    }

    /// Makes `ssrc` the layer's stream. A different SSRC bound before is forgotten: the source was replaced, and the
    /// transport may reuse its entry.
    @discardableResult
    private mutating func bind(_ ssrc: UInt32, _ track: PublishedTrack, slot: Int, layer index: Int, isRTX: Bool)
        -> StreamBinding?
    {
        let binding = StreamBinding(track: slot, layer: index, isRTX: isRTX)
        guard table[ssrc] != binding else { return binding }
        let layer = track.layer(index)
        if let old = layer.pointee.sources.replaced(isRTX: isRTX), old != ssrc, table[old] == binding {
            table.removeAll { key, _ in key == old }
            changes.append(SourceChange(ssrc: old, isReceived: false))
        }
        guard table.bind(ssrc, to: binding) else { return nil }
        changes.append(SourceChange(ssrc: ssrc, isReceived: true))
        layer.pointee.bind(ssrc, isRTX: isRTX)
        return binding
    }

    /// Removes the SSRCs of the track in a slot.
    mutating func removeAll(ofSlot slot: Int) {
        var gone: [SourceChange] = []
        table.removeAll { ssrc, binding in
            guard Int(binding.track) == slot else { return false }
            gone.append(SourceChange(ssrc: ssrc, isReceived: false))
            return true
        }
        changes += gone
    }

    // MARK: - Learning

    /// Identifies an unknown SSRC as one of the peer's `tracks`; nil when nothing in the packet identifies it.
    mutating func learn(
        _ header: RTPHeader, _ extensions: ReceivedExtensions, _ packet: UnsafeRawBufferPointer,
        among tracks: [PublishedTrack?], at now: MonotonicTime
    ) -> StreamBinding? {
        let mid = ShortText(packet, offset: extensions.mid.offset, length: extensions.mid.length)
        let rid = ShortText(packet, offset: extensions.rid.offset, length: extensions.rid.length)
        let repaired = ShortText(packet, offset: extensions.repairedRID.offset, length: extensions.repairedRID.length)
        guard let slot = Self.trackSlot(mid: mid, rid: repaired ?? rid, among: tracks) else {
            return mid == nil && rid == nil && repaired == nil ? guess(header, among: tracks, at: now) : nil
        }
        guard let track = tracks[slot], let isRTX = track.carriesRTX(header.payloadType),
            let layer = Self.layer(of: track, rid: repaired ?? rid, isRTX: isRTX, at: now)
        else { return nil }
        return bind(header.ssrc, track, slot: slot, layer: layer, isRTX: isRTX)
    }

    /// The track of a mid; without one, the only track that has this rid.
    private static func trackSlot(mid: ShortText?, rid: ShortText?, among tracks: [PublishedTrack?]) -> Int? {
        if let mid { return tracks.firstIndex { $0?.mid == mid } }
        guard let rid else { return nil }
        var found: Int?
        for (slot, track) in tracks.enumerated() {
            guard let track, track.layerIndex(ofRID: rid) != nil else { continue }
            if found != nil { return nil }
            found = slot
        }
        return found
    }

    private static func layer(of track: PublishedTrack, rid: ShortText?, isRTX: Bool, at now: MonotonicTime) -> Int? {
        if let rid, let layer = track.layerIndex(ofRID: rid) { return layer }
        if track.layerCount == 1 {
            guard let rid else { return 0 }
            return onlyLayer(of: track, named: rid, isRTX: isRTX, at: now)
        }
        // Simulcast without rid, layers announced by SSRC: if this SSRC is not among them, only the RTX of a single layer without RTX is unambiguous. A packet
        // that names a layer that was not accepted, such as a fourth, belongs to no layer.
        guard isRTX, rid == nil else { return nil }
        let open = (0..<track.layerCount).filter {
            track.layer($0).pointee.sources.rtxSSRC == nil && track.layer($0).pointee.sources.ssrc != nil
        }
        return open.count == 1 ? open[0] : nil
    }

    /// A publisher may send layers that were not negotiated, for example if its room permits them only since the track began: the first one that arrives is the
    /// stream, and another one only after that has stopped. Otherwise parallel layers would replace each other with every packet.
    private static func onlyLayer(
        of track: PublishedTrack, named rid: ShortText, isRTX: Bool, at now: MonotonicTime
    ) -> Int? {
        guard track.isOpen(toRTX: isRTX, at: now) else { return nil }
        if isRTX { return track.layer(0).pointee.sources.ridText == nil ? 0 : nil }
        track.layer(0).pointee.rename(rid)
        return 0
    }

    /// The last resort for senders without mid (ffmpeg, GStreamer): the payload type, if exactly one track without an
    /// active SSRC has it.
    private mutating func guess(_ header: RTPHeader, among tracks: [PublishedTrack?], at now: MonotonicTime)
        -> StreamBinding?
    {
        var found: (slot: Int, track: PublishedTrack, isRTX: Bool)?
        for (slot, track) in tracks.enumerated() {
            guard let track, track.layerCount == 1, let isRTX = track.carriesRTX(header.payloadType),
                track.isOpen(toRTX: isRTX, at: now)
            else { continue }
            if found != nil { return nil }
            found = (slot, track, isRTX)
        }
        return found.flatMap { bind(header.ssrc, $0.track, slot: $0.slot, layer: 0, isRTX: $0.isRTX) }
    }
}

extension PublishedTrack {
    fileprivate func layerIndex(ofRID rid: ShortText) -> Int? {
        for index in 0..<layerCount where layer(index).pointee.sources.ridText == rid { return index }
        return nil
    }

    /// Whether packets with this payload type are retransmissions; nil if the track has no such payload type.
    fileprivate func carriesRTX(_ payloadType: UInt8) -> Bool? {
        switch meaning(of: payloadType) {
        case .unknown: nil
        case .media: false
        case .retransmissions: true
        }
    }

    /// Whether an SSRC identified only by its payload type may become the only layer's stream.
    fileprivate func isOpen(toRTX isRTX: Bool, at now: MonotonicTime) -> Bool {
        let sources = layer(0).pointee.sources, lastMedia = layer(0).pointee.lastMedia
        if isRTX { return sources.rtxSSRC == nil && sources.ssrc != nil }
        guard sources.ssrc != nil, lastMedia != .zero else { return true }
        // A sender that restarted its stream with another SSRC has stopped the old one.
        return now - lastMedia >= .seconds(1)
    }
}
