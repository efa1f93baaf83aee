import MediaControl
import PayloadFormats
import Primitives

// Output numbers: dense where the publisher left numbers out on purpose, with a gap where a packet is missing and may still come.

extension Subscription {
    /// Begins a range with the packet at `start` of `layer`: sequence, timestamp and frame numbers go on from what was sent last.
    mutating func begin(
        _ layer: UnsafeMutablePointer<ReceiveLayer>, from start: Int64, at now: MonotonicTime,
        into list: inout WorkList<SentPacket>
    ) {
        guard let record = layer.pointee.history.record(start) else { return }
        let packet = layer.pointee.history.packet(record)
        let mapping = section[record.pointee.format]
        selector.active = Int8(layer.pointee.index)
        selector.spatialCap = selector.spatialTarget
        selector.spatialSince = record.pointee.timestamp
        selector.temporal.begin(at: record.pointee.timestamp)
        var range = NumberRange()
        range.layer = UInt8(layer.pointee.index)
        range.first = start
        range.last = start - 1
        range.timestampDelta = timestampDelta(to: record, of: layer, mapping: mapping)
        continueFrameNumbers(&range, record: record, packet: packet, codec: mapping.codec)
        let timestamp = UInt32(truncatingIfNeeded: record.pointee.timestamp) &+ range.timestampDelta
        if mapping.codec == .h264, !record.pointee.summary.containsParameterSets {
            appendParameterSets(
                format: record.pointee.format, layer: range.layer, timestamp: timestamp, at: now, into: &list)
        }
        range.sequenceDelta = start - (highest + 1)
        ranges.begin(range)
        tail.codec = mapping.codec
    }

    /// The parameter sets go ahead of the keyframe as a packet of their own.
    private mutating func appendParameterSets(
        format: UInt8, layer: UInt8, timestamp: UInt32, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        highest += 1
        var sent = SentPacket()
        sent.sequence = UInt32(truncatingIfNeeded: highest)
        sent.ownFormat = format
        sent.ownTimestamp = timestamp
        sent.layer = layer
        sent.flags = [.used, .parameterSets]
        append(sent, at: now, into: &list)
    }

    /// What must be added to the new source's timestamps, so that time goes on as it did at the publisher.
    ///
    /// In order of trust: the same stream's own clock, the sender reports of one publisher, the clock of arrivals. The first two are
    /// believed only where they are within a second of the third.
    func timestampDelta(
        to record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>, mapping: FormatMapping
    ) -> UInt32 {
        guard !tail.isEmpty else { return 0 }
        let rate = Int64(max(1, mapping.clockRate))
        var ticks = Self.ticks(of: record.pointee.arrival - tail.arrival, rate: rate)
        if tail.epoch == epoch, !record.pointee.flags.contains(.newTimeline) {
            var byClock: Int64?
            if tail.layer == layer.pointee.index {
                byClock = record.pointee.timestamp &- tail.sourceTimestamp
            } else if let new = layer.pointee.clock, let old = tail.clock {
                let elapsed =
                    new.moment(of: record.pointee.timestamp, clockRate: rate)
                    - old.moment(of: tail.sourceTimestamp, clockRate: rate)
                byClock = Self.ticks(of: elapsed, rate: rate)
            }
            if let byClock, (byClock &- ticks).magnitude < rate.magnitude { ticks = byClock }
        }
        let next = tail.timestamp &+ UInt32(truncatingIfNeeded: max(1, ticks))
        return next &- UInt32(truncatingIfNeeded: record.pointee.timestamp)
    }

    private static func ticks(of interval: TimeInterval, rate: Int64) -> Int64 {
        // Rounded; in microseconds, so that years fit.
        (interval.nanoseconds / 1_000 &* rate &+ 500_000) / 1_000_000
    }

    /// Sets the deltas of picture id, TL0PICIDX, KEYIDX and frame number: each goes on by one.
    private func continueFrameNumbers(
        _ range: inout NumberRange, record: UnsafePointer<PacketRecord>, packet: UnsafeRawBufferPointer, codec: Codec
    ) {
        let payload = UnsafeRawBufferPointer(rebasing: packet[Int(record.pointee.payloadOffset)...])
        let numbers = FrameNumbers(codec: codec, payload: payload)
        if let last = tail.picture, numbers.pictureOffset >= 0 { range.pictureDelta = last &+ 1 &- numbers.picture }
        if let last = tail.temporalZero, numbers.temporalZeroOffset >= 0 {
            range.temporalZeroDelta = last &+ 1 &- numbers.temporalZero
        }
        if let last = tail.keyIndex, numbers.keyIndexOffset >= 0 {
            range.keyIndexDelta = (last &+ 1 &- numbers.keyIndex) & 0x1f
        }
        if let last = tail.frame, let number = FrameNumbers.descriptorNumber(record, in: packet) {
            range.frameDelta = last &+ 1 &- number
        }
    }

    /// Numbers one packet of the active layer.
    @inline(__always)
    mutating func forward(
        _ arrival: Arrival, of layer: UnsafeMutablePointer<ReceiveLayer>, at now: MonotonicTime,
        into list: inout WorkList<SentPacket>
    ) {
        let range = ranges.current
        let isLate = arrival.sequence <= range.pointee.last || arrival.sequence < range.pointee.first
        if arrival.isGap {
            return isLate
                ? fill(Int(arrival.layer), arrival.sequence, at: now, into: &list) : closeGap(arrival.sequence)
        }
        guard let record = layer.pointee.history.record(arrival.sequence) else { return }
        if isLate { return forwardLate(arrival.sequence, of: layer, record: record, at: now, into: &list) }
        let mapping = section[record.pointee.format]
        guard mapping.takes(record.pointee.flags), kind == .audio || mapping.codec == tail.codec else {
            return leave(layer)
        }
        if kind == .video {
            let isNewPicture = record.pointee.timestamp != tail.sourceTimestamp
            if drops(record, isNewPicture: isNewPicture) { return closeGap(arrival.sequence) }
            if selector.temporal.drops(record, isNewPicture: isNewPicture) { return omit(arrival.sequence, record) }
        }
        if !record.pointee.flags.isDisjoint(with: [.discontinuity, .newTimeline]) {
            rebase(at: arrival.sequence, record: record, of: layer, mapping: mapping)
        }
        if held.isHolding { releaseHeld(endsPicture: heldEndsPicture(in: layer), at: now, into: &list) }
        number(arrival.sequence, record: record, of: layer, at: now, into: &list)
    }

    /// The next number for a packet that is ahead of all others.
    @inline(__always)
    private mutating func number(
        _ sequence: Int64, record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        let range = currentRange(from: sequence)
        range.pointee.last = sequence
        let output = range.pointee.output(sequence)
        if output > highest { highest = output }
        var sent = sentPacket(sequence, in: range.pointee)
        if record.pointee.summary.hasDescriptor { markLayers(in: &sent, sequence, record, of: layer) }
        tail.timestamp = UInt32(truncatingIfNeeded: record.pointee.timestamp) &+ range.pointee.timestampDelta
        tail.sourceTimestamp = record.pointee.timestamp
        tail.sourceSequence = sequence
        tail.arrival = record.pointee.arrival
        tail.layer = Int(range.pointee.layer)
        tail.epoch = epoch
        tail.format = record.pointee.format
        tail.isEmpty = false
        tail.isFrameComplete = record.pointee.hasMarker
        if kind == .video, !tail.isFrameComplete, record.pointee.summary.endsFrame,
            tail.codec == .vp9 || tail.codec == .av1
        {
            if record.pointee.summary.spatialLayer >= Int(selector.spatialCap) {
                sent.flags.insert(.marker)
                tail.isFrameComplete = true
            } else {
                return held.hold(sent, at: now)
            }
        }
        append(sent, at: now, into: &list)
    }

    /// Whether the packet belongs to a spatial layer that the subscriber does not get.
    ///
    /// The cap comes down with the next picture and goes up with the next keyframe, where every layer can be decoded from.
    @inline(__always)
    private mutating func drops(_ record: UnsafePointer<PacketRecord>, isNewPicture: Bool) -> Bool {
        if selector.spatialCap != selector.spatialTarget, isNewPicture,
            selector.spatialTarget < selector.spatialCap || record.pointee.summary.isKeyframe
        {
            noteGivenUp()
            selector.spatialCap = selector.spatialTarget
            selector.spatialSince = record.pointee.timestamp
        }
        let layer = record.pointee.summary.spatialLayer
        if layer > Int(selector.spatialCap) { return true }
        if layer > Int(selector.topSpatial) { selector.topSpatial = UInt8(clamping: layer) }
        if selector.refreshBefore != nil, isNewPicture, record.pointee.summary.isKeyframe {
            selector.refreshBefore = nil
        }
        return false
    }

    /// Spatial layers are given up with the next picture, if there are any.
    private mutating func noteGivenUp() {
        guard selector.spatialTarget < selector.topSpatial else { return }
        selector.topSpatial = selector.spatialTarget
        selector.refreshBefore = highest
    }

    /// Leaves out a packet of a temporal layer that the subscriber does not get.
    ///
    /// VP8's picture ids close up: libwebrtc's receivers wait for a picture id that is missing. VP9's and the dependency descriptor's do
    /// not, because later frames name those they refer to by distance.
    private mutating func omit(_ sequence: Int64, _ record: UnsafePointer<PacketRecord>) {
        closeGap(sequence)
        if selector.temporal.omit(record), tail.codec == .vp8 { ranges.current.pointee.pictureDelta &-= 1 }
    }

    /// The publisher goes on with a format that cannot follow the last one: wait for a keyframe of one that can be sent.
    private mutating func leave(_ layer: UnsafeMutablePointer<ReceiveLayer>) {
        // Nothing would let it go while no layer is forwarded, and it would be due for ever.
        abandonHeld()
        rememberNumbers(of: layer)
        selector.stop()
    }

    /// Begins a range where the publisher's numbers or timestamps have no relation to the ones before.
    private mutating func rebase(
        at sequence: Int64, record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        mapping: FormatMapping
    ) {
        var range = ranges.current.pointee
        let isFresh = range.last < range.first
        // `begin` has just gone on from what was sent last; what was sent last is not of this range.
        if isFresh, sequence == range.first { return }
        if !isFresh { rememberNumbers(of: layer) }
        range.first = sequence
        range.last = sequence - 1
        if record.pointee.flags.contains(.discontinuity) {
            range.sequenceDelta = sequence - (highest + 1)
            let packet = layer.pointee.history.packet(record)
            continueFrameNumbers(&range, record: record, packet: packet, codec: mapping.codec)
        }
        if record.pointee.flags.contains(.newTimeline) {
            range.timestampDelta = timestampDelta(to: record, of: layer, mapping: mapping)
        }
        ranges.begin(range)
    }

    /// Gives the next number to a packet that is ahead of all others of its range.
    @inline(__always)
    func sentPacket(_ sequence: Int64, in range: borrowing NumberRange) -> SentPacket {
        var sent = SentPacket()
        sent.sequence = UInt32(truncatingIfNeeded: range.output(sequence))
        sent.source = UInt32(truncatingIfNeeded: sequence)
        sent.timestampDelta = range.timestampDelta
        sent.pictureDelta = range.pictureDelta
        sent.frameDelta = range.frameDelta
        sent.temporalZeroDelta = range.temporalZeroDelta
        sent.mark = LayerMark(keyIndexDelta: range.keyIndexDelta)
        sent.layer = range.layer
        sent.flags = .used
        return sent
    }

    /// A packet that comes late: the number that was left for it, once.
    mutating func forwardLate(
        _ sequence: Int64, of layer: UnsafeMutablePointer<ReceiveLayer>, record: UnsafePointer<PacketRecord>,
        at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard let range = ranges.find(layer: UInt8(layer.pointee.index), source: sequence) else { return }
        let caps = self.caps(of: record, layer, in: range)
        if kind == .video, wasLeftOut(sequence, record, of: layer, caps: caps) {
            return fill(layer.pointee.index, sequence, at: now, into: &list)
        }
        var sent = sentPacket(sequence, in: range.pointee)
        guard ring.place(sent.sequence) == nil, !held.isHolding(sent.sequence), section[record.pointee.format].isMapped
        else { return }
        if kind == .video { endLayer(in: &sent, sequence, record, of: layer, caps: caps) }
        // The subscriber has seen the gap: its requests that are on their way are answered by this.
        sent.lastRepeat = SentPacket.moment(of: now)
        append(sent, at: now, into: &list)
    }

    /// A missing number turns out to be one that is not forwarded: padding closes the gap, so that nobody asks for it again.
    private mutating func fill(
        _ layer: Int, _ sequence: Int64, at now: MonotonicTime, into list: inout WorkList<SentPacket>
    ) {
        guard let range = ranges.find(layer: UInt8(layer), source: sequence) else { return }
        var sent = sentPacket(sequence, in: range.pointee)
        guard ring.isKeeping, ring.place(sent.sequence) == nil else { return }
        sent.flags = [.used, .filler]
        sent.ownFormat = tail.format
        sent.ownTimestamp = tail.timestamp
        append(sent, at: now, into: &list)
    }

    /// Puts a packet on the turn's list and keeps it for repeats.
    @inline(__always)
    mutating func append(_ planned: SentPacket, at now: MonotonicTime, into list: inout WorkList<SentPacket>) {
        var sent = planned
        // It may wait at the pacer until after the next binding.
        sent.epoch = epoch
        ring.store(sent, at: now)
        list.append(sent)
    }

    /// The number `sequence` was spent by the publisher on something that is not forwarded: numbers behind it move up.
    mutating func closeGap(_ sequence: Int64) {
        guard ranges.count > 0 else { return }
        let current = ranges.current
        guard sequence > current.pointee.last else { return }
        var next = current.pointee
        if current.pointee.last < current.pointee.first, sequence == current.pointee.first {
            // Nothing of the range was sent yet: it begins one later.
            current.pointee.first = sequence + 1
            current.pointee.last = sequence
            current.pointee.sequenceDelta += 1
            return
        }
        // Numbers between the last packet and this one are missing and keep theirs.
        current.pointee.last = sequence - 1
        highest = max(highest, current.pointee.output(sequence - 1))
        next.first = sequence + 1
        next.last = sequence
        next.sequenceDelta += 1
        ranges.begin(next)
    }

    /// Takes the next number for a packet of the server's own: those of the publisher's that come behind it move down.
    mutating func takeNumber() {
        defer { highest += 1 }
        guard selector.active >= 0, ranges.count > 0 else { return }
        let current = ranges.current
        // Nothing of the range was sent yet: all of it moves.
        guard current.pointee.last >= current.pointee.first else { return current.pointee.sequenceDelta -= 1 }
        var next = current.pointee
        next.first = next.last + 1
        next.sequenceDelta -= 1
        ranges.begin(next)
    }
}
