internal import MediaControl
internal import Primitives
internal import RTP

/// Which track and layer an SSRC belongs to (RFC 8843 section 9.2, RFC 8852, RFC 8853).
///
/// Browsers write mid and rid only into the first packets of a stream, until the first feedback arrives, so learned bindings
/// are remembered; retransmissions (repaired-rid) may arrive before their media SSRC.
extension Uplink {
    /// Binds the SSRCs in the SDP.
    func bindAnnounced(_ track: PublishedTrack, slot: Int) {
        for (index, encoding) in track.description.encodings.enumerated() where index < track.layerCount {
            if let ssrc = encoding.ssrc { bind(ssrc, track, slot: slot, layer: index, isRTX: false) }
            if let ssrc = encoding.rtxSSRC { bind(ssrc, track, slot: slot, layer: index, isRTX: true) }
        }
    }

    /// Identifies an unknown SSRC; nil when nothing in the packet identifies it.
    func learn(
        _ header: RTPHeader, _ extensions: ReceivedExtensions, _ packet: UnsafeRawBufferPointer, at now: MonotonicTime
    ) -> StreamBinding? {
        let mid = ShortText(packet, offset: extensions.mid.offset, length: extensions.mid.length)
        let rid = ShortText(packet, offset: extensions.rid.offset, length: extensions.rid.length)
        let repaired = ShortText(packet, offset: extensions.repairedRID.offset, length: extensions.repairedRID.length)
        guard let slot = trackSlot(mid: mid, rid: repaired ?? rid) else {
            return mid == nil && rid == nil && repaired == nil ? guess(header, at: now) : nil
        }
        guard let track = tracks[slot] else { return nil }
        let format = track.state.pointee.formats[Int(header.payloadType)]
        guard format != PublishedTrackState.noFormat else { return nil }
        let isRTX = format & PublishedTrackState.rtxBit != 0
        guard let layer = layer(of: track, rid: repaired ?? rid, isRTX: isRTX) else { return nil }
        return bind(header.ssrc, track, slot: slot, layer: layer, isRTX: isRTX)
    }

    /// The track of a mid; without one, the only track that has this rid.
    private func trackSlot(mid: ShortText?, rid: ShortText?) -> Int? {
        if let mid { return tracks.firstIndex { $0?.state.pointee.mid == mid } }
        guard let rid else { return nil }
        var found: Int?
        for (slot, track) in tracks.enumerated() {
            guard let track, track.layerIndex(ofRID: rid) != nil else { continue }
            if found != nil { return nil }
            found = slot
        }
        return found
    }

    private func layer(of track: PublishedTrack, rid: ShortText?, isRTX: Bool) -> Int? {
        if let rid, let layer = track.layerIndex(ofRID: rid) { return layer }
        if track.layerCount == 1 { return 0 }
        // Simulcast without rid, layers announced by SSRC: if this SSRC is not among them, only the RTX of a single layer
        // without RTX is unambiguous.
        guard isRTX else { return nil }
        let open = (0..<track.layerCount).filter {
            track.layer($0).pointee.sources.rtxSSRC == nil && track.layer($0).pointee.sources.ssrc != nil
        }
        return open.count == 1 ? open[0] : nil
    }

    /// The last resort for senders without mid (ffmpeg, GStreamer): the payload type, if exactly one track without an
    /// active SSRC has it.
    private func guess(_ header: RTPHeader, at now: MonotonicTime) -> StreamBinding? {
        var found: (slot: Int, track: PublishedTrack, isRTX: Bool)?
        for (slot, track) in tracks.enumerated() {
            guard let track, track.layerCount == 1 else { continue }
            let format = track.state.pointee.formats[Int(header.payloadType)]
            guard format != PublishedTrackState.noFormat else { continue }
            let isRTX = format & PublishedTrackState.rtxBit != 0
            guard track.isOpen(toRTX: isRTX, at: now) else { continue }
            if found != nil { return nil }
            found = (slot, track, isRTX)
        }
        return found.flatMap { bind(header.ssrc, $0.track, slot: $0.slot, layer: 0, isRTX: $0.isRTX) }
    }

    /// Makes `ssrc` the layer's stream. A different SSRC bound before is forgotten: the source was replaced, and the
    /// transport may reuse its entry.
    @discardableResult
    private func bind(_ ssrc: UInt32, _ track: PublishedTrack, slot: Int, layer index: Int, isRTX: Bool)
        -> StreamBinding?
    {
        let binding = StreamBinding(track: slot, layer: index, isRTX: isRTX)
        guard state.pointee.table[ssrc] != binding else { return binding }
        let layer = track.layer(index)
        if let old = layer.pointee.sources.replaced(isRTX: isRTX), old != ssrc, state.pointee.table[old] == binding {
            state.pointee.table.removeAll { key, _ in key == old }
            state.pointee.sourceChanges.append(SourceChange(ssrc: old, isReceived: false))
        }
        guard state.pointee.table.bind(ssrc, to: binding) else { return nil }
        state.pointee.sourceChanges.append(SourceChange(ssrc: ssrc, isReceived: true))
        layer.pointee.bind(ssrc, isRTX: isRTX)
        return binding
    }
}

extension PublishedTrack {
    func layerIndex(ofRID rid: ShortText) -> Int? {
        for index in 0..<layerCount where layerStorage[index].sources.ridText == rid { return index }
        return nil
    }

    /// Whether an SSRC identified only by its payload type may become the only layer's stream.
    fileprivate func isOpen(toRTX isRTX: Bool, at now: MonotonicTime) -> Bool {
        if isRTX { return layerStorage[0].sources.rtxSSRC == nil && layerStorage[0].sources.ssrc != nil }
        guard layerStorage[0].sources.ssrc != nil, layerStorage[0].lastMedia != .zero else { return true }
        // A sender that restarted its stream with another SSRC has stopped the old one.
        return now - layerStorage[0].lastMedia >= .seconds(1)
    }
}
