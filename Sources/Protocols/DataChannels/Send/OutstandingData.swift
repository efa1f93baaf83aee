import Primitives

/// Fragments that were sent and are beyond the cumulatively acknowledged number (RFC 9260 sections 6.2.1 and 7.2.4).
struct OutstandingData {
    /// Missing reports after which a fragment counts as lost (section 7.2.4).
    private static let missesUntilLost = 3

    enum State { case inFlight, acknowledged, lost, abandoned }

    struct Sent {
        var fragment: Fragment
        var state = State.inFlight
        var sentAt: MonotonicTime
        var transmissions = 1
        var misses = 0

        var length: Int { fragment.range.count }
    }

    /// The result of a SACK.
    struct Progress {
        var bytes = 0
        var hasAdvanced = false
        var hasLoss = false
        var roundTrip: TimeSpan?
    }

    private var entries: [Sent] = []
    private var head = 0
    /// Number of the oldest entry.
    private var first: Int64
    /// Bytes that count against the congestion window.
    private(set) var flight = 0
    /// Bytes of reliable messages that are not acknowledged.
    private(set) var reliableBytes = 0
    /// Bytes of reliable messages that were acknowledged.
    private(set) var deliveredBytes = 0
    /// The number of entries per stream: a peer determines how often `uses` is called, so it must be cheap.
    private var perStream: [UInt16: Int] = [:]
    private var lostCount = 0
    private var searchFrom = 0
    /// The peer acknowledged everything up to here.
    var cumulative: Int64 { first - 1 }
    /// The highest number that was sent.
    var last: Int64 { first + Int64(entries.count - head) - 1 }

    init(firstTSN: UInt32) { first = Int64(firstTSN) }

    var isEmpty: Bool { head == entries.count }
    /// Fragments beyond the cumulatively acknowledged number.
    var count: Int { entries.count - head }
    var hasLoss: Bool { lostCount > 0 }

    /// Whether anything of the stream is not acknowledged.
    func uses(_ stream: UInt16) -> Bool { perStream[stream] != nil }

    /// A fragment is sent for the first time; returns its number.
    mutating func append(_ fragment: Fragment, at now: MonotonicTime) -> Int64 {
        entries.append(Sent(fragment: fragment, sentAt: now))
        perStream[fragment.stream, default: 0] += 1
        flight += fragment.range.count
        if fragment.reliability == .reliable { reliableBytes += fragment.range.count }
        return last
    }

    // MARK: - Acknowledgements

    /// Processes a SACK; nil when it acknowledges what was never sent, which ends the association.
    mutating func apply(_ report: Acknowledgement, at now: MonotonicTime) -> Progress? {
        let acknowledged = Serial.unwrap(report.cumulative, near: cumulative)
        var progress = Progress()
        guard acknowledged <= last, report.isOrdered else { return nil }
        if report.gapCount > 0, acknowledged + report.gap(report.gapCount - 1).end > last { return nil }
        // Older than one that has been processed.
        guard acknowledged >= cumulative else { return progress }
        progress.hasAdvanced = acknowledged > cumulative
        removeAcknowledged(to: acknowledged, at: now, &progress)
        applyGaps(report, at: now, &progress)
        return progress
    }

    private mutating func removeAcknowledged(to number: Int64, at now: MonotonicTime, _ progress: inout Progress) {
        while first <= number {
            count(entries[head], at: now, &progress)
            if entries[head].state == .lost { lostCount -= 1 }
            if entries[head].fragment.reliability == .reliable {
                reliableBytes -= entries[head].length
                deliveredBytes += entries[head].length
            }
            let stream = entries[head].fragment.stream, rest = perStream[stream, default: 1] - 1
            perStream[stream] = rest > 0 ? rest : nil
            entries[head].fragment.payload = []
            head += 1
            first += 1
        }
        searchFrom = 0
        if head == entries.count {
            entries.removeAll(keepingCapacity: entries.capacity <= 16)
            head = 0
        } else if head >= 64, head * 2 >= entries.count {
            entries.removeFirst(head)
            head = 0
        }
    }

    /// An entry is acknowledged for the first time.
    private func measure(_ sent: Sent, at now: MonotonicTime, _ progress: inout Progress) {
        // Karn's rule: a repeated fragment measures nothing (RFC 9260 section 6.3.1, rule five of C).
        if sent.transmissions == 1, sent.state == .inFlight { progress.roundTrip = now - sent.sentAt }
    }

    private mutating func count(_ sent: Sent, at now: MonotonicTime, _ progress: inout Progress) {
        measure(sent, at: now, &progress)
        guard sent.state == .inFlight || sent.state == .lost else { return }
        progress.bytes += sent.length
        if sent.state == .inFlight { flight -= sent.length }
    }

    private mutating func applyGaps(_ report: Acknowledgement, at now: MonotonicTime, _ progress: inout Progress) {
        guard report.gapCount > 0 else { return }
        var block = 0, highestNew: Int64 = 0
        let end = min(report.gap(report.gapCount - 1).end, Int64(entries.count - head))
        guard end > 0 else { return }
        for offset in 1...end {
            while block < report.gapCount, report.gap(block).end < offset { block += 1 }
            let isCovered = block < report.gapCount && report.gap(block).start <= offset
            let index = head + Int(offset) - 1
            switch (isCovered, entries[index].state) {
            case (true, .inFlight), (true, .lost):
                count(entries[index], at: now, &progress)
                if entries[index].state == .lost { lostCount -= 1 }
                entries[index].state = .acknowledged
                highestNew = offset
            case (false, .acknowledged):
                // The peer has dropped it again (section 6.2.1 D iii).
                entries[index].state = .inFlight
                flight += entries[index].length
            default: break
            }
        }
        guard highestNew > 1 else { return }
        for index in head..<(head + Int(highestNew) - 1) where entries[index].state == .inFlight {
            entries[index].misses += 1
            // A fragment is repeated in this way once; after that the timer decides (section 7.2.4, 3).
            if entries[index].misses >= Self.missesUntilLost, entries[index].transmissions == 1 {
                markLost(index)
                progress.hasLoss = true
            }
        }
    }

    // MARK: - Losses

    private mutating func markLost(_ index: Int) {
        flight -= entries[index].length
        entries[index].state = .lost
        lostCount += 1
        searchFrom = 0
    }

    /// The timer has expired: everything in flight counts as lost.
    mutating func markAllLost() {
        for index in head..<entries.count where entries[index].state == .inFlight { markLost(index) }
    }

    /// Messages that are lost and must not be repeated any more.
    func expired(at now: MonotonicTime) -> [Int64] {
        guard lostCount > 0 else { return [] }
        return entries[head...].filter {
            $0.state == .lost && $0.fragment.isExpired(transmissions: $0.transmissions, at: now)
        }.map(\.fragment.message)
    }

    /// Abandons a message (RFC 3758 section 3.5). `hasRest`: parts of it were not sent, so an empty last part takes a number, without which the
    /// receiver would keep the first parts for ever.
    mutating func abandon(_ message: Int64, hasRest: Bool, at now: MonotonicTime) {
        guard let sample = entries[head...].first(where: { $0.fragment.message == message }) else { return }
        for index in head..<entries.count where entries[index].fragment.message == message {
            switch entries[index].state {
            case .inFlight: flight -= entries[index].length
            case .lost: lostCount -= 1
            case .acknowledged, .abandoned: break
            }
            entries[index].state = .abandoned
        }
        guard hasRest else { return }
        var placeholder = sample
        placeholder.fragment.range = sample.fragment.payload.count..<sample.fragment.payload.count
        placeholder.state = .abandoned
        entries.append(placeholder)
        perStream[placeholder.fragment.stream, default: 0] += 1
    }

    /// The oldest lost fragment that has at most `room` bytes; it counts as sent again.
    mutating func nextLost(room: Int, at now: MonotonicTime) -> (number: Int64, fragment: Fragment)? {
        guard lostCount > 0 else { return nil }
        var index = max(head, searchFrom)
        while index < entries.count {
            if entries[index].state == .lost {
                guard entries[index].length <= room else { return nil }
                entries[index].state = .inFlight
                entries[index].misses = 0
                entries[index].transmissions += 1
                entries[index].sentAt = now
                flight += entries[index].length
                lostCount -= 1
                searchFrom = index + 1
                return (first + Int64(index - head), entries[index].fragment)
            }
            index += 1
        }
        return nil
    }

    // MARK: - Forward TSN

    /// Abandoned or acknowledged entries at the front, of which at least one was abandoned: the number up to which the peer should skip, and the
    /// highest sequence number of each ordered stream among them; nil when there is nothing to skip.
    func skippable(limit: Int) -> (number: Int64, streams: [(stream: UInt16, sequence: UInt16)])? {
        guard !isEmpty, entries[head].state == .abandoned else { return nil }
        var streams: [(stream: UInt16, sequence: UInt16)] = [], index = head
        while index < entries.count, entries[index].state == .abandoned || entries[index].state == .acknowledged {
            let fragment = entries[index].fragment
            if fragment.isOrdered, entries[index].state == .abandoned {
                if let place = streams.firstIndex(where: { $0.stream == fragment.stream }) {
                    streams[place].sequence = fragment.sequence
                } else {
                    guard streams.count < limit else { break }
                    streams.append((fragment.stream, fragment.sequence))
                }
            }
            index += 1
        }
        return (first + Int64(index - head) - 1, streams)
    }
}
