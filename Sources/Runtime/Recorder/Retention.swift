import Primitives

/// Which recordings have been kept for long enough.
///
/// The wall clock says how old one is when it is first looked at, which is within seconds of its end or of the server's start. From then on it ages by the monotonic clock: a wall clock that is
/// set, by an hour or by years, deletes nothing early. One that was wrong at first and is set right keeps nothing for longer than anew.
struct Retention {
    private let kept: TimeInterval
    /// By the recordings' sids.
    private var ends: [String: MonotonicTime] = [:]

    /// Recordings are kept for so long after their end; zero: for ever.
    init(_ kept: TimeInterval) { self.kept = kept }

    /// Those of all `recordings` there are that have been kept for long enough; `wallClock` in milliseconds since 1970.
    mutating func expired(
        of recordings: [RecordingSummary], wallClock: Int64, at now: MonotonicTime
    ) -> [RecordingSummary] {
        guard kept > .zero else { return [] }
        let former = ends
        ends = [:]
        return recordings.filter { recording in
            guard let since = recording.retainedFrom else { return false }
            let age = TimeInterval.milliseconds(min(max(0, wallClock - since), kept.milliseconds + 1))
            let end = former[recording.sid] ?? now + (kept - age)
            ends[recording.sid] = end
            return end <= now
        }
    }
}
