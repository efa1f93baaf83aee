import MediaControl
import PayloadFormats
import Primitives

// How packets of the active layer become planned ones: selected, numbered, appended to the turn's list and stored for retransmission.

extension Subscription {
    /// Forwards `layer` from the packet at `start` on.
    mutating func begin(
        _ layer: UnsafeMutablePointer<ReceiveLayer>, from start: Int64, at now: MonotonicTime,
        into list: inout WorkList<SentPacket>
    ) {
        guard let record = layer.pointee.history.record(start) else { return }
        let mapping = section[record.pointee.format]
        selector.begin(layer.pointee.index, at: record.pointee.timestamp)
        if mapping.codec == .h264, !record.pointee.summary.containsParameterSets {
            appendParameterSets(ahead: record, of: layer, mapping: mapping, at: now, into: &list)
        }
        numbering.begin(layer, from: start, record, mapping: mapping)
    }

    /// The parameter sets precede the keyframe as a packet of their own.
    private mutating func appendParameterSets(
        ahead record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>, mapping: FormatMapping,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        var sent = SentPacket()
        sent.ownTimestamp =
            UInt32(truncatingIfNeeded: record.pointee.timestamp)
            &+ numbering.timestampDelta(to: record, of: layer, mapping: mapping)
        sent.sequence = numbering.nextNumber()
        sent.ownFormat = record.pointee.format
        sent.layer = UInt8(layer.pointee.index)
        sent.flags = [.used, .parameterSets]
        append(sent, at: now, into: &list)
    }

    /// Plans one packet of the active layer.
    @inline(__always)
    mutating func forward(
        _ arrival: Arrival, of layer: UnsafeMutablePointer<ReceiveLayer>, at now: MonotonicTime,
        into list: inout WorkList<SentPacket>
    ) {
        let isLate = numbering.isLate(arrival.sequence)
        if arrival.isGap {
            return isLate
                ? fill(Int(arrival.layer), arrival.sequence, at: now, into: &list)
                : numbering.closeGap(arrival.sequence)
        }
        guard let record = layer.pointee.history.record(arrival.sequence) else { return }
        if isLate { return forwardLate(arrival.sequence, of: layer, record: record, at: now, into: &list) }
        let mapping = section[record.pointee.format]
        guard mapping.takes(record.pointee.flags), kind == .audio || mapping.codec == numbering.tail.codec else {
            return leave(layer)
        }
        if kind == .video {
            let isNewFrame = record.pointee.timestamp != numbering.tail.sourceTimestamp
            switch selector.verdict(record, isNewFrame: isNewFrame, highest: numbering.highest) {
            case .forwarded: break
            case .aboveSpatialCap: return numbering.closeGap(arrival.sequence)
            case .aboveTemporalCap(let isFirst): return omit(arrival.sequence, isFirst: isFirst)
            }
        }
        if !record.pointee.flags.isDisjoint(with: [.discontinuity, .newTimeline]) {
            numbering.rebase(at: arrival.sequence, record, of: layer, mapping: mapping)
        }
        if held.isHolding { releaseHeld(endsPicture: heldEndsPicture(in: layer), at: now, into: &list) }
        number(arrival.sequence, record: record, of: layer, at: now, into: &list)
    }

    /// Assigns the next number to a packet that is ahead of all others.
    @inline(__always)
    private mutating func number(
        _ sequence: Int64, record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        var sent = numbering.number(sequence, record, caps: selector.caps)
        if record.pointee.summary.hasDescriptor { markLayers(in: &sent, sequence, record, of: layer) }
        let codec = numbering.tail.codec
        if kind == .video, !numbering.tail.isFrameComplete, record.pointee.summary.endsFrame,
            codec == .vp9 || codec == .av1
        {
            guard record.pointee.summary.spatialLayer >= Int(selector.caps.spatial) else {
                return held.hold(sent, at: now)
            }
            sent.flags.insert(.marker)
            numbering.completeFrame()
        }
        append(sent, at: now, into: &list)
    }

    /// Drops a packet of a temporal layer that the subscriber does not get.
    ///
    /// VP8's picture ids close up, because libwebrtc's receivers wait for a missing picture id. VP9's and the dependency descriptor's do
    /// not, because later frames identify their references by distance.
    private mutating func omit(_ sequence: Int64, isFirst: Bool) {
        numbering.closeGap(sequence)
        if isFirst, numbering.tail.codec == .vp8 { numbering.skipPicture() }
    }

    /// The publisher continues with a format that cannot follow the last one: wait for a keyframe in a format that can be sent.
    private mutating func leave(_ layer: UnsafeMutablePointer<ReceiveLayer>) {
        // While no layer is forwarded nothing would release the held packet, and it would be due for ever.
        abandonHeld()
        numbering.remember(layer)
        selector.stop()
    }

    /// Forwards a late packet under the number reserved for it, once.
    mutating func forwardLate(
        _ sequence: Int64, of layer: UnsafeMutablePointer<ReceiveLayer>, record: UnsafePointer<PacketRecord>,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard let range = numbering.range(layer: layer.pointee.index, source: sequence) else { return }
        let caps = self.caps(of: record, layer, in: range)
        if kind == .video, wasLeftOut(sequence, record, of: layer, caps: caps) {
            return fill(layer.pointee.index, sequence, at: now, into: &list)
        }
        var sent = numbering.packet(sequence, in: range)
        guard ring.place(sent.sequence) == nil, !held.isHolding(sent.sequence), section[record.pointee.format].isMapped
        else { return }
        if kind == .video { endLayer(in: &sent, sequence, record, of: layer, caps: caps) }
        // The subscriber has seen the gap: this also answers its requests in transit.
        sent.lastRepeat = SentPacket.moment(of: now)
        append(sent, at: now, into: &list)
    }

    /// A missing number turns out not to be forwarded: padding closes the gap, so that it is not requested again.
    private mutating func fill(
        _ layer: Int, _ sequence: Int64, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard let range = numbering.range(layer: layer, source: sequence) else { return }
        var sent = numbering.packet(sequence, in: range)
        guard ring.isKeeping, ring.place(sent.sequence) == nil else { return }
        sent.flags = [.used, .filler]
        sent.ownFormat = numbering.tail.format
        sent.ownTimestamp = numbering.tail.timestamp
        append(sent, at: now, into: &list)
    }

    /// Appends a packet to the turn's list and stores it for retransmission.
    @inline(__always)
    mutating func append(_ planned: SentPacket, at now: MonotonicTime, into list: inout WorkList<SentPacket>) {
        var sent = planned
        // It may be queued at the pacer until after the next binding.
        sent.epoch = numbering.epoch
        ring.store(sent, at: now)
        list.append(sent)
    }
}
