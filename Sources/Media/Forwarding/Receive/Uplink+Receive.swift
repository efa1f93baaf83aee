internal import MediaControl
public import Primitives
internal import RTP

extension Uplink {
    /// Processes one decrypted RTP packet of `length` bytes at the start of `packet`, which may be changed in place. `track` is
    /// set to the track it belongs to, if one was found.
    public func receiveRTP(
        _ packet: UnsafeMutableRawBufferPointer, length: Int, at now: MonotonicTime, track: inout PublishedTrack?
    ) -> IngestResult {
        guard length <= packet.count, length <= PacketHistory.maximumPacketLength else { return .dropped(.oversize) }
        let bytes = UnsafeMutableRawBufferPointer(rebasing: packet[0..<length])
        let readable = UnsafeRawBufferPointer(bytes)
        guard let header = RTPHeader(readable.bytes) else { return .dropped(.rtpMalformed) }
        let extensions = readExtensions(header, readable)
        if extensions.transportSequence >= 0 {
            state.pointee.recorder.record(
                UInt16(truncatingIfNeeded: extensions.transportSequence), mediaSSRC: header.ssrc, at: now)
            schedule.wake(at: state.pointee.recorder.nextDue)
        }
        guard let binding = state.pointee.table[header.ssrc] ?? learn(header, extensions, readable, at: now) else {
            return .dropped(.rtpUnknownStream)
        }
        guard let owner = tracks[Int(binding.track)] else { return .dropped(.rtpUnknownStream) }
        track = owner
        state.pointee.rateAdviser.count(length)
        let layer = Int(binding.layer)
        let result =
            binding.isRTX
            ? receiveRTX(bytes, header, extensions, owner, layer: layer, at: now)
            : owner.ingest(
                bytes, header, extensions, layer: layer, isRepaired: false, at: now, events: &state.pointee.events)
        schedule.wake(at: owner.layer(layer).pointee.nextFeedback)
        if state.pointee.reports.nextReport == .distantFuture { startReporting(at: now) }
        return result
    }

    @inline(__always) private func readExtensions(
        _ header: RTPHeader, _ packet: UnsafeRawBufferPointer
    ) -> ReceivedExtensions {
        var found = ReceivedExtensions()
        guard header.extensionLength > 0 else { return found }
        var elements = RTPHeaderExtensions(header)
        while let element = elements.next(in: packet.bytes) {
            guard let meaning = extensionTable[element.id] else { continue }
            found.note(meaning, element, in: packet.bytes)
        }
        return found
    }

    /// Unwraps the retransmission format in place (RFC 4588) and ingests the original packet.
    private func receiveRTX(
        _ packet: UnsafeMutableRawBufferPointer, _ header: RTPHeader, _ extensions: ReceivedExtensions,
        _ track: PublishedTrack, layer index: Int, at now: MonotonicTime
    ) -> IngestResult {
        let layer = track.layer(index)
        // Padding-only bandwidth probes also use this SSRC.
        guard header.payloadLength > 0 else { return .dropped(.rtpPaddingOnly) }
        let format = track.state.pointee.formats[Int(header.payloadType)]
        guard format != PublishedTrackState.noFormat, format & PublishedTrackState.rtxBit != 0,
            let number = RTX.originalSequenceNumber(header, in: UnsafeRawBufferPointer(packet).bytes)
        else { return .dropped(.rtxMalformed) }
        guard let ssrc = layer.pointee.sources.ssrc, layer.pointee.sequences.hasStarted else {
            return .dropped(.rtxUnknownStream)
        }
        let original = track.description.formats[Int(format & ~PublishedTrackState.rtxBit)].payloadType
        guard let length = RTX.unwrap(packet, header: header, ssrc: ssrc, payloadType: original) else {
            return .dropped(.rtxMalformed)
        }
        var inner = header
        inner.payloadType = original
        inner.sequenceNumber = number
        inner.ssrc = ssrc
        inner.payloadLength = length - header.payloadOffset
        inner.paddingLength = 0
        let bytes = UnsafeMutableRawBufferPointer(rebasing: packet[0..<length])
        if let sample = layer.pointee.answered(number, at: now) { state.pointee.roundTrip.measured(sample) }
        return track.ingest(
            bytes, inner, extensions, layer: index, isRepaired: true, at: now, events: &state.pointee.events)
    }
}

extension Uplink {
    /// Media arrived and was discarded unread: what follows restarts, video with a keyframe. NACKs for the missing packets would delay
    /// it further.
    public func interrupted() {
        for case let track? in tracks {
            for index in 0..<track.layerCount { track.layer(index).pointee.interrupt() }
        }
        schedule.wake(at: .zero)
    }
}
