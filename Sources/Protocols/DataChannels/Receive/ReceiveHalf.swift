import Primitives

/// The receiving half of an association: what has arrived, which messages are complete, and how much more may arrive.
struct ReceiveHalf {
    /// The result of a DATA chunk.
    enum Result { case accepted, duplicate, refused, violation }

    private let windowSize: Int
    private let longestMessage: Int
    private(set) var tracker: TSNTracker
    private(set) var reassembly: Reassembly

    init(firstTSN: UInt32, windowSize: Int, longestMessage: Int) {
        self.windowSize = windowSize
        self.longestMessage = longestMessage
        tracker = TSNTracker(firstTSN: firstTSN)
        reassembly = Reassembly(longestMessage: longestMessage)
    }

    /// The bytes that the peer may send.
    var window: Int { reassembly.isCrowded ? 0 : max(0, windowSize - reassembly.cost) }
    var nextDeadline: MonotonicTime { tracker.nextDeadline }
    /// All numbers up to this one have arrived.
    var cumulative: Int64 { tracker.cumulative }
    /// The oldest whole message.
    var firstMessage: ReceivedMessage? { reassembly.first }
    /// The oldest whole message for which `isMeant` holds, and how many are before it.
    mutating func firstMessage(where isMeant: (ReceivedMessage) -> Bool) -> (message: ReceivedMessage, index: Int)? {
        reassembly.first(where: isMeant)
    }
    /// `isMeant` may give other answers from now on.
    mutating func searchAgain() { reassembly.searchAgain() }

    /// Processes a DATA chunk.
    mutating func receive(_ chunk: DataChunk) -> Result {
        let tsn = Serial.unwrap(chunk.tsn, near: tracker.cumulative)
        switch tracker.classify(tsn) {
        case .duplicate: return .duplicate
        case .tooFar: return .refused
        case .new: break
        }
        // Beyond the window only the next missing number is accepted: without it no stored message could ever become complete.
        if window < chunk.payload.count + Reassembly.overhead {
            guard tsn == tracker.cumulative + 1, reassembly.cost < windowSize + longestMessage else { return .refused }
        }
        guard reassembly.insert(chunk, tsn: tsn) else { return .violation }
        tracker.insert(tsn)
        return .accepted
    }

    /// A packet with data has been processed.
    mutating func notePacket(at now: MonotonicTime, immediately: Bool) {
        tracker.notePacket(at: now, immediately: immediately)
    }

    /// Processes FORWARD TSN (RFC 3758 section 3.2): the new cumulative number, then pairs of stream and sequence number.
    mutating func receiveForwardTSN(_ value: UnsafeRawBufferPointer) {
        guard value.count >= 4 else { return }
        let span = value.bytes
        let tsn = Serial.unwrap(span.readUInt32(0), near: tracker.cumulative)
        // Further ahead than anything that could have been sent.
        guard tsn - tracker.cumulative <= TSNTracker.window, tracker.skip(to: tsn) else { return }
        reassembly.discard(to: tsn)
        for offset in stride(from: 4, to: value.count - 3, by: 4) {
            reassembly.skip(stream: span.readUInt16(offset), to: span.readUInt16(offset + 2))
        }
    }

    /// Removes the whole message with this many older ones before it; the window opens again.
    mutating func dequeueMessage(at index: Int = 0) -> ReceivedMessage? {
        let before = window
        guard let message = reassembly.remove(at: index) else { return nil }
        // RFC 9260 section 6.2 leaves it to the receiver when to announce the window; a blocked sender must be notified.
        if before < windowSize / 2, window >= windowSize / 2 { tracker.requestReport() }
        return message
    }

    /// Whole messages of these streams, of any stream if the list is empty, were not delivered yet.
    func holdsMessages(of streams: [UInt16]) -> Bool { reassembly.holdsMessages(of: streams) }

    /// The peer starts these streams again; all of them if the list is empty.
    mutating func reset(_ streams: [UInt16]) {
        if streams.isEmpty { reassembly.resetAll() }
        for stream in streams { reassembly.reset(stream: stream) }
    }

    func isReportDue(at now: MonotonicTime) -> Bool { tracker.isDue(at: now) }
    var hasNews: Bool { tracker.hasNews }

    /// Writes a SACK; false when it does not fit.
    mutating func writeReport(into packet: inout PacketWriter) -> Bool {
        tracker.writeReport(window: window, into: &packet)
    }
}
