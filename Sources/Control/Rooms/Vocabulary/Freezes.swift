public import Primitives

/// How often and for how long a video froze where it is played (`freezeCount` and `totalFreezesDuration` of W3C webrtc-stats).
public struct Freezes: Sendable, Hashable {
    public var count: UInt64
    public var duration: TimeSpan

    /// A number of freezes and their total duration.
    public init(count: UInt64 = 0, duration: TimeSpan = .zero) {
        self.count = count
        self.duration = duration
    }

    /// The sum of both.
    public static func + (a: Self, b: Self) -> Self {
        Self(count: a.count + b.count, duration: a.duration + b.duration)
    }
}

/// What a client reports about the playback of one video.
public struct PlaybackReport: Sendable, Hashable {
    /// sid of the track.
    public var track: String
    /// Since the client began to play it.
    public var freezes: Freezes

    /// A report about `track`.
    public init(track: String, freezes: Freezes) {
        self.track = track
        self.freezes = freezes
    }
}

/// The freezes of one subscription, from the counts that its client reports.
struct ReportedFreezes: Sendable, Hashable {
    /// The client's last counts.
    private var last = Freezes()
    /// The total, also if the client restarted its counts; nil until it has reported any count.
    private(set) var total: Freezes?

    /// webrtc-stats counts a freeze if a frame is late by at least 150 ms.
    private static let shortest = TimeSpan.milliseconds(150)

    /// Adds the client's counts of a stay that has lasted for `stay`; returns what they add. No more can have been frozen than was played.
    mutating func note(_ counts: Freezes, stay: TimeSpan) -> Freezes {
        let before = total ?? Freezes()
        let isAnew = counts.count < last.count || counts.duration < last.duration
        let new = isAnew ? counts : Freezes(count: counts.count - last.count, duration: counts.duration - last.duration)
        last = counts
        let most = UInt64(max(stay.nanoseconds / Self.shortest.nanoseconds, 0)) + 1
        let after = Freezes(
            count: max(before.count, min(before.count + new.count, most)),
            duration: max(before.duration, min(before.duration + new.duration, stay)))
        total = after
        return Freezes(count: after.count - before.count, duration: after.duration - before.duration)
    }
}
