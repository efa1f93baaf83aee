import Primitives

/// Numbers that a subscriber misses, and when it requests them, as libwebrtc does: at once, then once per round trip, at most ten
/// times.
struct RepairList: Sendable {
    static let maximumTries = 10

    private struct Missing: Sendable {
        var number: Int64
        var tries = 0
        var due: MonotonicTime
    }

    private var missing: [Missing] = []
    private var highest: Int64?

    var isEmpty: Bool { missing.isEmpty }
    var nextDeadline: MonotonicTime { missing.lazy.map(\.due).min() ?? .distantFuture }

    /// Notes that `number` arrived; gaps before it will be requested. `false` if so much is missing that only a keyframe helps.
    mutating func received(_ number: Int64, at now: MonotonicTime) -> Bool {
        guard let highest else {
            self.highest = number
            return true
        }
        guard number > highest else {
            missing.removeAll { $0.number == number }
            return true
        }
        self.highest = number
        guard number - highest <= 1_000 else {
            missing = []
            return false
        }
        for gap in (highest + 1)..<max(number, highest + 1) { missing.append(Missing(number: gap, due: now)) }
        return true
    }

    /// Everything from `number` on can be shown, because a complete keyframe begins there: what is missing before it is no longer needed (libwebrtc's
    /// `RtpVideoStreamReceiver2::FrameContinuous`, `NackRequester::ClearUpTo`).
    mutating func clear(before number: Int64) {
        guard !missing.isEmpty else { return }
        missing.removeAll { $0.number < number }
    }

    /// The numbers to request now; `gaveUp` if some were requested as often as allowed.
    mutating func dueRequests(at now: MonotonicTime, interval: TimeSpan, gaveUp: inout Bool) -> [Int64] {
        var due: [Int64] = []
        for index in missing.indices where missing[index].due <= now {
            missing[index].tries += 1
            missing[index].due = now + interval
            if missing[index].tries <= Self.maximumTries { due.append(missing[index].number) }
        }
        let count = missing.count
        missing.removeAll { $0.tries > Self.maximumTries }
        gaveUp = missing.count < count
        return due
    }
}
