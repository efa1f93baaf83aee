import Primitives

/// Decides which recordings have been kept long enough.
///
/// The wall clock determines the age of a recording when it is first checked, within seconds of its end. From then on it ages by the monotonic clock, so
/// setting the wall clock, by an hour or by years, deletes nothing early. For recordings of an earlier run of the server only the wall clock is known, so none
/// of them is deleted until the machine has had time to set it after its start. One that then seems to have ended in the future is kept as long as one that
/// ends now, but its summary stays unchanged: the next run may know better.
struct Retention {
    /// The result of a check.
    struct Findings {
        /// Recordings that have been kept long enough.
        var expired: [RecordingSummary] = []
        /// For others, by sid, the start of their retention by the current wall clock, if it differs from their summaries: the next run of the server knows
        /// only the summaries.
        var moved: [String: Int64] = [:]
    }

    private let kept: TimeSpan
    private let isForever: Bool
    /// Recordings of an earlier run of the server.
    let inherited: Set<String>
    /// Those that ended, by their summaries, after the time at which the clock was first trusted: it is wrong, or was then, and their age is unknown.
    private var ofUnknownAge: Set<String> = []
    private var began: MonotonicTime?
    /// By the recordings' sids.
    private var ends: [String: MonotonicTime] = [:]

    /// A machine without a battery-backed clock has the time within a minute of having a network, and the server may start earlier.
    static let settling = TimeSpan.seconds(600)
    /// A hundred years.
    private static let forever = TimeSpan.seconds(3_155_760_000)
    /// In milliseconds. Retention need not be exact to the minute.
    private static let clockTolerance: Int64 = 60_000

    /// Recordings are kept this long after their end; zero: forever. `inherited`: those of an earlier run of the server.
    init(_ kept: TimeSpan, inherited: Set<String> = []) {
        // Even if none is deleted by age, those that ended first are deleted first for lack of space.
        self.kept = kept > .zero ? kept : Self.forever
        isForever = kept <= .zero
        self.inherited = inherited
    }

    /// Checks all `recordings`; `wallClock` in milliseconds since 1970.
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
            let age = TimeSpan.milliseconds(min(max(0, wallClock - since), kept.milliseconds + 1))
            let end = former[recording.sid] ?? now + (kept - age)
            ends[recording.sid] = end
            let moved = wallClock - (kept - (end - now)).milliseconds
            if end <= now {
                // A clock that is a century ahead deletes nothing that is to be kept forever.
                if !isForever { findings.expired.append(recording) }
            } else if !ofUnknownAge.contains(recording.sid), abs(moved - since) > Self.clockTolerance {
                findings.moved[recording.sid] = moved
            }
        }
        return findings
    }
}
