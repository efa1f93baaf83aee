internal import Primitives

/// Sequence numbers, timestamps, loss and repair of one layer.
extension ReceiveLayer {
    /// Not sequence numbers, but why there is none.
    static let duplicate: Int64 = -1
    static let tooOld: Int64 = -2

    /// The extended sequence number of a packet, which is thereby received; `duplicate` or `tooOld` for one that is of no
    /// use. Notes what is missing, and ends the request for what came.
    mutating func number(
        _ number: UInt16, isRepaired: Bool, asksForRepair: Bool, at now: MonotonicTime, flags: inout PacketRecord.Flags
    ) -> Int64 {
        let expected = sequences.hasStarted ? sequences.highest - sequences.first + 1 : 0
        let verdict = isRepaired ? sequences.receiveRepaired(number) : sequences.receive(number, at: now)
        switch verdict {
        case .duplicate:
            // A repeat of what came is a probe for bandwidth (recipes 1.3), or a repair that crossed the packet.
            if isRepaired { totals.probes &+= 1 }
            return Self.duplicate
        case .tooOld: return Self.tooOld
        case .next(let sequence), .late(let sequence):
            count(sequence, isRepaired: isRepaired, at: now)
            return sequence
        case .ahead(let sequence, let missing):
            count(sequence, isRepaired: isRepaired, at: now)
            // More missing than can be repaired: a keyframe mends it.
            if asksForRepair, nacks.add(from: missing, to: sequence, at: now) { lostForGood = true }
            return sequence
        case .restarted(let sequence):
            counters.restart(lost: expected - counters.received)
            counters.count()
            nacks.removeAll()
            droppedUpTo = .min
            flags.insert(.discontinuity)
            if owesTimeline {
                flags.insert(.newTimeline)
                owesTimeline = false
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
            // One cycle up, so that earlier ones are not negative.
            newestTimestamp = 0x1_0000_0000 + Int64(timestamp)
            return newestTimestamp
        }
        let distance = Int64(Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: newestTimestamp)))
        // Four thousand million steps of half a turn would overflow: some hours of hostile packets.
        let extended = newestTimestamp &+ distance
        if distance > 0 || distance < -Self.reorderedTicks { newestTimestamp = extended }
        return extended
    }

    /// A timestamp further back than this is no late packet but a new time line (10 s of video clock).
    private static var reorderedTicks: Int64 { 900_000 }

    /// Packets that this numbering should have brought.
    var expected: Int64 { sequences.hasStarted ? sequences.highest - sequences.first + 1 : 0 }
}
