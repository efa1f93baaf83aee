internal import Primitives

/// Sequence numbers, timestamps, loss and repair of one layer.
extension ReceiveLayer {
    /// Not sequence numbers: the reasons why there is none.
    static let duplicate: Int64 = -1
    static let tooOld: Int64 = -2

    /// The extended sequence number of a packet, which is marked as received; `duplicate` or `tooOld` for a useless one.
    /// Records missing numbers, and ends the request for this one.
    mutating func number(
        _ number: UInt16, isRepaired: Bool, asksForRepair: Bool, at now: MonotonicTime, flags: inout PacketRecord.Flags
    ) -> Int64 {
        let expected = sequences.hasStarted ? sequences.highest - sequences.first + 1 : 0
        let verdict = isRepaired ? sequences.receiveRepaired(number) : sequences.receive(number, at: now)
        switch verdict {
        case .duplicate:
            // A retransmission of a received packet is a bandwidth probe (measured: Chromium), or it crossed the late packet.
            if isRepaired { totals.probes &+= 1 }
            return Self.duplicate
        case .tooOld: return Self.tooOld
        case .next(let sequence), .late(let sequence):
            count(sequence, isRepaired: isRepaired, at: now)
            return sequence
        case .ahead(let sequence, let missing):
            count(sequence, isRepaired: isRepaired, at: now)
            // More are missing than can be repaired: request a keyframe.
            if asksForRepair, nacks.add(from: missing, to: sequence, at: now) { lostForGood = true }
            return sequence
        case .restarted(let sequence):
            counters.restart(lost: expected - counters.received)
            counters.count()
            nacks.removeAll()
            droppedUpTo = .min
            flags.insert(.discontinuity)
            if needsTimeline {
                flags.insert(.newTimeline)
                needsTimeline = false
            }
            return sequence
        }
    }

    private mutating func count(_ sequence: Int64, isRepaired: Bool, at now: MonotonicTime) {
        if !isRepaired { counters.count() }
        if nacks.count > 0 { _ = nacks.remove(sequence, at: now) }
    }

    /// The extended form of an RTP timestamp, nearest to the newest one.
    mutating func extend(_ timestamp: UInt32) -> Int64 {
        guard hasTimestamp else {
            hasTimestamp = true
            // One cycle up, so that earlier timestamps are not negative.
            newestTimestamp = 0x1_0000_0000 + Int64(timestamp)
            return newestTimestamp
        }
        let distance = Int64(Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: newestTimestamp)))
        // Overflow would take four thousand million steps of half a cycle: some hours of hostile packets.
        let extended = newestTimestamp &+ distance
        if distance > 0 || distance < -Self.reorderedTicks { newestTimestamp = extended }
        return extended
    }

    /// A timestamp further back than this is a new timeline and not a late packet (10 s of video clock).
    private static var reorderedTicks: Int64 { 900_000 }

    /// Packets expected in this numbering.
    var expected: Int64 { sequences.hasStarted ? sequences.highest - sequences.first + 1 : 0 }
}
