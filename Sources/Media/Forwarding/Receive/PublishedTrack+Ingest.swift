internal import MediaControl
internal import PayloadFormats
internal import Primitives
internal import RTP

extension PublishedTrack {
    /// Takes one packet of a layer, in its original form: numbering, measuring, summary, history, arrivals.
    func ingest(
        _ packet: UnsafeMutableRawBufferPointer, _ header: RTPHeader, _ extensions: ReceivedExtensions,
        layer index: Int,
        isRepaired: Bool, at now: MonotonicTime, events: inout [MediaEvent]
    ) -> IngestResult {
        let layer = layerStorage + index
        var flags: PacketRecord.Flags = header.marker ? .marker : []
        let sequence = layer.pointee.number(
            header.sequenceNumber, isRepaired: isRepaired, asksForRepair: asksForRepair, at: now, flags: &flags)
        guard sequence >= 0 else { return .dropped(sequence == ReceiveLayer.duplicate ? .rtpDuplicate : .rtpTooOld) }
        if isMuted {
            layer.pointee.owesDiscontinuity = true
            return .dropped(.trackMuted)
        }
        guard header.payloadLength > 0 else { return gap(index, sequence, .rtpPaddingOnly) }
        let format = formats[Int(header.payloadType)]
        guard format & Self.rtxBit == 0 else {
            return gap(index, sequence, format == Self.noFormat ? .rtpUnknownPayloadType : .rtxMalformed)
        }
        let payloadEnd = header.payloadOffset + header.payloadLength
        let payload = UnsafeRawBufferPointer(
            rebasing: UnsafeRawBufferPointer(packet)[header.payloadOffset..<payloadEnd])
        let codec = description.formats[Int(format)].codec
        guard
            let summary = layer.pointee.summarize(
                codec, payload, header.marker, extensions, UnsafeRawBufferPointer(packet))
        else { return gap(index, sequence, .payloadMalformed) }

        if layer.pointee.owesDiscontinuity, sequence == layer.pointee.sequences.highest {
            flags.insert(.discontinuity)
            layer.pointee.owesDiscontinuity = false
        }
        if extensions.voiceActivity { flags.insert(.voiceActivity) }
        let timestamp = layer.pointee.extend(header.timestamp)
        var record = PacketRecord(
            sequence: sequence, timestamp: timestamp, arrival: now, position: 0, length: UInt16(payloadEnd),
            payloadOffset: UInt16(header.payloadOffset), payloadType: header.payloadType, flags: flags,
            audioLevel: extensions.audioLevel, format: format, extensions: extensions.forwarded, summary: summary)
        if isRepaired { record.flags.insert(.repaired) }
        packet[0] &= ~0x20  // Padding is not stored.
        layer.pointee.history.insert(
            UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(packet)[..<payloadEnd]), record)
        guard arrivalList.append(Arrival(sequence: sequence, layer: UInt8(index), isGap: false)) else {
            return .dropped(.outboundFull)
        }
        observe(record, layer, index, at: now, events: &events)
        return .stored(layer: index, sequence: sequence)
    }

    private func gap(_ layer: Int, _ sequence: Int64, _ reason: DropReason) -> IngestResult {
        guard arrivalList.append(Arrival(sequence: sequence, layer: UInt8(layer), isGap: true)) else {
            return .dropped(.outboundFull)
        }
        return .gap(layer: layer, sequence: sequence, reason)
    }

    private var asksForRepair: Bool { description.feedback.contains(.nack) }

    /// What a stored packet tells about its layer and track.
    private func observe(
        _ record: PacketRecord, _ layer: UnsafeMutablePointer<ReceiveLayer>, _ index: Int, at now: MonotonicTime,
        events: inout [MediaEvent]
    ) {
        let id = description.id
        layer.pointee.totals.bytes &+= UInt64(record.length)
        layer.pointee.bytes.add(Int(record.length), at: now)
        if record.flags.contains(.repaired) {
            layer.pointee.totals.repaired &+= 1
        } else {
            layer.pointee.totals.packets &+= 1
            layer.pointee.lastMedia = now
            layer.pointee.hasEnded = false
            let clockRate = Int64(description.formats[Int(record.format)].clockRateHz)
            layer.pointee.counters.measureJitter(timestamp: record.timestamp, at: now, clockRate: clockRate)
            if record.audioLevel != 255 {
                levels.receive(level: record.audioLevel, timestamp: record.timestamp, clockRate: clockRate, at: now)
            }
        }
        if format == nil {
            format = description.formats[Int(record.format)]
            events.append(.trackStarted(id, description.formats[Int(record.format)].codec))
        } else if record.payloadType != format?.payloadType {
            format = description.formats[Int(record.format)]
        }
        if isSilent {
            isSilent = false
            for other in 0..<layerCount { layerStorage[other].keyframes.streamResumed() }
            events.append(.trackResumed(id))
        }
        layer.pointee.noteFrame(record, at: now)
        layer.pointee.noteKeyframe(record)
        if layer.pointee.noteDimensions(record.summary.dimensions) {
            events.append(
                .trackDimensions(
                    id, layer: rank(ofLayer: index), width: layer.pointee.width, height: layer.pointee.height))
        }
    }
}
