import Primitives

/// Detects that the process was stopped, or its machine was frozen or starved. Packets that waited in its sockets meanwhile are outdated.
///
/// No packet is examined for this. Every fetched packet arrived after the socket was last found empty, and a worker with peers checks at least ten
/// times a second, so a long time since then means that it could not check.
struct Standstill {
    /// Beyond 400 ms one way no conversation is possible (ITU-T G.114); media from a shorter pause is still useful.
    private static let longest = TimeSpan.milliseconds(500)
    /// Ten wake-ups per second without media; media wakes the loop more often.
    private static let lookInterval = TimeSpan.milliseconds(100)

    /// Until the first check nothing is late.
    private var lastEmpty = MonotonicTime.distantFuture

    /// The socket was empty at the beginning of the turn at `now`.
    mutating func foundNoMore(at now: MonotonicTime) { lastEmpty = now }

    /// Whether packets that wait at `now` may have waited too long.
    func isOver(at now: MonotonicTime) -> Bool { lastEmpty < now && now - lastEmpty > Self.longest }

    /// When the loop must read without being woken.
    var nextLook: MonotonicTime { lastEmpty + Self.lookInterval }
}
