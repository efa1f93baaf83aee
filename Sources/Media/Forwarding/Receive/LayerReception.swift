internal import Primitives
internal import RTP

/// Which packets of one layer have arrived, which are missing, and what reports say about them.
struct LayerReception: ~Copyable {
    /// The meaning of a packet's number.
    enum Outcome {
        /// The extended number of a packet that is new.
        case new(Int64)
        /// The same; numbering restarted with it.
        case restarted(Int64)
        /// A retransmission of a received packet is a bandwidth probe (measured: Chromium), or it crossed the late packet.
        case duplicate
        case tooOld
    }

    private(set) var sequences = SequenceTracker()
    private var counters = ReceptionCounters()
    private var nacks = NackGenerator()
    /// Missing packets were given up; request one keyframe.
    private(set) var hasLostForGood = false
    /// The next restart of the numbering is another source's.
    private var needsTimeline = false
    /// Packets received at the last report.
    private var reportedPackets: Int64 = 0

    // MARK: - Packets

    /// Marks a packet as received, records missing numbers, and ends the request for this one.
    mutating func receive(
        _ number: UInt16, isRepaired: Bool, repair: LossRepair, at now: MonotonicTime, flags: inout PacketRecord.Flags
    ) -> Outcome {
        let expected = self.expected
        let verdict = isRepaired ? sequences.receiveRepaired(number) : sequences.receive(number, at: now)
        switch verdict {
        case .duplicate:
            // It arrived after its own retransmission: it was late, not lost.
            if !isRepaired { counters.countDuplicate() }
            return .duplicate
        case .tooOld: return .tooOld
        case .next(let sequence), .late(let sequence):
            count(sequence, isRepaired: isRepaired, at: now)
            return .new(sequence)
        case .ahead(let sequence, let missing):
            count(sequence, isRepaired: isRepaired, at: now)
            // More are missing than can be repaired: request a keyframe.
            if repair != .none, nacks.add(from: missing, to: sequence, at: now) { hasLostForGood = true }
            return .new(sequence)
        case .restarted(let sequence):
            // Packets that another source sent before are no loss of this one.
            counters.restart(lost: needsTimeline ? 0 : expected - counters.received + counters.duplicates)
            counters.count()
            nacks.removeAll()
            // The gap is closed for subscribers, who would decode across it. Packets from before the new source's first received packet cannot be requested,
            // and the beginning of its keyframe may be among them.
            hasLostForGood = true
            flags.insert(.discontinuity)
            if needsTimeline {
                flags.insert(.newTimeline)
                needsTimeline = false
            }
            return .restarted(sequence)
        }
    }

    private mutating func count(_ sequence: Int64, isRepaired: Bool, at now: MonotonicTime) {
        if !isRepaired { counters.count() }
        if nacks.count > 0 { _ = nacks.remove(sequence, at: now) }
    }

    /// Updates the jitter with a packet that was sent once and in order.
    @inline(__always) mutating func measureJitter(timestamp: Int64, at now: MonotonicTime, clockRate: Int64) {
        counters.measureJitter(timestamp: timestamp, at: now, clockRate: clockRate)
    }

    /// Another source continues the layer, which has begun.
    mutating func changeSource() {
        counters = ReceptionCounters()
        reportedPackets = 0
        sequences.changeSource()
        nacks.removeAll()
        needsTimeline = true
    }

    /// Packets arrived and were discarded unread: the stream restarts, video with a keyframe.
    mutating func interrupt() {
        guard sequences.hasStarted else { return }
        sequences.changeSource()
        nacks.removeAll()
        hasLostForGood = true
    }

    // MARK: - Repair

    /// When numbers are due for a request.
    var nextRequest: MonotonicTime { nacks.nextDue }

    /// Writes the wire numbers to request at `now` to `output`; returns how many.
    mutating func consumeMissing(
        at now: MonotonicTime, roundTrip: TimeSpan, repair: LossRepair,
        into output: UnsafeMutableBufferPointer<UInt16>
    ) -> Int {
        let due = nacks.consumeDue(at: now, roundTrip: roundTrip, asks: repair == .retransmission, into: output)
        if due.gaveUp { hasLostForGood = true }
        return due.count
    }

    /// Whether a keyframe must replace packets that were given up; only once.
    mutating func consumeLoss() -> Bool {
        defer { hasLostForGood = false }
        return hasLostForGood
    }

    /// The time from requesting a packet to its retransmission, if it is unambiguous.
    mutating func answered(_ number: UInt16, at now: MonotonicTime) -> TimeSpan? {
        let distance = Int64(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: sequences.highest)))
        return nacks.remove(sequences.highest + distance, at: now)
    }

    /// Numbers below `sequence` are no longer needed: a keyframe starts there.
    mutating func forgetMissing(below sequence: Int64) { nacks.forget(below: sequence) }

    /// A keyframe begins with packet `sequence`: packets lost before it need no other keyframe.
    mutating func keyframeBegins(at sequence: Int64) {
        nacks.forget(below: sequence)
        keyframeMayBegin(at: sequence)
    }

    /// The same, if the packets from `sequence` on are those of a keyframe; packets that can be repaired are still requested.
    mutating func keyframeMayBegin(at sequence: Int64) {
        // Subscribers get nothing from before the first packet of a numbering.
        guard sequence >= sequences.first else { return }
        for number in sequence...sequences.highest where !sequences.contains(number) { return }
        hasLostForGood = false
    }

    /// The first number of the unbroken run of missing numbers just before `sequence`; `sequence` itself if there are none.
    func missingRun(before sequence: Int64) -> Int64 { nacks.start(ofRunBefore: sequence) }

    // MARK: - Reports

    /// Packets expected in this numbering.
    private var expected: Int64 {
        // Nothing is expected of a replacing source before its first packet.
        sequences.hasStarted && !needsTimeline ? sequences.highest - sequences.first + 1 : 0
    }

    /// Packets lost so far, including those that arrived after their own retransmission, which count as repaired. Unlike in reports (RFC 3550), a duplicate
    /// does not make up for another lost packet.
    var lost: Int64 { counters.lost(expected: expected) + counters.duplicates }

    /// Interarrival jitter in timestamp units.
    var jitter: UInt32 { counters.jitter }

    /// Whether packets came since the last report.
    var hasNews: Bool { sequences.hasStarted && !needsTimeline && counters.received != reportedPackets }

    /// The report block about the stream, whose sender reported `clock` last.
    mutating func makeReportBlock(ssrc: UInt32, clock: SenderClock?, at now: MonotonicTime) -> ReportBlock {
        reportedPackets = counters.received
        let expected = self.expected
        let lost = counters.lost(expected: expected)
        return ReportBlock(
            ssrc: ssrc, fractionLost: counters.consumeFractionLost(expected: expected),
            cumulativeLost: Int32(clamping: lost),
            highestSequence: UInt32(truncatingIfNeeded: sequences.highest), jitter: counters.jitter,
            lastSenderReport: clock?.middle ?? 0,
            delaySinceLastSenderReport: clock.map { NTPTime.shortInterval(now - $0.arrival) } ?? 0)
    }
}
