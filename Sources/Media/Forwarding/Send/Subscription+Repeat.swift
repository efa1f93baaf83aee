import MediaControl
public import Primitives

// Retransmission: from the track's history, within the turn in which the NACK arrived.

/// The outcome for one number of a NACK.
public enum RepeatVerdict: Sendable, Hashable {
    /// Retransmit the packet with this extended output number.
    case send(UInt32)
    /// Not retransmitted, for this reason.
    case dropped(DropReason)
    /// The publisher's packet is missing here too; it is sent when it is repaired.
    case notYetHere
}

extension Subscription {
    /// Looks up the number `wire` of a NACK; a packet is not retransmitted twice within `roundTrip`.
    public mutating func requestRepeat(_ wire: UInt16, roundTrip: TimeInterval, at now: MonotonicTime) -> RepeatVerdict
    {
        totals.nacks &+= 1
        selector.noteMissing(wire)
        guard let place = ring.place(wire: wire, highest: UInt32(truncatingIfNeeded: numbering.highest)) else {
            return numbering.isOpenGap(wire) ? .notYetHere : .dropped(.retransmissionTooOld)
        }
        guard place.pointee.epoch == numbering.epoch, place.pointee.flags.contains(.sent),
            !abandonedVideo.contains(number(of: place.pointee))
        else {
            return .dropped(.retransmissionTooOld)
        }
        let moment = SentPacket.moment(of: now)
        let last = place.pointee.lastRepeat
        let distance = max(roundTrip, Self.leastRepeatDistance)
        if last != 0, Int64(moment &- last) < distance.milliseconds { return .dropped(.retransmissionThrottled) }
        place.pointee.lastRepeat = moment
        return .send(place.pointee.sequence)
    }

    /// Whether a keyframe repairs better than retransmissions, reported once; see `SpatialFilter`.
    public mutating func takeRefresh() -> Bool {
        selector.takeRefresh()
    }

    /// On a LAN the round trip rounds to zero, but a packet must still not be retransmitted twice in one turn. Receivers send NACKs at most
    /// every 20 ms (libwebrtc's NACK timer).
    static var leastRepeatDistance: TimeInterval { .milliseconds(5) }

    /// Whether retransmissions use RTX (RFC 4588) and so need a stamp of their own, and the mid.
    ///
    /// All packets of the RTX stream carry the mid: Firefox accepts no packet of that SSRC, nor reports it in transport-wide feedback, before one of
    /// them named its section (RFC 9143 section 9.2), whatever the FID group says; and a report about the media SSRC, after which the mid is omitted there,
    /// proves nothing about this one.
    public var repeatsAsRTX: Bool { section.wire.rtxSSRC != 0 }

    /// Writes the retransmission that `requestRepeat` allowed; returns its length, or nil when the history has lost the packet.
    public mutating func writeRepeat(
        _ sequence: UInt32, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard let length = retransmit(sequence, of: track, stamp: stamp, at: now, into: slot) else { return nil }
        totals.repeats &+= 1
        return length
    }

    /// Writes a packet once more, because its receiver lacks it or for a probe.
    mutating func retransmit(
        _ sequence: UInt32, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard isBound, let place = ring.place(sequence), place.pointee.epoch == numbering.epoch else { return nil }
        var sent = place.pointee
        var rtxSequence: UInt16?
        if repeatsAsRTX, hasRTXPayloadType(of: sent, track: track) {
            rtxSequence = rtxNumbers.next
            sent.sendTime = stamp.sendTime
            sent.transportSequence = stamp.transportSequence
            sent.flags.insert(.mid)
        } else if !isReproducible(sent, of: track) {
            return nil
        }
        guard let packet = section.render(sent, of: track, repeatedAs: rtxSequence, into: slot) else { return nil }
        if let rtxSequence { rtxNumbers.use(rtxSequence) }
        totals.rate.add(packet.length, at: now)
        return packet.length
    }

    /// The extended output number.
    private func number(of sent: SentPacket) -> Int64 {
        numbering.highest - Int64(UInt32(truncatingIfNeeded: numbering.highest) &- sent.sequence)
    }

    /// Whether rendering gives the same bytes again. Packets depend on negotiated parameters and on the state of the layer, which may have changed
    /// since; different bytes must not be sent under the same number on the media stream, see `SentPacket`.
    private func isReproducible(_ sent: SentPacket, of track: PublishedTrack) -> Bool {
        guard section.isUnchanged(since: number(of: sent)) else { return false }
        let layer = track.layer(Int(sent.layer))
        if sent.flags.contains(.parameterSets) { return sent.setsRevision == layer.pointee.parameterSets.revision }
        guard !sent.flags.contains(.filler), sent.mark.hasTargets else { return true }
        guard let record = SendSection.record(of: sent, in: layer) else { return false }
        return record.pointee.sequence >= layer.pointee.targetsSince
    }

    private func hasRTXPayloadType(of sent: SentPacket, track: PublishedTrack) -> Bool {
        if sent.isOwn { return section[sent.ownFormat].rtxPayloadType != FormatMapping.unmapped }
        guard let record = SendSection.record(of: sent, in: track.layer(Int(sent.layer))) else { return false }
        return section[record.pointee.format].rtxPayloadType != FormatMapping.unmapped
    }
}
