internal import Primitives

/// Which packets of one stream to request again (RFC 4585 section 6.2.1): each missing number once per round trip, until
/// it arrives, ten requests were in vain, or it is too old to be of use; then one keyframe is requested instead.
struct NackGenerator: ~Copyable {
    /// Maximum missing numbers tracked. More at once is an outage, which a keyframe repairs and retransmissions would prolong.
    static let capacity = 256
    /// A number may be late just because of reordering; an immediate request would double the traffic on paths that reorder.
    static let reorderTolerance = TimeSpan.milliseconds(10)
    /// A sender that retransmits nothing is asked for a keyframe only when a packet is later than nearly any reordering explains, because each keyframe costs
    /// all subscribers.
    static let hopelessAge = TimeSpan.milliseconds(100)
    /// Faster requests only cause duplicates, however short the measured round trip is.
    static let minimumInterval = TimeSpan.milliseconds(20)
    static let maximumTries: UInt8 = 10
    /// By then receivers have frozen and requested a keyframe, and the publisher's own history is about as long.
    static let maximumAge = TimeSpan.seconds(1)

    private struct Missing {
        var sequence: Int64
        var noticed: MonotonicTime
        var due: MonotonicTime
        var asked: MonotonicTime
        var tries: UInt8
    }

    /// Sorted by sequence, because gaps open at the upper end only. Allocated with the first gap: a stream without loss
    /// has none, nor has any audio stream.
    private var missing: UnsafeMutablePointer<Missing>?
    /// Numbers tracked as missing.
    private(set) var count = 0
    /// When the next number is due for a request or for giving up.
    private(set) var nextDue = MonotonicTime.distantFuture

    deinit { missing?.deallocate() }

    /// The numbers from `first` up to, not including, `end` are missing; true when there are too many to request.
    mutating func add(from first: Int64, to end: Int64, at now: MonotonicTime) -> Bool {
        guard end - first <= Int64(Self.capacity - count) else {
            removeAll()
            return true
        }
        let entries = missing ?? .allocate(capacity: Self.capacity)
        missing = entries
        let due = now + Self.reorderTolerance
        for sequence in first..<end {
            entries[count] = Missing(sequence: sequence, noticed: now, due: due, asked: .zero, tries: 0)
            count += 1
        }
        nextDue = min(nextDue, due)
        return false
    }

    /// `sequence` arrived. Returns the time since its request if it was requested exactly once (otherwise it is ambiguous which
    /// request it answers, as in Karn's rule).
    mutating func remove(_ sequence: Int64, at now: MonotonicTime) -> TimeSpan? {
        guard let missing, let index = index(of: sequence) else { return nil }
        let entry = missing[index]
        removeEntry(at: index)
        return entry.tries == 1 ? now - entry.asked : nil
    }

    /// Numbers below `sequence` are no longer needed: a keyframe starts there.
    mutating func forget(below sequence: Int64) {
        guard let missing else { return }
        var kept = 0
        while kept < count, missing[kept].sequence < sequence { kept += 1 }
        guard kept > 0 else { return }
        (missing).update(from: missing + kept, count: count - kept)
        count -= kept
        if count == 0 { nextDue = .distantFuture }
    }

    /// Whether `sequence` is tracked as missing.
    func contains(_ sequence: Int64) -> Bool { index(of: sequence) != nil }

    /// The first number of the unbroken run of missing numbers just before `sequence`; `sequence` itself if there are none.
    func start(ofRunBefore sequence: Int64) -> Int64 {
        var start = sequence
        while contains(start - 1) { start -= 1 }
        return start
    }

    mutating func removeAll() {
        count = 0
        nextDue = .distantFuture
    }

    /// Writes the wire numbers to request at `now` to `output`, at most as many as fit. `asks`: false for a sender that retransmits nothing; its numbers are
    /// given up once reordering cannot explain their delay any more.
    mutating func consumeDue(
        at now: MonotonicTime, roundTrip: TimeSpan, asks: Bool = true,
        into output: UnsafeMutableBufferPointer<UInt16>
    ) -> (count: Int, gaveUp: Bool) {
        guard now >= nextDue, let missing else { return (0, false) }
        let interval = max(roundTrip, Self.minimumInterval)
        var written = 0, kept = 0, gaveUp = false
        var next = MonotonicTime.distantFuture
        for index in 0..<count {
            var entry = missing[index]
            let maximumAge = asks ? Self.maximumAge : Self.hopelessAge
            if now - entry.noticed >= maximumAge || (entry.tries >= Self.maximumTries && now >= entry.due) {
                gaveUp = true
                continue
            }
            if !asks { entry.due = entry.noticed + maximumAge }
            if now >= entry.due, written < output.count {
                output[written] = UInt16(truncatingIfNeeded: entry.sequence)
                written += 1
                entry.tries += 1
                entry.asked = now
                entry.due = now + interval
            }
            next = min(next, min(entry.due, entry.noticed + maximumAge))
            missing[kept] = entry
            kept += 1
        }
        count = kept
        nextDue = next
        return (written, gaveUp)
    }

    private func index(of sequence: Int64) -> Int? {
        guard let missing else { return nil }
        var low = 0, high = count
        while low < high {
            let middle = (low + high) / 2
            if missing[middle].sequence < sequence { low = middle + 1 } else { high = middle }
        }
        return low < count && missing[low].sequence == sequence ? low : nil
    }

    private mutating func removeEntry(at index: Int) {
        guard let missing else { return }
        (missing + index).update(from: missing + index + 1, count: count - index - 1)
        count -= 1
        if count == 0 { nextDue = .distantFuture }
    }
}
