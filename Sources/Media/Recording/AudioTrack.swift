import MP4
import MediaControl
import Primitives

/// The audio of one track: from packets in order to segments.
struct AudioTrack {
    private var assembler = AudioAssembler()
    private var timeline = StreamTimeline(clockRate: 48_000)
    private var builder: SegmentBuilder?
    private var base: Int64 = 0
    /// Where the last packet that was stored ends, and when it had arrived.
    private var last: (end: Int64, arrival: MonotonicTime)?
    /// What is missing since the last packet.
    private var lost: (sequences: ClosedRange<Int64>?, packets: Int, reason: GapReason)?

    private var files = FilePace()
    private let limit: SegmentLimit

    private static let format = TrackFormat(entry: .opus)

    init(limit: SegmentLimit) { self.limit = limit }

    /// The RTP time of a timestamp; nil before the first packet.
    func time(of timestamp: UInt32) -> Int64? { timeline.peek(timestamp) }

    /// Applies a report of the publisher's clock; returns by how much the following media is later because the media clock stood still, if it did.
    mutating func noteReport(_ anchor: ClockAnchor) -> Int64? {
        timeline.noteReport(anchor.timestamp, ntp: anchor.ntp)
    }

    mutating func append(
        _ payload: RawSpan, codec: Codec, timestamp: UInt32, arrival: MonotonicTime, segment: inout Int,
        _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]
    ) throws(RecordingFault) {
        guard payload.byteCount > 0 else { return }
        let place = timeline.place(timestamp, arrival: arrival)
        if let step = place.step { steps.append(.log(.clockStep(units: step, timestamp: place.time))) }
        if assembler.silence(before: place.time) > AudioAssembler.longestSilence {
            close(&totals, &steps)
            assembler.restart()
        }
        let due = assembler.due
        guard let packets = assembler.append(payload, codec: codec, time: place.time) else {
            totals.framesLost += 1
            return
        }
        noteGap(from: due, in: packets, &totals, &steps)
        for packet in packets {
            // Timestamps that run ahead fill a file with silence in no time: until another file may begin, it becomes longer than its limit.
            if builder?.isFull == true, builder?.isExhausted == true || files.allows(at: arrival) {
                close(&totals, &steps)
            }
            if builder == nil {
                // Silence, or a copy from a later packet (RED), was due before the packet that brought it arrived.
                let moment = arrival - .nanoseconds((place.time - packet.time) * 1_000_000 / 48)
                try open(at: packet.time, moment, now: arrival, &segment, &steps)
            }
            builder?.append(
                packet.bytes, time: packet.time - base, isSync: true, duration: packet.duration, &steps)
            totals.framesWritten += 1
            last = (packet.time + Int64(packet.duration), arrival)
        }
    }

    /// Begins a file with the audio that was due at `arrival`.
    private mutating func open(
        at time: Int64, _ arrival: MonotonicTime, now: MonotonicTime, _ segment: inout Int,
        _ steps: inout [RecordingStep]
    ) throws(RecordingFault) {
        guard segment < FilePace.mostFiles else { throw .tooManyFiles }
        files.begin(at: now)
        base = time
        steps.append(.open(segment: segment))
        steps.append(
            .log(.began(segment: segment, codec: .opus, clockRate: 48_000, timestamp: time, arrival: arrival)))
        segment += 1
        builder = SegmentBuilder(Self.format, usualDuration: 960, limit: limit, &steps)
    }

    /// Packets are missing. The next packet shows whether that leaves a gap, because it may contain them as redundancy.
    mutating func lose(_ sequences: ClosedRange<Int64>?, _ reason: GapReason) {
        let first = lost?.sequences?.lowerBound ?? sequences?.lowerBound
        lost = (
            // After a gap of the recorder, numbers may begin anew below the missing ones.
            sequences.map { min(first ?? $0.lowerBound, $0.lowerBound)...$0.upperBound } ?? lost?.sequences,
            (lost?.packets ?? 0) + (sequences?.count ?? 0), reason
        )
    }

    private mutating func noteGap(
        from due: Int64?, in packets: [AudioAssembler.Packet], _ totals: inout RecordingTotals,
        _ steps: inout [RecordingStep]
    ) {
        guard let lost else { return }
        self.lost = nil
        let silent = packets.filter(\.isSilence)
        if let due, let first = silent.first, let last = silent.last {
            log(
                lost, from: min(due, first.time), to: last.time + Int64(last.duration), frames: silent.count, &totals,
                &steps)
        } else if due == nil, let last, let next = packets.first, next.time > last.end {
            // Another file begins: nothing fills the time between the two.
            log(lost, from: last.end, to: next.time, frames: 0, &totals, &steps)
        }
    }

    /// Nothing more will arrive. Packets missing at this point are missing until `moment`, because no later packet shows when the gap ended.
    mutating func endGap(
        at moment: MonotonicTime, _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]
    ) {
        guard let lost, let last else { return }
        self.lost = nil
        let missing = max(0, (moment - last.arrival).nanoseconds) * 48 / 1_000_000
        log(lost, from: last.end, to: last.end + missing, frames: 0, &totals, &steps)
    }

    private func log(
        _ lost: (sequences: ClosedRange<Int64>?, packets: Int, reason: GapReason), from: Int64, to: Int64, frames: Int,
        _ totals: inout RecordingTotals, _ steps: inout [RecordingStep]
    ) {
        totals.gaps += 1
        totals.framesLost += max(lost.packets, 1)
        steps.append(
            .log(
                .gap(
                    RecordingGap(
                        reason: lost.reason, sequences: lost.sequences, from: from, to: to, packets: lost.packets,
                        frames: frames, milliseconds: (to - from) / 48))))
    }

    /// Nothing arrived for a while: the pending samples go to the disk.
    mutating func flush(_ steps: inout [RecordingStep]) { builder?.flush(&steps) }

    /// Closes the open segment.
    mutating func close(_ totals: inout RecordingTotals, _ steps: inout [RecordingStep]) {
        builder?.close(&totals, &steps)
        builder = nil
    }

    /// Another file begins with the next packet.
    mutating func cut() { builder?.cut() }

    /// Bytes of the open segment.
    var openBytes: Int64 { builder?.bytes ?? 0 }

    /// The file was lost: the next packet begins another.
    mutating func abandonSegment(_ totals: inout RecordingTotals) {
        guard builder != nil else { return }
        builder = nil
        totals.segments += 1
        assembler.restart()
    }
}
