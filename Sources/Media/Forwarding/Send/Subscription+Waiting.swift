public import Primitives

// Packets that were planned and numbered, and then queued at the pacer. Their number is always sent: a gap would be
// requested again and again, and end in a keyframe request.

/// The outcome for a queued packet.
public enum WaitingResult: Sendable, Hashable {
    /// This many bytes are in the slot.
    case written(Int)
    /// Padding of this many bytes replaces it: the history has lost it, or another track is bound by now.
    case filled(Int, breaksPicture: Bool)
    /// It was sent already, or its number is too old to matter.
    case gone

    /// Bytes in the slot; nil if there is nothing to send.
    public var length: Int? {
        switch self {
        case .written(let length), .filled(let length, _): length
        case .gone: nil
        }
    }
}

extension Subscription {
    /// Writes the packet planned under `sequence`, or padding in its place; `track` is nil if none is bound any more.
    public mutating func writeWaiting(
        _ sequence: UInt32, of track: PublishedTrack?, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> WaitingResult {
        guard let place = ring.place(sequence), !place.pointee.flags.contains(.sent) else { return .gone }
        let planned = place.pointee
        let isPresent = isBound && planned.epoch == numbering.epoch
        if isPresent, let track, let length = write(planned, of: track, stamp: stamp, at: now, into: slot) {
            return .written(length)
        }
        guard let length = writeFiller(insteadOf: planned, stamp: stamp, at: now, into: slot) else { return .gone }
        return .filled(length, breaksPicture: isPresent)
    }

    /// Writes padding under the number of a planned packet that cannot be sent; returns its length, or nil if no payload type is negotiated.
    public mutating func writeFiller(
        insteadOf planned: SentPacket, stamp: SendStamp, at now: MonotonicTime, into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        guard let format = section.fillerFormat(preferring: numbering.tail.format) else { return nil }
        var sent = planned
        sent.flags = [.used, .filler, .sent]
        sent.ownFormat = format
        sent.ownTimestamp = numbering.tail.timestamp
        sent.padding = 0
        sent.sendTime = stamp.sendTime
        sent.transportSequence = stamp.transportSequence
        sent.epoch = numbering.epoch
        guard let length = section.renderOwn(sent, of: nil, repeatedAs: nil, into: slot) else { return nil }
        noteWritten(sent, length: length, at: now)
        return length
    }
}
