internal import Primitives

/// When to ask one layer's sender for a keyframe, however many subscribers want one (G5).
///
/// A wish stays until a keyframe has begun. Requests are at least `interval` apart; after four without an answer the
/// distance doubles up to 4 s, because a sender that cannot answer (paused, in the background) is not helped by more.
struct KeyframeRequester: Sendable {
    /// Least distance of two requests.
    let interval: TimeInterval
    private(set) var isWanted = false
    private var lastSent: MonotonicTime?
    private var tries = 0
    private var isPaused = false

    /// 500 ms, and 1 s for a screen, whose keyframes are large.
    init(isScreen: Bool) { interval = isScreen ? .seconds(1) : .milliseconds(500) }

    /// Somebody needs a keyframe.
    mutating func request() {
        guard !isWanted else { return }
        isWanted = true
        tries = 0
    }

    /// A keyframe has begun.
    mutating func keyframeStarted() { isWanted = false }

    /// Nothing is being sent: asking is of no use until something is.
    mutating func streamPaused() { isPaused = true }

    /// The stream goes on: ask again soon.
    mutating func streamResumed() {
        isPaused = false
        tries = 0
    }

    /// Nobody can answer any more.
    mutating func cancel() { isWanted = false }

    /// When the next request may be sent.
    var nextDue: MonotonicTime {
        guard isWanted, !isPaused else { return .distantFuture }
        guard let lastSent else { return .zero }
        return lastSent + min(interval * (1 << Int64(max(0, min(tries - 4, 3)))), .seconds(4))
    }

    /// Whether to send one now; counts it as sent.
    mutating func takeDue(at now: MonotonicTime) -> Bool {
        guard now >= nextDue else { return false }
        lastSent = now
        tries += 1
        return true
    }
}
