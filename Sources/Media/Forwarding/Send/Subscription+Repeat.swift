import MediaControl
public import Primitives

// Retransmission: from the track's history, within the turn in which the NACK came.

/// What becomes of one number of a NACK.
public enum RepeatVerdict: Sendable, Hashable {
    /// To be sent again under this extended output number.
    case send(UInt32)
    /// Not sent, because of this.
    case dropped(DropReason)
    /// The publisher's packet is missing here too; it goes out when it is repaired.
    case notYetHere
}

extension Subscription {
    /// Looks up the number `wire` of a NACK; a packet is not sent again within `roundTrip` of its last repeat.
    public mutating func requestRepeat(_ wire: UInt16, roundTrip: TimeInterval, at now: MonotonicTime) -> RepeatVerdict
    {
        totals.nacks &+= 1
        selector.noteMissing(wire)
        guard let place = ring.place(wire: wire, highest: UInt32(truncatingIfNeeded: numbering.highest)) else {
            return numbering.isOpenGap(wire) ? .notYetHere : .dropped(.retransmissionTooOld)
        }
        guard place.pointee.epoch == numbering.epoch, place.pointee.flags.contains(.sent),
            !leftVideo.contains(number(of: place.pointee))
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

    /// Whether a keyframe repairs better than repeats, reported once; see `SpatialFilter`.
    public mutating func takeRefresh() -> Bool {
        selector.takeRefresh()
    }

    /// On a LAN the round trip rounds to nothing, and a repeat is still not to be sent twice in one turn. Receivers ask at most
    /// every 20 ms (libwebrtc's NACK timer).
    static var leastRepeatDistance: TimeInterval { .milliseconds(5) }

    /// Whether repeats leave as RTX (RFC 4588) and so need a stamp of their own, and the mid.
    ///
    /// All packets of the retransmission stream carry it: Firefox takes none of that SSRC, nor reports it in transport-wide feedback, before one of
    /// them named its section (RFC 9143 section 9.2), whatever the FID group says; and a report about the media SSRC, which ends the mid there,
    /// proves nothing of this one.
    public var repeatsAsRTX: Bool { section.wire.rtxSSRC != 0 }

    /// Writes the repeat that `requestRepeat` allowed; its length, or nil when the history has lost the packet.
    public mutating func writeRepeat(
        _ sequence: UInt32, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard isBound, let place = ring.place(sequence), place.pointee.epoch == numbering.epoch else { return nil }
        var sent = place.pointee
        var rtxSequence: UInt16?
        if repeatsAsRTX, hasRTXPayloadType(of: sent, track: track) {
            rtxSequence = rtxHighest &+ 1
            sent.sendTime = stamp.sendTime
            sent.transportSequence = stamp.transportSequence
            sent.flags.insert(.mid)
        } else if !isReproducible(sent, of: track) {
            return nil
        }
        let payloadBytes = totals.payloadBytes
        guard let length = render(sent, of: track, repeatedAs: rtxSequence, into: slot) else { return nil }
        totals.payloadBytes = payloadBytes
        if let rtxSequence { rtxHighest = rtxSequence }
        totals.repeats &+= 1
        totals.rate.add(length, at: now)
        return length
    }

    /// The extended output number.
    private func number(of sent: SentPacket) -> Int64 {
        numbering.highest - Int64(UInt32(truncatingIfNeeded: numbering.highest) &- sent.sequence)
    }

    /// Whether the same bytes would come out again. What was negotiated and what a layer knows has gone into packets, and may be something else
    /// by now; under the same number on the media stream that must not leave, see `SentPacket`.
    private func isReproducible(_ sent: SentPacket, of track: PublishedTrack) -> Bool {
        guard section.isUnchanged(since: number(of: sent)) else { return false }
        let layer = track.layer(Int(sent.layer))
        if sent.flags.contains(.parameterSets) { return sent.setsRevision == layer.pointee.parameterSets.revision }
        guard !sent.flags.contains(.filler), sent.mark.hasTargets else { return true }
        guard let record = Self.record(of: sent, in: layer) else { return false }
        return record.pointee.sequence >= layer.pointee.targetsSince
    }

    private func hasRTXPayloadType(of sent: SentPacket, track: PublishedTrack) -> Bool {
        if sent.isOwn { return section[sent.ownFormat].rtxPayloadType != FormatMapping.unmapped }
        guard let record = Self.record(of: sent, in: track.layer(Int(sent.layer))) else { return false }
        return section[record.pointee.format].rtxPayloadType != FormatMapping.unmapped
    }
}
