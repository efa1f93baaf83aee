import Primitives

/// The sending half of an association: what waits, what is in flight, and when more may be sent.
struct SendHalf {
    /// Maximum fragments in flight: at their usual size far more than a window holds, so that this bounds only tiny ones.
    private static let mostOutstanding = 4_096

    private(set) var queue: SendQueue
    private var outstanding: OutstandingData
    private var congestion = CongestionWindow()
    private var timer = RetransmissionTimer()
    /// Bytes that the peer's window has left.
    private var peerWindow: Int
    /// Whether the peer understands FORWARD TSN; without it every message is repeated until it arrives.
    private let mayAbandon: Bool
    /// FORWARD TSN must be sent; the number in the last one.
    private var forwards = false
    private var forwarded: Int64
    /// One lost packet is repeated regardless of the window (RFC 9260 section 7.2.4, 3).
    private var repeatsAtOnce = false
    /// Lossy messages that were given up after they were sent.
    private(set) var abandoned = 0

    init(firstTSN: UInt32, peerWindow: UInt32, mayAbandon: Bool, queue: SendQueue) {
        outstanding = OutstandingData(firstTSN: firstTSN)
        self.peerWindow = Int(peerWindow)
        self.mayAbandon = mayAbandon
        self.queue = queue
        forwarded = Int64(firstTSN) - 1
    }

    var nextDeadline: MonotonicTime { timer.deadline }
    /// The highest number that was sent.
    var last: Int64 { outstanding.last }
    /// The current retransmission timeout.
    var timeout: TimeSpan { timer.timeout }
    /// Lossy messages that never reached the peer.
    var dropped: Int { queue.dropped + abandoned }

    /// Whether `write` has something to write now.
    var isReady: Bool {
        if forwards { return true }
        if outstanding.hasLoss { return repeatsAtOnce || mayFly }
        return !queue.isEmpty && mayFly && mayUsePeerWindow
    }

    private var mayFly: Bool { outstanding.flight < congestion.size && outstanding.count < Self.mostOutstanding }
    private var mayUsePeerWindow: Bool { peerWindow > 0 || outstanding.flight == 0 }

    /// Appends a message; false when it is reliable and does not fit.
    mutating func append(
        _ payload: [UInt8], stream: UInt16, identifier: UInt32, isOrdered: Bool, reliability: DataReliability,
        at now: MonotonicTime
    ) -> Bool {
        queue.append(
            payload, stream: stream, identifier: identifier, isOrdered: isOrdered,
            reliability: mayAbandon ? reliability : .reliable, unacknowledged: outstanding.reliableBytes, at: now)
    }

    /// Whether another message of DCEP fits.
    var takesControl: Bool { queue.takesControl }

    /// Appends a message of DCEP.
    mutating func appendControl(_ payload: [UInt8], stream: UInt16, identifier: UInt32, at now: MonotonicTime) {
        queue.appendControl(payload, stream: stream, identifier: identifier, at: now)
    }

    /// Reliable bytes that wait or are unacknowledged, and messages that wait.
    var waiting: (reliableBytes: Int, messages: Int) {
        (queue.reliableBytes + outstanding.reliableBytes, queue.count)
    }
    /// Reliable bytes that the peer has acknowledged.
    var deliveredBytes: Int { outstanding.deliveredBytes }
    /// Bytes that wait or are not acknowledged; for reports.
    var bufferedBytes: Int { queue.reliableBytes + queue.lossyBytes + outstanding.flight }

    /// Whether everything on the stream was sent and acknowledged.
    func isDrained(_ stream: UInt16) -> Bool { queue.isIdle(stream) && !outstanding.uses(stream) }
    /// Drops the messages that wait on a stream.
    mutating func clear(_ stream: UInt16) { queue.clear(stream) }
    /// The stream starts again.
    mutating func reset(_ stream: UInt16) { queue.reset(stream) }

    // MARK: - Acknowledgements and time

    /// Processes a SACK; false when it violates the protocol.
    mutating func receive(_ report: Acknowledgement, at now: MonotonicTime) -> Bool {
        let flight = outstanding.flight
        guard let progress = outstanding.apply(report, at: now) else { return false }
        if let trip = progress.roundTrip { timer.measured(trip) }
        congestion.acknowledge(
            progress.bytes, cumulative: outstanding.cumulative, advanced: progress.hasAdvanced, flight: flight)
        if progress.hasLoss {
            repeatsAtOnce = !congestion.isRecovering
            congestion.lost(last: outstanding.last)
            abandonExpired(at: now)
        }
        peerWindow = max(0, Int(report.window) - outstanding.flight)
        noteSkippable(again: false)
        if outstanding.isEmpty {
            timer.stop()
        } else if progress.hasAdvanced || !timer.isRunning {
            timer.start(at: now)
        }
        return true
    }

    /// Runs the retransmission timer.
    mutating func advance(to now: MonotonicTime) {
        guard timer.deadline <= now else { return }
        guard !outstanding.isEmpty else { return timer.stop() }
        timer.backOff(at: now)
        congestion.timedOut()
        outstanding.markAllLost()
        repeatsAtOnce = true
        abandonExpired(at: now)
        noteSkippable(again: true)
    }

    private mutating func abandonExpired(at now: MonotonicTime) {
        guard mayAbandon else { return }
        var last: Int64 = -1
        for message in outstanding.expired(at: now) where message != last {
            last = message
            let hasRest = queue.abandon(message)
            outstanding.abandon(message, hasRest: hasRest, at: now)
            abandoned += 1
        }
    }

    /// FORWARD TSN is due when it can report more than before, or again when the timer has expired.
    private mutating func noteSkippable(again: Bool) {
        guard let skip = outstanding.skippable(limit: 1) else { return }
        if again || skip.number > forwarded { forwards = true }
    }

    // MARK: - Writing

    /// Appends what may be sent to a packet: FORWARD TSN, repeats, new data.
    mutating func write(into packet: inout PacketWriter, at now: MonotonicTime) {
        if forwards { writeForwardTSN(into: &packet, at: now) }
        let atOnce = repeatsAtOnce
        while outstanding.hasLoss, atOnce || mayFly {
            guard let (number, fragment) = outstanding.nextLost(room: room(in: packet), at: now) else { break }
            repeatsAtOnce = false
            append(fragment, number, to: &packet)
            if !timer.isRunning { timer.start(at: now) }
        }
        guard !outstanding.hasLoss else { return }
        while mayFly, mayUsePeerWindow, let fragment = queue.next(room: room(in: packet), at: now) {
            let number = outstanding.append(fragment, at: now)
            peerWindow = max(0, peerWindow - fragment.range.count)
            append(fragment, number, to: &packet)
            if !timer.isRunning { timer.start(at: now) }
        }
    }

    private func room(in packet: PacketWriter) -> Int { packet.room - (PacketSize.dataHeader - PacketSize.chunkHeader) }

    private func append(_ fragment: Fragment, _ number: Int64, to packet: inout PacketWriter) {
        var flags: UInt8 = 0
        if fragment.isFirst { flags |= DataChunk.beginFlag }
        if fragment.isLast { flags |= DataChunk.endFlag }
        if !fragment.isOrdered { flags |= DataChunk.unorderedFlag }
        // Nothing follows that would make the peer acknowledge soon (RFC 7053).
        if queue.isEmpty || !mayFly { flags |= DataChunk.immediateFlag }
        let header = PacketSize.dataHeader - PacketSize.chunkHeader
        guard let value = packet.chunk(.data, flags: flags, count: header + fragment.range.count) else { return }
        value.write(Serial.wire(number), at: 0)
        value.write(fragment.stream, at: 4)
        value.write(fragment.sequence, at: 6)
        value.write(fragment.identifier, at: 8)
        fragment.payload.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: value[header...]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: $0[fragment.range]))
        }
    }

    private mutating func writeForwardTSN(into packet: inout PacketWriter, at now: MonotonicTime) {
        forwards = false
        guard packet.room >= 8, let skip = outstanding.skippable(limit: (packet.room - 4) / 4),
            let value = packet.chunk(.forwardTSN, count: 4 + skip.streams.count * 4)
        else { return }
        value.write(Serial.wire(skip.number), at: 0)
        for (index, entry) in skip.streams.enumerated() {
            value.write(entry.stream, at: 4 + index * 4)
            value.write(entry.sequence, at: 6 + index * 4)
        }
        forwarded = skip.number
        if !timer.isRunning { timer.start(at: now) }
    }
}
