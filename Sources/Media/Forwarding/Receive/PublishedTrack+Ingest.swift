internal import MediaControl
internal import PayloadFormats
internal import Primitives
internal import RTP

extension PublishedTrack {
    /// Processes one packet of a layer, in its original form: numbering, measurements, summary, history, arrivals.
    func ingest(
        _ packet: UnsafeMutableRawBufferPointer, _ header: RTPHeader, _ extensions: ReceivedExtensions,
        layer index: Int,
        isRepaired: Bool, at now: MonotonicTime, events: inout [MediaEvent]
    ) -> IngestResult {
        let layer = layerStorage + index
        var flags: PacketRecord.Flags = header.marker ? .marker : []
        let outcome = layer.pointee.number(
            header.sequenceNumber, isRepaired: isRepaired, asksForRepair: state.pointee.asksForRepair, at: now,
            flags: &flags)
        let sequence: Int64
        switch outcome {
        case .new(let number), .restarted(let number): sequence = number
        case .duplicate: return .dropped(.rtpDuplicate)
        case .tooOld: return .dropped(.rtpTooOld)
        }
        if state.pointee.isMuted {
            layer.pointee.dropMuted(sequence)
            return .dropped(.trackMuted)
        }
        guard header.payloadLength > 0 else { return gap(index, sequence, .rtpPaddingOnly) }
        let format = state.pointee.formats[Int(header.payloadType)]
        guard format & PublishedTrackState.rtxBit == 0 else {
            return gap(index, sequence, format == PublishedTrackState.noFormat ? .rtpUnknownPayloadType : .rtxMalformed)
        }
        let payloadEnd = header.payloadOffset + header.payloadLength
        let payload = UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(packet)[header.payloadOffset..<payloadEnd])
        let codec = state.pointee.codecs[Int(format)]
        guard
            let summary = layer.pointee.summarize(
                sequence, codec, payload, header.marker, extensions, UnsafeRawBufferPointer(packet))
        else { return gap(index, sequence, .payloadMalformed) }

        if layer.pointee.consumeDiscontinuity(at: sequence), state.pointee.description.kind == .audio {
            // Video restarts with a keyframe, whose first packet another may overtake.
            flags.insert(.discontinuity)
        }
        if extensions.voiceActivity { flags.insert(.voiceActivity) }
        if codec == .red, layer.pointee.isOpaqueRED(isOpus: isOpus(summary.primaryPayloadType)) {
            flags.insert(.opaque)
        }
        if extensions.layersAllocation.length > 0 { noteAnnouncement(extensions, UnsafeRawBufferPointer(packet)) }
        let timestamp = layer.pointee.extend(header.timestamp)
        var record = PacketRecord(
            sequence: sequence, timestamp: timestamp, arrival: now, position: 0, length: UInt16(payloadEnd),
            payloadOffset: UInt16(header.payloadOffset), payloadType: header.payloadType, flags: flags,
            audioLevel: extensions.audioLevel, format: format, extensions: extensions.forwarded, summary: summary)
        if isRepaired { record.flags.insert(.repaired) }
        packet[0] &= ~0x20  // Padding is not stored.
        layer.pointee.store(
            UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(packet)[..<payloadEnd]), record)
        guard state.pointee.arrivals.append(Arrival(sequence: sequence, layer: UInt8(index), isGap: false)) else {
            return .dropped(.outboundFull)
        }
        observe(record, layer, index, at: now, events: &events)
        return .stored(layer: index, sequence: sequence)
    }

    private func isOpus(_ payloadType: UInt8) -> Bool {
        let format = state.pointee.formats[Int(payloadType & 0x7f)]
        return format & PublishedTrackState.rtxBit == 0 && state.pointee.codecs[Int(format)] == .opus
    }

    private func noteAnnouncement(_ extensions: ReceivedExtensions, _ packet: UnsafeRawBufferPointer) {
        let element = RTPHeaderExtensions.Element(
            id: 0, offset: extensions.layersAllocation.offset, length: extensions.layersAllocation.length)
        guard let allocation = VideoLayersAllocation(element, in: packet.bytes) else { return }
        state.pointee.announced.apply(allocation)
    }

    private func gap(_ layer: Int, _ sequence: Int64, _ reason: DropReason) -> IngestResult {
        guard state.pointee.arrivals.append(Arrival(sequence: sequence, layer: UInt8(layer), isGap: true)) else {
            return .dropped(.outboundFull)
        }
        return .gap(layer: layer, sequence: sequence, reason)
    }

    /// Updates the layer and the track from a stored packet.
    private func observe(
        _ record: PacketRecord, _ layer: UnsafeMutablePointer<ReceiveLayer>, _ index: Int, at now: MonotonicTime,
        events: inout [MediaEvent]
    ) {
        let clockRate = state.pointee.clockRates[Int(record.format)]
        let hasOtherSize = layer.pointee.observe(record, clockRate: clockRate, at: now)
        if record.audioLevel != 255, !record.flags.contains(.repaired) {
            state.pointee.levels.receive(
                level: record.audioLevel, timestamp: record.timestamp, clockRate: clockRate, at: now)
        }
        if !state.pointee.hasStarted || record.payloadType != state.pointee.payloadType || state.pointee.isSilent {
            noteChange(record, events: &events)
        }
        if hasOtherSize {
            events.append(
                .trackDimensions(
                    state.pointee.description.id, layer: rank(ofLayer: index), width: layer.pointee.size.width,
                    height: layer.pointee.size.height))
        }
    }

    /// Handles the first packet, the first of another format, or the first after silence.
    private func noteChange(_ record: PacketRecord, events: inout [MediaEvent]) {
        let id = state.pointee.description.id
        let format = state.pointee.description.formats[Int(record.format)]
        if !state.pointee.hasStarted { events.append(.trackStarted(id, format.codec)) }
        state.pointee.hasStarted = true
        state.pointee.format = format
        state.pointee.payloadType = record.payloadType
        guard state.pointee.isSilent else { return }
        state.pointee.isSilent = false
        for index in 0..<layerCount { layerStorage[index].keyframes.streamResumed() }
        events.append(.trackResumed(id))
    }
}
