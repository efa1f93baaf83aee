internal import Primitives

/// When to ask one layer's sender for a keyframe, however many subscribers want one.
///
/// A request stays until a keyframe has begun. Requests are at least `interval` apart; after four without an answer the
/// distance doubles up to 4 s, because a sender that cannot answer (paused, in the background) is not helped by more. A layer that is no
/// longer sent is given up then: browsers answer for all layers, and every viewer would pay for a keyframe that nobody waits for.
struct KeyframeRequester: Sendable {
    /// Least distance of two requests.
    let interval: TimeInterval
    private(set) var isWanted = false
    private var lastSent: MonotonicTime?
    private var tries = 0
    /// Requests for this need.
    private var asked = 0
    private var isPaused = false
    /// The last need was given up: requests for the next one are as far apart.
    private var wasGivenUp = false
    /// Requests at the shortest distance.
    private static let patience = 4

    /// 500 ms, and 1 s for a screen, whose keyframes are large.
    init(isScreen: Bool) { interval = isScreen ? .seconds(1) : .milliseconds(500) }

    /// Somebody needs a keyframe.
    mutating func request() {
        guard !isWanted else { return }
        isWanted = true
        asked = 0
        if !wasGivenUp { tries = 0 }
    }

    /// A keyframe has begun.
    mutating func keyframeStarted() { cancel() }

    /// Nothing is being sent: asking is of no use until something is.
    mutating func streamPaused() { isPaused = true }

    /// The stream goes on: ask again soon.
    mutating func streamResumed() {
        isPaused = false
        tries = 0
    }

    /// Nobody can answer any more.
    mutating func cancel() {
        isWanted = false
        wasGivenUp = false
    }

    /// Enough requests are without an answer to give a sender up that nothing else is heard of.
    var isInVain: Bool { asked > 0 && tries >= Self.patience }

    /// Withdraws the request for a layer that is not sent. Whoever still needs it asks anew.
    mutating func giveUp() {
        isWanted = false
        wasGivenUp = true
    }

    /// When the next request may be sent.
    var nextDue: MonotonicTime {
        guard isWanted, !isPaused else { return .distantFuture }
        guard let lastSent else { return .zero }
        return lastSent + min(interval * (1 << Int64(max(0, min(tries - Self.patience, 3)))), .seconds(4))
    }

    /// Whether to send one now; counts it as sent.
    mutating func takeDue(at now: MonotonicTime) -> Bool {
        guard now >= nextDue else { return false }
        lastSent = now
        tries += 1
        asked += 1
        return true
    }
}
