import Primitives

/// A message as SCTP delivers it.
struct ReceivedMessage: Equatable {
    var stream: UInt16
    /// The payload protocol identifier (RFC 8831 section 8).
    var identifier: UInt32
    var payload: [UInt8]
}

/// Puts fragments together and messages in order (RFC 9260 sections 6.5, 6.6, 6.9).
///
/// The fragments of a message have consecutive numbers, so what has arrived is a list of runs; a run from a first to a last fragment is a message.
/// An ordered message waits for those before it on its stream.
struct Reassembly {
    /// Counted in addition to the bytes of each stored fragment and message, so that tiny ones use the window, too.
    static let overhead = 64
    /// Maximum runs, and messages that wait for earlier ones. The limit on bytes would allow 8,000 of them, and the work for each fragment grows with their
    /// number: a few hundred packets per second could keep a processor busy.
    static let maximumParts = 1_024
    /// Maximum streams with a sequence number. A peer has at most 64 channels; streams that were used without being opened count as well.
    static let maximumStreams = 256

    /// Consecutive fragments of one message.
    private struct Run {
        var first: Int64, last: Int64
        var stream: UInt16, sequence: UInt16
        var identifier: UInt32
        var isUnordered: Bool, hasFirst: Bool, hasLast: Bool
        var bytes: [UInt8]

        var cost: Int { bytes.count + Int(last - first + 1) * Reassembly.overhead }
        var isWhole: Bool { hasFirst && hasLast }

        func precedes(_ next: Run) -> Bool {
            last + 1 == next.first && !hasLast && !next.hasFirst && stream == next.stream
                && sequence == next.sequence && isUnordered == next.isUnordered
        }
    }

    /// A whole message that waits for an earlier one of its stream.
    private struct Waiting {
        var sequence: UInt16
        var message: ReceivedMessage
        var cost: Int { message.payload.count + Reassembly.overhead }
    }

    private let longestMessage: Int
    /// In the order of their numbers.
    private var runs: [Run] = []
    /// By stream, in the order of their sequence numbers.
    private var waiting: [UInt16: [Waiting]] = [:]
    private var waitingCount = 0
    /// The next sequence number of each stream that was used.
    private var expected: [UInt16: UInt16] = [:]
    /// Whole messages in order, not delivered yet.
    private var whole: [ReceivedMessage] = []
    private var nextWhole = 0
    /// How many of them, from the oldest on, `first(where:)` has rejected.
    private var searched = 0
    /// What all of this costs, in bytes of the receive window.
    private(set) var cost = 0
    /// Messages that were dropped because the table has no place for their stream, or for more waiting messages.
    private(set) var refused = 0

    init(longestMessage: Int) { self.longestMessage = longestMessage }

    /// No further fragment may be stored, except the first missing one.
    var isCrowded: Bool { runs.count + waitingCount >= Self.maximumParts }

    /// Stores a fragment that has not arrived before; false when its message exceeds the announced length, which ends the association.
    mutating func insert(_ chunk: DataChunk, tsn: Int64) -> Bool {
        let run = Run(
            first: tsn, last: tsn, stream: chunk.stream, sequence: chunk.sequence, identifier: chunk.identifier,
            isUnordered: chunk.isUnordered, hasFirst: chunk.isFirst, hasLast: chunk.isLast, bytes: Array(chunk.payload))
        cost += run.cost
        guard !run.isWhole else {
            guard run.bytes.count <= longestMessage else { return false }
            cost -= run.cost
            deliver(run)
            return true
        }
        var index = runs.endIndex
        while index > 0, runs[index - 1].first > tsn { index -= 1 }
        if index > 0, runs[index - 1].precedes(run) {
            index -= 1
            join(run, to: index)
        } else {
            runs.insert(run, at: index)
        }
        if index + 1 < runs.count, runs[index].precedes(runs[index + 1]) {
            join(runs.remove(at: index + 1), to: index)
        }
        guard runs[index].bytes.count <= longestMessage else { return false }
        if runs[index].isWhole {
            cost -= runs[index].cost
            deliver(runs.remove(at: index))
        }
        return true
    }

    private mutating func join(_ run: Run, to index: Int) {
        runs[index].bytes.append(contentsOf: run.bytes)
        runs[index].last = run.last
        runs[index].hasLast = run.hasLast
    }

    private mutating func deliver(_ run: Run) {
        let message = ReceivedMessage(stream: run.stream, identifier: run.identifier, payload: run.bytes)
        guard !run.isUnordered else { return append(message) }
        guard let next = sequence(of: run.stream) else {
            refused += 1
            return
        }
        if run.sequence == next {
            expected[run.stream] = next &+ 1
            append(message)
            deliverWaiting(of: run.stream)
        } else if Int16(bitPattern: run.sequence &- next) > 0 {
            wait(Waiting(sequence: run.sequence, message: message))
        }
    }

    /// Keeps a message until those before it have arrived. A second one with the same sequence number, which no sender produces, is ignored, as is one that
    /// skips earlier ones although all TSNs before it have arrived: only such a message can arrive here when there is no place.
    private mutating func wait(_ entry: Waiting) {
        guard !isCrowded else {
            refused += 1
            return
        }
        let stream = entry.message.stream
        let place = (waiting[stream] ?? []).lastIndex { Int16(bitPattern: $0.sequence &- entry.sequence) <= 0 }
        if let place, waiting[stream]?[place].sequence == entry.sequence { return }
        waiting[stream, default: []].insert(entry, at: place.map { $0 + 1 } ?? 0)
        waitingCount += 1
        cost += entry.cost
    }

    /// The next sequence number of a stream, which gets a place in the table; nil when that is full.
    private mutating func sequence(of stream: UInt16) -> UInt16? {
        if let next = expected[stream] { return next }
        guard expected.count < Self.maximumStreams else { return nil }
        expected[stream] = 0
        return 0
    }

    /// Delivers the messages whose turn it is.
    private mutating func deliverWaiting(of stream: UInt16) {
        guard let next = expected[stream], let queue = waiting[stream] else { return }
        var count = 0
        while count < queue.count, queue[count].sequence == next &+ UInt16(count) { count += 1 }
        deliverWaiting(of: stream, count: count)
        expected[stream] = next &+ UInt16(count)
    }

    /// Delivers the first `count` messages that wait on a stream.
    private mutating func deliverWaiting(of stream: UInt16, count: Int) {
        guard count > 0, let passed = waiting[stream]?.prefix(count) else { return }
        for entry in passed {
            cost -= entry.cost
            append(entry.message)
        }
        waiting[stream]?.removeFirst(count)
        waitingCount -= count
        if waiting[stream]?.isEmpty == true { waiting[stream] = nil }
    }

    private mutating func append(_ message: ReceivedMessage) {
        cost += message.payload.count + Self.overhead
        whole.append(message)
    }

    /// The oldest whole message, without removing it.
    var first: ReceivedMessage? { nextWhole < whole.count ? whole[nextWhole] : nil }

    /// The oldest whole message for which `isMeant` holds, and how many are before it. A message for which it does not hold is not examined again: call
    /// `searchAgain` when the answer may have changed.
    mutating func first(where isMeant: (ReceivedMessage) -> Bool) -> (message: ReceivedMessage, index: Int)? {
        guard let place = whole[(nextWhole + searched)...].firstIndex(where: isMeant) else {
            searched = whole.count - nextWhole
            return nil
        }
        searched = place - nextWhole
        return (whole[place], searched)
    }

    /// `first(where:)` examines all messages again.
    mutating func searchAgain() { searched = 0 }

    /// Removes the whole message with this many before it.
    mutating func remove(at index: Int) -> ReceivedMessage? {
        guard index > 0, nextWhole + index < whole.count else { return removeFirst() }
        let message = whole.remove(at: nextWhole + index)
        if index < searched { searched -= 1 }
        cost -= message.payload.count + Self.overhead
        return message
    }

    /// Whole messages of these streams, of any stream if the list is empty, were not delivered yet.
    func holdsMessages(of streams: [UInt16]) -> Bool {
        guard !streams.isEmpty else { return first != nil }
        let streams = Set(streams)
        return whole[nextWhole...].contains { streams.contains($0.stream) }
    }

    /// Removes the oldest whole message.
    private mutating func removeFirst() -> ReceivedMessage? {
        guard nextWhole < whole.count else { return nil }
        let message = whole[nextWhole]
        cost -= message.payload.count + Self.overhead
        nextWhole += 1
        searched = max(0, searched - 1)
        if nextWhole == whole.count {
            whole = []
            nextWhole = 0
        } else if nextWhole >= 64 {
            whole.removeFirst(nextWhole)
            nextWhole = 0
        }
        return message
    }

    /// The sender has abandoned everything up to `tsn`: unfinished messages there never become whole.
    mutating func discard(to tsn: Int64) {
        let count = runs.prefix { $0.first <= tsn }.count
        for run in runs[..<count] { cost -= run.cost }
        runs.removeFirst(count)
    }

    /// The sender has abandoned the ordered messages of a stream up to `sequence` (RFC 3758 section 3.6). A stream that was never used gets no place.
    mutating func skip(stream: UInt16, to sequence: UInt16) {
        guard let next = expected[stream], Int16(bitPattern: sequence &- next) >= 0 else { return }
        // Those that did arrive are delivered first.
        let passed = waiting[stream]?.prefix { Int16(bitPattern: $0.sequence &- sequence) <= 0 }.count ?? 0
        deliverWaiting(of: stream, count: passed)
        expected[stream] = sequence &+ 1
        deliverWaiting(of: stream)
    }

    /// The sender starts the stream again with sequence number 0 (RFC 6525 section 5.2.2).
    mutating func reset(stream: UInt16) {
        expected[stream] = nil
        let abandoned = waiting.removeValue(forKey: stream) ?? []
        for entry in abandoned { cost -= entry.cost }
        waitingCount -= abandoned.count
    }

    /// The sender starts all streams again.
    mutating func resetAll() {
        for stream in Array(waiting.keys) { reset(stream: stream) }
        expected = [:]
    }
}
