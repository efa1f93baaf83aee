import MediaControl
import PayloadFormats
import Primitives

/// The numbers of one subscription's output: dense where the publisher skipped numbers on purpose, with a gap where a packet is missing and may
/// still arrive; one continuous stream across switches, drops and jumps of the source.
///
/// ```text
/// begin ── range ── number, number, closeGap (a new range), number … ── remember ── begin with another layer: continues after it
///                     └─ packet(of: source) for a late one: the number that was reserved for it
/// ```
struct OutputNumbering: ~Copyable {
    private var ranges: NumberRanges
    /// The highest output number used, extended.
    private(set) var highest: Int64
    /// The last forwarded packet as the subscriber saw it.
    private(set) var tail = OutputTail()
    /// Counts bindings; numbers of an older one are not retransmitted, because their track may have been removed.
    private(set) var epoch: UInt8 = 0

    /// Numbers start at `highest` + 1; `ranges` of them are remembered, a power of two.
    init(after highest: Int64, ranges capacity: Int) {
        self.highest = highest
        ranges = NumberRanges(capacity: capacity)
    }

    /// Bytes of memory besides the struct itself.
    var memoryBytes: Int { ranges.memoryBytes }

    /// Prefetches the memory that the next number will use.
    @inline(__always) func prefetch() {
        if ranges.count > 0 { Prefetch.lines(ranges.current, MemoryLayout<NumberRange>.size) }
    }

    // MARK: - Bindings

    /// Another track is bound; the stream that the subscriber sees continues.
    mutating func beginBinding() {
        epoch &+= 1
        ranges.removeAll()
    }

    /// No track is bound any more.
    mutating func endBinding() { ranges.removeAll() }

    /// Whether a packet of the currently bound track was sent.
    var hasSentOfBinding: Bool { !tail.isEmpty && tail.epoch == epoch }

    // MARK: - Ranges

    /// Begins a range with the packet at `start` of `layer`: sequence, timestamp and frame numbers continue from the last sent packet.
    mutating func begin(
        _ layer: UnsafeMutablePointer<ReceiveLayer>, from start: Int64, _ record: UnsafePointer<PacketRecord>,
        mapping: FormatMapping
    ) {
        var range = NumberRange()
        range.layer = UInt8(layer.pointee.index)
        range.first = start
        range.last = start - 1
        range.deltas.timestamp = timestampDelta(to: record, of: layer, mapping: mapping)
        continueFrameNumbers(
            &range, record: record, packet: layer.pointee.history.packet(record), codec: mapping.codec)
        range.sequenceDelta = start - (highest + 1)
        ranges.begin(range)
        tail.codec = mapping.codec
    }

    /// Begins a range at a point where the publisher's numbers or timestamps are unrelated to earlier ones.
    mutating func rebase(
        at sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>,
        mapping: FormatMapping
    ) {
        var range = ranges.current.pointee
        let isFresh = range.last < range.first
        // `begin` has just continued from the last sent packet, which does not belong to this range.
        if isFresh, sequence == range.first { return }
        // A range is also fresh after a dropped packet: then the last sent packet is of this layer.
        if !isFresh || tail.epoch == epoch && tail.layer == layer.pointee.index { remember(layer) }
        range.first = sequence
        range.last = sequence - 1
        if record.pointee.flags.contains(.discontinuity) {
            range.sequenceDelta = sequence - (highest + 1)
            let packet = layer.pointee.history.packet(record)
            continueFrameNumbers(&range, record: record, packet: packet, codec: mapping.codec)
        }
        if record.pointee.flags.contains(.newTimeline) {
            range.deltas.timestamp = timestampDelta(to: record, of: layer, mapping: mapping)
        }
        ranges.begin(range)
    }

    /// The range that numbers a packet ahead of all others; a new one when the forwarded layers have changed.
    @inline(__always)
    private mutating func currentRange(from sequence: Int64, caps: LayerCaps) -> UnsafeMutablePointer<NumberRange> {
        let range = ranges.current
        guard range.pointee.caps != caps else { return range }
        if sequence > range.pointee.first {
            var next = range.pointee
            // Missing packets before it belong to the former layers.
            range.pointee.last = sequence - 1
            next.first = sequence
            next.last = sequence - 1
            ranges.begin(next)
        }
        ranges.current.pointee.caps = caps
        return ranges.current
    }

    /// The offset to add to the new source's timestamps, so that time advances as at the publisher.
    ///
    /// In order of trust: the stream's own clock, the sender reports of one publisher, the arrival times. The first two are
    /// used only if they are within `longestDelay` of the third.
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
            if let byClock, (byClock &- ticks).magnitude < Self.longestDelay(mapping.codec) * rate.magnitude {
                ticks = byClock
            }
        }
        let next = tail.timestamp &+ UInt32(truncatingIfNeeded: max(1, ticks))
        return next &- UInt32(truncatingIfNeeded: record.pointee.timestamp)
    }

    /// In seconds, how late a packet may be by its clock. A video's clock continues while nothing is captured or sent; its packets may be late by the longest
    /// stall of the network that a recorder accepts (`StreamTimeline`). The clock of audio counts samples and stops with the microphone, so that a pause looks
    /// like a delay: there the bound covers a repair, which may be a second late (`NackGenerator.maximumAge`), on a path that is slower than before.
    private static func longestDelay(_ codec: Codec) -> UInt64 { codec.kind == .audio ? 2 : 10 }

    private static func ticks(of interval: TimeSpan, rate: Int64) -> Int64 {
        // Rounded; in microseconds, so that years fit.
        (interval.nanoseconds / 1_000 &* rate &+ 500_000) / 1_000_000
    }

    /// Sets the deltas of picture id, TL0PICIDX, KEYIDX and frame number, so that each continues with the next value.
    private func continueFrameNumbers(
        _ range: inout NumberRange, record: UnsafePointer<PacketRecord>, packet: UnsafeRawBufferPointer, codec: Codec
    ) {
        let payload = UnsafeRawBufferPointer(rebasing: packet[Int(record.pointee.payloadOffset)...])
        let numbers = FrameNumbers(codec: codec, payload: payload)
        if let last = tail.picture, numbers.pictureOffset >= 0 { range.deltas.picture = last &+ 1 &- numbers.picture }
        if let last = tail.temporalZero, numbers.temporalZeroOffset >= 0 {
            range.deltas.temporalZero = last &+ 1 &- numbers.temporalZero
        }
        if let last = tail.keyIndex, numbers.keyIndexOffset >= 0 {
            range.keyIndexDelta = (last &+ 1 &- numbers.keyIndex) & 0x1f
        }
        if let last = tail.frame, let number = FrameNumbers.descriptorNumber(record, in: packet) {
            range.deltas.frame = last &+ 1 &- number
        }
    }

    // MARK: - Numbers

    /// Whether `sequence` of the current layer is not ahead of all others.
    @inline(__always) func isLate(_ sequence: Int64) -> Bool {
        let range = ranges.current
        return sequence <= range.pointee.last || sequence < range.pointee.first
    }

    /// The next number, for a packet that is ahead of all others; `caps` are the layers that are forwarded with it.
    @inline(__always)
    mutating func number(_ sequence: Int64, _ record: UnsafePointer<PacketRecord>, caps: LayerCaps) -> SentPacket {
        let range = currentRange(from: sequence, caps: caps)
        range.pointee.last = sequence
        let output = range.pointee.output(sequence)
        if output > highest { highest = output }
        tail.timestamp = UInt32(truncatingIfNeeded: record.pointee.timestamp) &+ range.pointee.deltas.timestamp
        tail.sourceTimestamp = record.pointee.timestamp
        tail.sourceSequence = sequence
        tail.arrival = record.pointee.arrival
        tail.layer = Int(range.pointee.layer)
        tail.epoch = epoch
        tail.format = record.pointee.format
        tail.isEmpty = false
        tail.isFrameComplete = record.pointee.hasMarker
        return packet(sequence, in: range)
    }

    /// The last packet ended its frame although it has no marker.
    mutating func completeFrame() { tail.isFrameComplete = true }

    /// The range that reserved a number for `source` of `layer`; nil if none did.
    @inline(__always)
    func range(layer: Int, source: Int64) -> UnsafeMutablePointer<NumberRange>? {
        ranges.find(layer: UInt8(layer), source: source)
    }

    /// The packet of `source` under its number in `range`.
    @inline(__always)
    func packet(_ sequence: Int64, in range: UnsafeMutablePointer<NumberRange>) -> SentPacket {
        SentPacket(
            sequence: UInt32(truncatingIfNeeded: range.pointee.output(sequence)),
            content: .forwarded(
                .init(
                    source: UInt32(truncatingIfNeeded: sequence), deltas: range.pointee.deltas,
                    mark: LayerMark(keyIndexDelta: range.pointee.keyIndexDelta))),
            layer: range.pointee.layer)
    }

    /// The publisher used the number `sequence` for something that is not forwarded: later numbers shift down.
    mutating func closeGap(_ sequence: Int64) {
        guard ranges.count > 0 else { return }
        let current = ranges.current
        guard sequence > current.pointee.last else { return }
        var next = current.pointee
        if current.pointee.last < current.pointee.first, sequence == current.pointee.first {
            // No packet of the range was sent yet: it begins one later.
            current.pointee.first = sequence + 1
            current.pointee.last = sequence
            current.pointee.sequenceDelta += 1
            return
        }
        // Numbers between the last packet and this one are missing and stay reserved.
        current.pointee.last = sequence - 1
        highest = max(highest, current.pointee.output(sequence - 1))
        next.first = sequence + 1
        next.last = sequence
        next.sequenceDelta += 1
        ranges.begin(next)
    }

    /// A publisher's frame is dropped with its picture id: later ids shift down.
    mutating func skipPictureID() { ranges.current.pointee.deltas.picture &-= 1 }

    /// The next number for a packet generated by the server, before a range begins.
    mutating func nextNumber() -> UInt32 {
        highest += 1
        return UInt32(truncatingIfNeeded: highest)
    }

    /// The next number for a packet generated by the server within a range: the publisher's later numbers shift up.
    mutating func insertNumber() -> UInt32 {
        if ranges.count > 0 {
            let current = ranges.current
            if current.pointee.last < current.pointee.first {
                // No packet of the range was sent yet: shift all of it.
                current.pointee.sequenceDelta -= 1
            } else {
                var next = current.pointee
                next.first = next.last + 1
                next.sequenceDelta -= 1
                ranges.begin(next)
            }
        }
        return nextNumber()
    }

    /// Withdraws the last number: its packet is not sent.
    mutating func returnNumber(_ sequence: UInt32) {
        if sequence == UInt32(truncatingIfNeeded: highest) { highest -= 1 }
    }

    /// The extended form of a NACK's number; nil for one that is ahead of the last packet.
    func number(wire: UInt16) -> Int64? {
        let behind = UInt16(truncatingIfNeeded: highest) &- wire
        return behind < 0x8000 ? highest - Int64(behind) : nil
    }

    /// The extended form of a packet's number.
    func number(of sent: SentPacket) -> Int64 {
        highest - Int64(UInt32(truncatingIfNeeded: highest) &- sent.sequence)
    }

    /// Whether the number `wire` belongs to a packet of the current range that has not arrived from the publisher.
    func isOpenGap(_ wire: UInt16) -> Bool {
        let behind = Int64(UInt16(truncatingIfNeeded: highest) &- wire)
        guard ranges.count > 0, behind < Int64(NackGenerator.capacity) else { return false }
        let source = highest - behind + ranges.current.pointee.sequenceDelta
        return source >= ranges.current.pointee.first && source <= ranges.current.pointee.last
    }

    /// The current offset to the publisher's timestamps; nil before the first packet.
    var timestampDelta: UInt32? { ranges.count > 0 ? ranges.current.pointee.deltas.timestamp : nil }

    // MARK: - Leaving a layer

    /// Stores the frame numbers of the last forwarded packet, before its layer is left. Once per switch, not per packet.
    mutating func remember(_ layer: UnsafeMutablePointer<ReceiveLayer>) {
        guard ranges.count > 0 else { return }
        let source = tail.sourceSequence
        tail.clock = layer.pointee.clock
        // Packets that were dropped or arrived late after it may have overwritten it.
        let record = layer.pointee.history.record(source)
        if let record {
            // The current range may have begun after the last packet, with other deltas.
            let range = self.range(layer: layer.pointee.index, source: source) ?? ranges.current
            remember(record, of: layer, in: range.pointee)
        }
        skipMissing(behind: source, isKnown: record != nil, of: layer)
    }

    private mutating func remember(
        _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>, in range: NumberRange
    ) {
        let packet = layer.pointee.history.packet(record)
        let payload = UnsafeRawBufferPointer(rebasing: packet[Int(record.pointee.payloadOffset)...])
        let numbers = FrameNumbers(codec: tail.codec, payload: payload)
        if numbers.pictureOffset >= 0 {
            tail.picture = (numbers.picture &+ range.deltas.picture) & FrameNumbers.allPictureBits
        }
        if numbers.temporalZeroOffset >= 0 { tail.temporalZero = numbers.temporalZero &+ range.deltas.temporalZero }
        if numbers.keyIndexOffset >= 0 { tail.keyIndex = (numbers.keyIndex &+ range.keyIndexDelta) & 0x1f }
        if let number = FrameNumbers.descriptorNumber(record, in: packet) { tail.frame = number &+ range.deltas.frame }
    }

    /// Packets after the last one that was forwarded in order were dropped, are missing, or arrived late under the numbers that were reserved for them. Missing
    /// ones may be repaired: the numbers of their frames stay reserved and are not used again.
    private mutating func skipMissing(
        behind source: Int64, isKnown: Bool, of layer: UnsafeMutablePointer<ReceiveLayer>
    ) {
        let range = ranges.current.pointee
        let end = range.first - 1
        guard Int(range.layer) == layer.pointee.index, range.last < range.first, end > source,
            end - source < SequenceTracker.window
        else { return }
        var missing: UInt16 = 0
        var sequence = end
        while sequence > source {
            let reserved = self.range(layer: layer.pointee.index, source: sequence)
            if let record = layer.pointee.history.record(sequence) {
                if let reserved {
                    remember(record, of: layer, in: reserved.pointee)
                } else if missing > 0 || !isKnown || hasReserved(from: source, to: sequence, of: layer) {
                    // A dropped frame after a missing packet has the numbers that follow it.
                    remember(record, of: layer, in: range)
                }
                break
            }
            if reserved != nil { missing += 1 }
            sequence -= 1
        }
        guard missing > 0 else { return }
        // Their frames are unknown: each packet may have been a frame.
        tail.picture = tail.picture.map { $0 &+ missing }
        tail.temporalZero = tail.temporalZero.map { $0 &+ UInt8(truncatingIfNeeded: missing) }
        tail.frame = tail.frame.map { $0 &+ missing }
    }

    /// Whether a number is reserved for a packet between the two.
    private func hasReserved(from source: Int64, to end: Int64, of layer: UnsafeMutablePointer<ReceiveLayer>) -> Bool {
        ((source + 1)..<end).contains { range(layer: layer.pointee.index, source: $0) != nil }
    }
}
