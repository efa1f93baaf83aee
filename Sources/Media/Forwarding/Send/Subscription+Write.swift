import MediaControl
public import Primitives
import RTP

// The first transmission of planned packets.

/// The fields of a packet that depend on the time and the transport of its sending.
public struct SendStamp: Sendable {
    /// abs-send-time: 6.18 fixed point seconds, 24 bits.
    public var sendTime: UInt32
    public var transportSequence: UInt16

    public init(at now: MonotonicTime, transportSequence: UInt16) {
        self.init(sendTime: Self.sendTime(at: now), transportSequence: transportSequence)
    }

    /// `sendTime` as computed once per turn.
    @inlinable public init(sendTime: UInt32, transportSequence: UInt16) {
        self.sendTime = sendTime
        self.transportSequence = transportSequence
    }

    /// The value of abs-send-time at `now`.
    public static func sendTime(at now: MonotonicTime) -> UInt32 {
        UInt32(truncatingIfNeeded: NTPTime.fixedPoint(.nanoseconds(now.nanoseconds)) >> 14) & 0xff_ffff
    }
}

extension Subscription {
    /// Whether the section negotiated transport-wide feedback.
    public var promisesTransportFeedback: Bool { section.wire.hasTransportFeedback }

    /// Whether packets carry a transport-wide sequence number.
    public var usesTransportSequence: Bool { section.wire.extensions[.transportSequence] != 0 }

    /// Maximum bytes that a packet needs in a slot, without protection.
    public static let maximumLength = PacketHistory.maximumPacketLength + RTPLayout.overhead

    /// Writes a planned packet of `track` for the first time; returns its length, or nil when the history has lost it.
    ///
    /// `slot` has room for `maximumLength` bytes.
    public mutating func write(
        _ planned: SentPacket, of track: PublishedTrack, stamp: SendStamp, at now: MonotonicTime,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        var sent = planned
        sent.sendTime = stamp.sendTime
        sent.transportSequence = stamp.transportSequence
        sent.epoch = numbering.epoch
        sent.flags.insert(.sent)
        if section.sendsMID { sent.flags.insert(.mid) }
        if section.captureOffset != nil { sent.flags.insert(.captureOffset) }
        if sent.flags.contains(.parameterSets) {
            sent.setsRevision = track.layer(Int(sent.layer)).pointee.parameterSets.revision
        }
        guard let packet = section.render(sent, of: track, repeatedAs: nil, into: slot) else { return nil }
        totals.payloadBytes &+= UInt64(packet.payload)
        noteWritten(sent, length: packet.length, at: now)
        return packet.length
    }

    @inline(__always) mutating func noteWritten(_ sent: SentPacket, length: Int, at now: MonotonicTime) {
        ring.place(sent.sequence)?.pointee = sent
        totals.packets &+= 1
        totals.bytes &+= UInt64(length)
        totals.rate.add(length, at: now)
    }
}
