import Primitives

/// When the subscribers of one track may change to another size of it because bandwidth falls or rises.
///
/// A change of size begins with a keyframe, and the publisher's keyframe goes to all subscribers. Those behind one bottleneck also change for the same
/// cause, one shortly after the other. So the changes of a track come at common moments: after one, the next must wait. Few become larger at one
/// moment, because on a shared bottleneck each of them counts on the same bandwidth.
struct SizeChanges {
    private var last = MonotonicTime.zero
    /// When subscriptions last became larger, and how many.
    private var lastRaise = MonotonicTime.zero
    private var raises = 0

    /// The aim is at most one keyframe request per track in this time (Tests/Requirements.md, five viewers behind one bottleneck).
    private static let period = TimeInterval.seconds(2)
    /// Raises use every second moment: whether one was too much shows in the queue only after its keyframe and a report (measured over 30 runs of
    /// five viewers behind one bottleneck: with raises at each moment 23 changes in 50 s instead of 19, worst 8 requests in 2 s instead of 5).
    private static let raisePeriod = TimeInterval.seconds(4)
    /// One of so many subscriptions may become larger at a moment: of five behind one bottleneck one (measured: if all may, the queue overflows for
    /// everybody, with freezes of up to 3 s); of many, which are rarely behind the same one, each gets its turn within 16 s.
    private static let subscriptionsPerRaise = 4

    /// The next common moment.
    var next: MonotonicTime { last == .zero ? .zero : last + Self.period }

    /// Admits a change of one of a track's `count` subscriptions at `now`; false: it must wait for a common moment.
    mutating func admit(isRaise: Bool, among count: Int, at now: MonotonicTime) -> Bool {
        guard now == last || now >= next else { return false }
        if isRaise {
            if now != lastRaise {
                guard lastRaise == .zero || now - lastRaise >= Self.raisePeriod else { return false }
                lastRaise = now
                raises = 0
            }
            guard raises < max(1, count / Self.subscriptionsPerRaise) else { return false }
            raises += 1
        }
        last = now
        return true
    }

    /// A keyframe is necessary at once: whoever waits changes with it.
    mutating func open() { last = .zero }
}
