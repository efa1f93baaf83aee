import MediaControl
public import Primitives
import RTP

// Bytes of planned packets.

/// What a packet carries because of the moment and the transport it leaves by.
public struct SendStamp: Sendable {
    /// abs-send-time: 6.18 fixed point seconds, 24 bits.
    public var sendTime: UInt32
    public var transportSequence: UInt16

    public init(at now: MonotonicTime, transportSequence: UInt16) {
        self.init(sendTime: Self.sendTime(at: now), transportSequence: transportSequence)
    }

    /// `sendTime` as computed once a turn.
    @inlinable public init(sendTime: UInt32, transportSequence: UInt16) {
        self.sendTime = sendTime
        self.transportSequence = transportSequence
    }

    /// What abs-send-time says at `now`.
    public static func sendTime(at now: MonotonicTime) -> UInt32 {
        UInt32(truncatingIfNeeded: NTPTime.fixedPoint(.nanoseconds(now.nanoseconds)) >> 14) & 0xff_ffff
    }
}

extension Subscription {
    /// Whether the section agreed on transport-wide feedback.
    public var promisesTransportFeedback: Bool { section.wire.hasTransportFeedback }

    /// Whether packets carry a transport-wide sequence number.
    public var usesTransportSequence: Bool { section.wire.extensions[.transportSequence] != 0 }

    /// The most bytes that any packet takes in a slot, protection not counted.
    public static let maximumLength = PacketHistory.maximumPacketLength + RTPLayout.overhead

    /// Writes a planned packet of `track` for the first time; its length, or nil when the history has lost it.
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
        guard let length = render(sent, of: track, repeatedAs: nil, into: slot) else { return nil }
        noteWritten(sent, length: length, at: now)
        return length
    }

    @inline(__always) mutating func noteWritten(_ sent: SentPacket, length: Int, at now: MonotonicTime) {
        ring.place(sent.sequence)?.pointee = sent
        totals.packets &+= 1
        totals.bytes &+= UInt64(length)
        totals.rate.add(length, at: now)
    }

    /// Makes the bytes of `sent`; nil when its track's history has lost the packet.
    @inline(__always)
    mutating func render(
        _ sent: SentPacket, of track: PublishedTrack, repeatedAs rtxSequence: UInt16?,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        precondition(slot.count >= Self.maximumLength, "slot too small for any packet")
        guard !sent.isOwn else {
            return renderOwn(sent, of: track, repeatedAs: rtxSequence, into: slot)
        }
        let layer = track.layer(Int(sent.layer))
        guard let record = Self.record(of: sent, in: layer) else { return nil }
        let renderer = section.renderer(for: record.pointee.format)
        guard renderer.mapping.isMapped else { return nil }
        let packet = layer.pointee.history.packet(record)
        totals.payloadBytes &+= UInt64(packet.count &- Int(record.pointee.payloadOffset))
        return renderer.write(
            sent, record: record, packet: packet, of: layer, repeatedAs: rtxSequence, into: slot.baseAddress!)
    }

    /// The stored packet behind a number of the output.
    @inline(__always)
    static func record(of sent: SentPacket, in layer: UnsafeMutablePointer<ReceiveLayer>) -> UnsafePointer<
        PacketRecord
    >? {
        // The nearest number to the newest one that has these low bits.
        let behind = Int32(bitPattern: UInt32(truncatingIfNeeded: layer.pointee.history.highest) &- sent.source)
        return layer.pointee.history.record(layer.pointee.history.highest &- Int64(behind))
    }

    /// A packet that the server makes itself: cached parameter sets, or padding in the place of a number that stays empty.
    func renderOwn(
        _ sent: SentPacket, of track: PublishedTrack?, repeatedAs rtxSequence: UInt16?,
        into slot: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let renderer = section.renderer(for: sent.ownFormat)
        guard renderer.mapping.isMapped, let base = slot.baseAddress else { return nil }
        renderer.writeHeader(sent, timestamp: sent.ownTimestamp, marker: false, repeatedAs: rtxSequence, into: base)
        var writer = ExtensionBlockWriter(slot: base, isTwoByte: section.wire.hasLargeIDs)
        renderer.writeOwn(sent, with: &writer)
        var offset = writer.finish()
        if rtxSequence != nil {
            base.storeBytes(
                of: UInt16(truncatingIfNeeded: sent.sequence).bigEndian, toByteOffset: offset, as: UInt16.self)
            offset += RTPLayout.originalSequence
        }
        if sent.flags.contains(.filler) {
            return RTPPatch.pad(slot, length: offset, by: max(1, Int(sent.padding)))
        }
        let room = UnsafeMutableRawBufferPointer(rebasing: slot[offset...])
        let sets = track?.layer(Int(sent.layer)).pointee.parameterSets.writeSTAPA(into: room)
        return sets.map { offset + $0 }
    }
}
