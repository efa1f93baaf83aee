import Primitives

/// Numbers that a subscriber misses and when it asks for them again, as libwebrtc does: at once, then once a round trip, ten
/// times at most.
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

    /// Notes that `number` came; gaps before it are asked for. `false` when so much is missing that only a keyframe helps.
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

    /// Everything from `number` on can be shown, as a whole keyframe begins there: what is missing before it is of no use any more (libwebrtc's
    /// `RtpVideoStreamReceiver2::FrameContinuous`, `NackRequester::ClearUpTo`).
    mutating func clear(before number: Int64) {
        guard !missing.isEmpty else { return }
        missing.removeAll { $0.number < number }
    }

    /// The numbers to ask for now; `gaveUp` when some were asked for often enough.
    mutating func dueRequests(at now: MonotonicTime, interval: TimeInterval, gaveUp: inout Bool) -> [Int64] {
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
