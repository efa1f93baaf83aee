import Primitives

/// Which recordings have been kept for long enough.
///
/// The wall clock says how old one is when it is first looked at, which is within seconds of its end. From then on it ages by the monotonic clock: a wall clock that is set, by an hour
/// or by years, deletes nothing early. Of what an earlier life of the server has left the wall clock alone says how old it is: until the machine has had time to set it after its start, none
/// of that is deleted. What seems to have ended in the future then is kept for as long as what ends now, but its summary stays as it is: the next life may know better.
struct Retention {
    /// What a look has found.
    struct Findings {
        /// Recordings that have been kept for long enough.
        var expired: [RecordingSummary] = []
        /// By their sids, since when others have been kept by the wall clock as it is now, where that is not what their summaries say: the next life of the server knows nothing else.
        var moved: [String: Int64] = [:]
    }

    private let kept: TimeInterval
    private let isForever: Bool
    /// Recordings of an earlier life of the server.
    let inherited: Set<String>
    /// Those of them that ended, by their summaries, after what the clock showed when it was first believed: it is wrong, or was then, and nobody knows how old they are.
    private var ofUnknownAge: Set<String> = []
    private var began: MonotonicTime?
    /// By the recordings' sids.
    private var ends: [String: MonotonicTime] = [:]

    /// A machine without a clock of its own has the time within a minute of having a network, and the server may be there first.
    static let settling = TimeInterval.seconds(600)
    /// A hundred years.
    private static let forever = TimeInterval.seconds(3_155_760_000)
    /// In milliseconds. Nobody keeps recordings to the minute.
    private static let clockTolerance: Int64 = 60_000

    /// Recordings are kept for so long after their end; zero: for ever. `inherited`: those of an earlier life of the server.
    init(_ kept: TimeInterval, inherited: Set<String> = []) {
        // Even where none is deleted by age, those that ended first are deleted first for space.
        self.kept = kept > .zero ? kept : Self.forever
        isForever = kept <= .zero
        self.inherited = inherited
    }

    /// Looks at all `recordings` there are; `wallClock` in milliseconds since 1970.
    mutating func look(at recordings: [RecordingSummary], wallClock: Int64, at now: MonotonicTime) -> Findings {
        var findings = Findings()
        let began = began ?? now, former = ends
        self.began = began
        ends = [:]
        for recording in recordings {
            guard let since = recording.retainedFrom else { continue }
            if now - began < Self.settling, inherited.contains(recording.sid) { continue }
            if former[recording.sid] == nil, inherited.contains(recording.sid),
                wallClock < since - Self.clockTolerance
            {
                ofUnknownAge.insert(recording.sid)
            }
            let age = TimeInterval.milliseconds(min(max(0, wallClock - since), kept.milliseconds + 1))
            let end = former[recording.sid] ?? now + (kept - age)
            ends[recording.sid] = end
            let moved = wallClock - (kept - (end - now)).milliseconds
            if end <= now {
                // A clock that is a century ahead deletes nothing of what is to be kept for ever.
                if !isForever { findings.expired.append(recording) }
            } else if !ofUnknownAge.contains(recording.sid), abs(moved - since) > Self.clockTolerance {
                findings.moved[recording.sid] = moved
            }
        }
        return findings
    }
}
