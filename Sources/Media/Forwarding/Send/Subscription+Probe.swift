import MediaControl
public import Primitives
import RTP

// The contents of a probe: retransmissions of recent packets, which a receiver may even need, otherwise padding on the same SSRC. Without an RTX
// stream, padding is sent between two frames under numbers of the media stream, as libwebrtc does.

extension Subscription {
    /// Whether padding can be sent on it.
    public var canProbe: Bool {
        kind == .video && isBound && (padsBeside || section.fillerFormat(preferring: numbering.tail.format) != nil)
    }

    /// Whether padding has a stream of its own: RTX has its own sequence numbers to use.
    public var padsBeside: Bool { section.paddingPayloadType(preferring: numbering.tail.format) != nil }

    /// Writes one probe packet of at most about `wanted` bytes; returns its length, or nil when there is nothing to write.
    ///
    /// The best fitting of the last packets is retransmitted as RTX (RFC 4588), which receivers that have it drop.
    public mutating func writeProbe(
        wanted: Int, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let padding = min(max(wanted - 28, 64), 255)
        guard padsBeside else { return writeOwnPadding(padding, of: track, stamp: stamp, at: now, into: slot) }
        if selector.active != nil, !isPaused, let sequence = probeCandidate(wanted: wanted, of: track, at: now) {
            ring.place(sequence)?.pointee.lastRepeat = SentPacket.moment(of: now)
            if let length = retransmit(sequence, of: track, stamp: stamp, at: now, into: slot) { return length }
        }
        return writePadding(padding, stamp: stamp, into: slot)
    }

    /// Minimum interval between two transmissions of one packet.
    private static let probeDistance = TimeInterval.milliseconds(500)

    /// Of the last sixteen packets the one with a length nearest to `wanted`, at most twice as long and not retransmitted recently.
    private func probeCandidate(wanted: Int, of track: PublishedTrack, at now: MonotonicTime) -> UInt32? {
        let moment = SentPacket.moment(of: now)
        var best: (sequence: UInt32, distance: Int)?
        let newest = UInt32(truncatingIfNeeded: numbering.highest)
        for back in 0..<16 {
            guard let place = ring.place(newest &- UInt32(back)), place.pointee.epoch == numbering.epoch,
                place.pointee.flags.contains(.sent), !place.pointee.isOwn
            else { continue }
            let last = place.pointee.lastRepeat
            guard last == 0 || Int64(moment &- last) >= Self.probeDistance.milliseconds else { continue }
            guard let record = SendSection.record(of: place.pointee, in: track.layer(Int(place.pointee.layer))) else {
                continue
            }
            let length = Int(record.pointee.length)
            guard length <= 2 * wanted else { continue }
            let distance = abs(length - wanted)
            if best == nil || distance < best!.distance { best = (place.pointee.sequence, distance) }
        }
        return best?.sequence
    }

    /// Writes a packet with only `count` bytes of padding (RFC 3550 section 5.1) on the RTX stream.
    private mutating func writePadding(_ count: Int, stamp: SendStamp, into slot: UnsafeMutableRawBufferPointer) -> Int?
    {
        guard let payloadType = section.paddingPayloadType(preferring: numbering.tail.format),
            let base = slot.baseAddress
        else {
            return nil
        }
        let number = rtxNumbers.next
        rtxNumbers.use(number)
        let renderer = section.paddingRenderer(payloadType: payloadType)
        var sent = SentPacket()
        sent.sendTime = stamp.sendTime
        sent.transportSequence = stamp.transportSequence
        sent.flags = .mid
        renderer.writeHeader(
            sent, timestamp: numbering.tail.timestamp, marker: false, repeatedAs: number, into: base)
        var writer = ExtensionBlockWriter(slot: base, isTwoByte: section.wire.hasLargeIDs)
        renderer.writeOwn(sent, with: &writer)
        return RTPPatch.pad(slot, length: writer.finish(), by: count)
    }

    /// Writes a packet with only `count` bytes of padding under the stream's next number; nil in the middle of a frame.
    private mutating func writeOwnPadding(
        _ count: Int, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard !held.isHolding, selector.active == nil || numbering.tail.isFrameComplete,
            let format = section.fillerFormat(preferring: numbering.tail.format),
            let timestamp = numbering.tail.isEmpty ? firstTimestamp(of: track) : numbering.tail.timestamp
        else { return nil }
        var sent = SentPacket()
        sent.sequence = selector.active == nil ? numbering.nextNumber() : numbering.insertNumber()
        sent.ownFormat = format
        sent.ownTimestamp = timestamp
        sent.flags = section.sendsMID ? [.used, .filler, .sent, .mid] : [.used, .filler, .sent]
        sent.padding = UInt8(clamping: count)
        sent.sendTime = stamp.sendTime
        sent.transportSequence = stamp.transportSequence
        sent.epoch = numbering.epoch
        ring.store(sent, at: now)
        guard let length = section.renderOwn(sent, of: nil, repeatedAs: nil, into: slot) else { return nil }
        noteWritten(sent, length: length, at: now)
        return length
    }

    /// The timestamp of the newest packet of the first layer with packets, with which a stream that has not begun would begin.
    private func firstTimestamp(of track: PublishedTrack) -> UInt32? {
        for index in 0..<track.layerCount {
            let layer = track.layer(index)
            guard let record = layer.pointee.history.record(layer.pointee.history.highest) else { continue }
            return UInt32(truncatingIfNeeded: record.pointee.timestamp)
        }
        return nil
    }
}
