import MediaControl
import PayloadFormats
import Primitives

/// One subscription's packets as one numbered stream: the number of each, the packet that was planned and sent under it, and the packet that is held.
///
/// ```text
/// next packet ── append ── number, layer mark ── held, if its picture may end here ── log, the turn's list
/// late packet ── appendLate ── the number that was reserved for it, or padding under that number
/// number ── log ── repeat, probe, packet that waited at the pacer
/// ```
struct OutputStream: ~Copyable {
    private(set) var numbering: OutputNumbering
    private var log: SentPacketRing
    /// The end of a spatial layer, which may be the end of its picture; nil while none is held.
    private var held: HeldPacket?

    /// Numbers start at `number` + 1; `keepsRepeats`: audio may be retransmitted, video always.
    init(_ kind: MediaKind, after number: Int64, keepsRepeats: Bool) {
        let isVideo = kind == .video
        numbering = OutputNumbering(after: number, ranges: isVideo ? 32 : 4)
        log = SentPacketRing(
            maximum: isVideo ? SentPacketRing.maximumVideo : (keepsRepeats ? SentPacketRing.maximumAudio : 0))
    }

    /// Prefetches the memory that the next number will use.
    @inline(__always) mutating func prefetch() {
        numbering.prefetch()
        log.prefetch(UInt32(truncatingIfNeeded: numbering.highest &+ 1))
    }

    /// Bytes of memory besides the struct itself.
    var memoryBytes: Int { log.memoryBytes + numbering.memoryBytes }

    // MARK: - Where it comes from

    /// Another track is bound; the stream that the subscriber sees continues.
    mutating func beginBinding() { numbering.beginBinding() }

    /// No track is bound any more.
    mutating func endBinding() { numbering.endBinding() }

    /// Forwards `layer` from the packet at `start` on, after its parameter sets if the packet has none.
    mutating func begin(
        _ layer: UnsafeMutablePointer<ReceiveLayer>, from start: Int64, _ record: UnsafePointer<PacketRecord>,
        mapping: FormatMapping, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        if mapping.codec == .h264, !record.pointee.summary.containsParameterSets {
            appendParameterSets(ahead: record, of: layer, mapping: mapping, at: now, into: &list)
        }
        numbering.begin(layer, from: start, record, mapping: mapping)
    }

    /// The layer that was forwarded is left, if there was one: another source continues from its last packet.
    mutating func leave(_ layer: UnsafeMutablePointer<ReceiveLayer>?) {
        // While no layer is forwarded nothing would release the held packet, and it would stay due for ever. It is not sent, and leaves no gap.
        if let packet = held.take()?.packet { numbering.returnNumber(packet.sequence) }
        remember(layer)
    }

    /// The same for a layer that another one replaces at once.
    mutating func remember(_ layer: UnsafeMutablePointer<ReceiveLayer>?) {
        if let layer { numbering.remember(layer) }
    }

    // MARK: - The next packet

    /// The publisher used the number `sequence` for something that is not forwarded: later numbers shift down.
    @inline(__always) mutating func closeGap(_ sequence: Int64) { numbering.closeGap(sequence) }

    /// Numbers or timestamps that begin anew do so with the first packet that was stored, forwarded or not.
    @inline(__always)
    private mutating func followRestart(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        in section: borrowing SendSection
    ) {
        guard !record.pointee.flags.isDisjoint(with: [.discontinuity, .newTimeline]) else { return }
        numbering.rebase(at: sequence, record, of: layer, mapping: section[record.pointee.format])
    }

    /// Drops a packet of a layer that the subscriber does not get. `isFirst`: it begins a frame of which nothing is sent.
    ///
    /// VP8's picture ids close up, because libwebrtc's receivers wait for a missing picture id. VP9's and the dependency descriptor's do
    /// not, because later frames identify their references by distance.
    mutating func omit(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        in section: borrowing SendSection, isFirst: Bool
    ) {
        followRestart(sequence, record, of: layer, in: section)
        numbering.closeGap(sequence)
        if isFirst, numbering.tail.codec == .vp8 { numbering.skipPictureID() }
    }

    /// Appends a packet that is ahead of all others. `caps` are the layers that are forwarded, `announcement` is what its descriptor announces about them.
    @inline(__always)
    mutating func append(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        in section: inout SendSection, caps: LayerCaps, announcement: LayerMark?, at now: MonotonicTime,
        into list: inout WorkList<SentPacket>
    ) {
        followRestart(sequence, record, of: layer, in: section)
        if held != nil { releaseHeld(of: layer, in: &section, at: now, into: &list) }
        var sent = numbering.number(sequence, record, caps: caps)
        if let announcement {
            sent.mark(announcement)
        } else if record.pointee.summary.hasDescriptor, joinsLayers(in: &section) {
            joinToBefore(&sent, sequence, record, of: layer)
        }
        let codec = numbering.tail.codec
        if codec == .vp9 || codec == .av1, !numbering.tail.isFrameComplete, record.pointee.summary.endsFrame {
            guard record.pointee.summary.spatialLayer >= Int(caps.spatial) else {
                return held = HeldPacket(packet: sent, since: now)
            }
            sent.flags.insert(.marker)
            numbering.completeFrame()
        }
        append(sent, at: now, into: &list)
    }

    /// The parameter sets precede the keyframe as a packet of their own.
    private mutating func appendParameterSets(
        ahead record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>, mapping: FormatMapping,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        let timestamp =
            UInt32(truncatingIfNeeded: record.pointee.timestamp)
            &+ numbering.timestampDelta(to: record, of: layer, mapping: mapping)
        let sent = SentPacket(
            sequence: numbering.nextNumber(),
            content: .parameterSets(
                .init(timestamp: timestamp, format: record.pointee.format),
                revision: layer.pointee.parameterSets.revision),
            layer: UInt8(layer.pointee.index))
        append(sent, at: now, into: &list)
    }

    /// Appends a packet to the turn's list and stores it for retransmission.
    @inline(__always)
    private mutating func append(
        _ planned: SentPacket, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        var sent = planned
        // It may be queued at the pacer until after the next binding.
        sent.epoch = numbering.epoch
        log.store(sent, at: now)
        list.append(sent)
    }

    // MARK: - Held packets

    /// When it must be called again even without new packets.
    var heldUntil: MonotonicTime { held?.deadline ?? .distantFuture }

    /// Whether the held packet has waited long enough for the rest of its picture.
    @inline(__always) func isHeldDue(at now: MonotonicTime) -> Bool { held?.isDue(at: now) ?? false }

    /// Releases the held packet of `layer`, because the next packet arrived or it has waited long enough.
    mutating func releaseHeld(
        of layer: UnsafeMutablePointer<ReceiveLayer>, in section: inout SendSection, at now: MonotonicTime,
        into list: inout WorkList<SentPacket>
    ) {
        releaseHeld(endsPicture: heldEndsPicture(in: layer), isJoined: joinsLayers(in: &section), at: now, into: &list)
    }

    /// Releases the held packet, if there is one, as the end of its picture: another layer follows.
    mutating func endHeld(at now: MonotonicTime, into list: inout WorkList<SentPacket>) {
        releaseHeld(endsPicture: true, isJoined: false, at: now, into: &list)
    }

    /// Releases the held packet, if there is one, with the marker if it ends its picture.
    private mutating func releaseHeld(
        endsPicture: Bool, isJoined: Bool, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard var sent = held.take()?.packet else { return }
        if endsPicture {
            sent.flags.insert(.marker)
            numbering.completeFrame()
        } else if isJoined {
            sent.join(.next)
        }
        append(sent, at: now, into: &list)
    }

    /// Whether the held packet ends its picture, judged by what follows: nothing, or another picture. A missing next packet leaves it
    /// open, because it may be repaired.
    private func heldEndsPicture(in layer: UnsafeMutablePointer<ReceiveLayer>) -> Bool {
        layer.pointee.endsPicture(numbering.tail.sourceSequence, numbering.tail.sourceTimestamp)
    }

    // MARK: - Late packets

    // The publisher's network lost them and they were repaired: they follow the decision that was made about their frame meanwhile.

    /// A frame rarely has more packets than this on either side of a missing one; packets further away are not checked.
    private static var reach: Int64 { 16 }

    /// Appends a late packet under the number that `range` reserved for it, once. `caps` applied to its frame.
    mutating func appendLate(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        in section: inout SendSection, range: UnsafeMutablePointer<NumberRange>, caps: LayerCaps,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        if wasLeftOut(sequence, record, of: layer, caps: caps) {
            return fill(layer.pointee.index, sequence, at: now, into: &list)
        }
        var sent = numbering.packet(sequence, in: range)
        guard log.place(sent.sequence) == nil, held?.packet.sequence != sent.sequence,
            section[record.pointee.format].isMapped
        else { return }
        endLayer(in: &sent, sequence, record, of: layer, caps: caps, isJoined: joinsLayers(in: &section))
        // The subscriber has seen the gap: this also answers its requests in transit.
        sent.lastRepeat = SentPacket.moment(of: now)
        append(sent, at: now, into: &list)
    }

    /// A missing number turns out not to be forwarded: padding closes the gap, so that it is not requested again.
    mutating func fill(
        _ layer: Int, _ sequence: Int64, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard let range = numbering.range(layer: layer, source: sequence) else { return }
        let sent = numbering.packet(sequence, in: range)
        guard log.isKeeping, log.place(sent.sequence) == nil else { return }
        let tail = numbering.tail
        append(sent.filler(.init(timestamp: tail.timestamp, format: tail.format)), at: now, into: &list)
    }

    /// Whether a late packet belongs to a frame or a layer that was dropped: then a part of it must not follow, because the
    /// receiver would wait for the rest.
    ///
    /// While it was missing its frame was unknown, so a number was reserved for it.
    private func wasLeftOut(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        caps: LayerCaps
    ) -> Bool {
        let summary = record.pointee.summary
        guard summary.temporalLayer > 0 || summary.spatialLayer > 0 else { return false }
        var isBegun = false
        for distance in 1...Self.reach {
            for other in [sequence - distance, sequence + distance] {
                // Higher spatial layers have caps of their own.
                guard let neighbour = layer.pointee.history.record(other),
                    neighbour.pointee.timestamp == record.pointee.timestamp,
                    neighbour.pointee.summary.spatialLayer <= summary.spatialLayer
                else { continue }
                guard let range = numbering.range(layer: layer.pointee.index, source: other) else { return true }
                // A layer that was partly sent is completed. A neighbour that was late itself proves nothing.
                guard let place = log.place(numbering.packet(other, in: range).sequence) else { continue }
                if place.pointee.isPadding { return true }
                if neighbour.pointee.summary.spatialLayer == summary.spatialLayer { return false }
                // The picture was ended with a layer below. Without a marker there, that layer's own end may be missing, too: the caps decide.
                if place.pointee.flags.contains(.marker) { return true }
                isBegun = true
            }
        }
        return summary.spatialLayer > Int(caps.spatial) || !isBegun && summary.temporalLayer > Int(caps.temporal)
    }

    /// Ends the picture or continues with its next layer, if a late packet ends a layer. The subscriber may not get the layers above,
    /// or the publisher may have dropped them.
    private func endLayer(
        in sent: inout SentPacket, _ sequence: Int64, _ record: UnsafePointer<PacketRecord>,
        of layer: UnsafeMutablePointer<ReceiveLayer>, caps: LayerCaps, isJoined: Bool
    ) {
        guard numbering.tail.codec == .vp9 || numbering.tail.codec == .av1 else { return }
        if record.pointee.summary.hasDescriptor, isJoined { joinToBefore(&sent, sequence, record, of: layer) }
        guard record.pointee.summary.endsFrame, !record.pointee.hasMarker else { return }
        if record.pointee.summary.spatialLayer >= Int(caps.spatial)
            || layer.pointee.endsPicture(sequence, record.pointee.timestamp)
        {
            sent.flags.insert(.marker)
        } else if isJoined {
            sent.join(.next)
        }
    }

    // MARK: - Joined layers

    // AV1's spatial layers for a subscriber that negotiated no dependency descriptor: one frame per temporal unit, see `AV1Joining`.

    /// The subscriber cannot distinguish AV1's layers.
    @inline(__always) private func joinsLayers(in section: inout SendSection) -> Bool {
        numbering.tail.codec == .av1 && !section.hasDependencyDescriptor
    }

    /// Joins a packet that begins a layer to the layer below.
    private func joinToBefore(
        _ packet: inout SentPacket, _ sequence: Int64, _ record: UnsafePointer<PacketRecord>,
        of layer: UnsafeMutablePointer<ReceiveLayer>
    ) {
        guard record.pointee.summary.startsFrame, record.pointee.summary.spatialLayer > 0,
            continuesPicture(sequence, record, of: layer)
        else { return }
        packet.join(.before)
    }

    /// Whether the packet before `sequence` is of the same picture and did not end it. If it is missing, that is likely.
    private func continuesPicture(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>
    ) -> Bool {
        var before = sequence - 1
        while layer.pointee.sequences.contains(before) {
            if let neighbour = layer.pointee.history.record(before) {
                guard neighbour.pointee.timestamp == record.pointee.timestamp,
                    let range = numbering.range(layer: layer.pointee.index, source: before)
                else { return false }
                let place = log.place(numbering.packet(before, in: range).sequence)
                return !(place?.pointee.flags.contains(.marker) ?? false)
            }
            before -= 1
        }
        return true
    }

    // MARK: - What was sent

    /// Whether the packet is of the track that is bound now.
    func isOfBinding(_ sent: SentPacket) -> Bool { sent.epoch == numbering.epoch }

    /// The packet that was planned under `sequence` and not sent yet; nil also when its number is too old to matter.
    func unsent(_ sequence: UInt32) -> SentPacket? {
        guard let place = log.place(sequence), !place.pointee.flags.contains(.sent) else { return nil }
        return place.pointee
    }

    /// The packet under `sequence`, if it is of the track that is bound now.
    func packet(_ sequence: UInt32) -> SentPacket? {
        guard let place = log.place(sequence), isOfBinding(place.pointee) else { return nil }
        return place.pointee
    }

    /// Records how a packet was written.
    @inline(__always) mutating func note(_ sent: SentPacket) { log.place(sent.sequence)?.pointee = sent }

    /// On a LAN the round trip rounds to zero, but a packet must still not be retransmitted twice in one turn. Receivers send NACKs at most
    /// every 20 ms (libwebrtc's NACK timer).
    private static var leastRepeatDistance: TimeSpan { .milliseconds(5) }

    /// Looks up the number `wire` of a NACK; a packet is not retransmitted twice within `roundTrip`, nor one that `isNeedless`.
    mutating func requestRepeat(
        _ wire: UInt16, roundTrip: TimeSpan, at now: MonotonicTime, unless isNeedless: (SentPacket, Int64) -> Bool
    ) -> RepeatVerdict {
        guard let place = log.place(wire: wire, highest: UInt32(truncatingIfNeeded: numbering.highest)) else {
            if let number = numbering.number(wire: wire), log.hasOverwritten(UInt32(truncatingIfNeeded: number)) {
                return .gone
            }
            return numbering.isOpenGap(wire) ? .notYetHere : .dropped(.retransmissionTooOld)
        }
        guard isOfBinding(place.pointee), place.pointee.flags.contains(.sent),
            !isNeedless(place.pointee, numbering.number(of: place.pointee))
        else {
            return .dropped(.retransmissionTooOld)
        }
        let distance = max(roundTrip, Self.leastRepeatDistance)
        if let since = place.pointee.sinceRepeat(at: now), since.milliseconds < distance.milliseconds {
            return .dropped(.retransmissionThrottled)
        }
        place.pointee.lastRepeat = SentPacket.moment(of: now)
        return .send(place.pointee.sequence)
    }

    // MARK: - Probes

    /// Minimum interval between two transmissions of one packet.
    private static let probeDistance = TimeSpan.milliseconds(500)

    /// Of the last sixteen packets the one with a length nearest to `wanted`, at most twice as long and not retransmitted recently; it is
    /// retransmitted now.
    mutating func consumeProbe(wanted: Int, of track: PublishedTrack, at now: MonotonicTime) -> UInt32? {
        var best: (sequence: UInt32, distance: Int)?
        let newest = UInt32(truncatingIfNeeded: numbering.highest)
        for back in 0..<16 {
            guard let place = log.place(newest &- UInt32(back)), isOfBinding(place.pointee),
                place.pointee.flags.contains(.sent), let packet = place.pointee.forwarded
            else { continue }
            guard place.pointee.sinceRepeat(at: now).map({ $0 >= Self.probeDistance }) ?? true,
                let record = SendSection.record(of: packet, in: track.layer(Int(place.pointee.layer)))
            else { continue }
            let length = Int(record.pointee.length)
            guard length <= 2 * wanted else { continue }
            let distance = abs(length - wanted)
            if distance < best?.distance ?? .max { best = (place.pointee.sequence, distance) }
        }
        guard let best else { return nil }
        log.place(best.sequence)?.pointee.lastRepeat = SentPacket.moment(of: now)
        return best.sequence
    }

    /// Whether padding may use the next number: nothing is held, and the forwarded layer, if there is one, has no incomplete frame.
    func isBetweenFrames(whileForwarding: Bool) -> Bool {
        held == nil && (!whileForwarding || numbering.tail.isFrameComplete)
    }

    /// Gives a packet that the server generates the stream's next number and stores it; between frames.
    mutating func insert(_ sent: inout SentPacket, whileForwarding: Bool, at now: MonotonicTime) {
        sent.sequence = whileForwarding ? numbering.insertNumber() : numbering.nextNumber()
        sent.epoch = numbering.epoch
        log.store(sent, at: now)
    }
}
