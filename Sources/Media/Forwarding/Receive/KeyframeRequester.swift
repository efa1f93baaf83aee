internal import Primitives

/// When to request a keyframe from one layer's sender, however many subscribers need one.
///
/// A request is repeated until a keyframe has begun. Requests are at least `interval` apart; after four without an answer the
/// interval doubles up to 4 s, because more requests do not help a sender that cannot answer (paused, in the background). The request for a layer
/// that is no longer sent is then given up: browsers answer for all layers, and every subscriber would pay for an unneeded keyframe.
struct KeyframeRequester: Sendable {
    /// Minimum interval between two requests.
    let interval: TimeSpan
    private(set) var isWanted = false
    /// The number of the next request, if requests are numbered (RFC 5104 section 4.3.1.1).
    private(set) var command: UInt8 = 0
    private var lastSent: MonotonicTime?
    private var tries = 0
    /// Requests since the keyframe became necessary.
    private var asked = 0
    private var isPaused = false
    /// The last need was given up: the next one keeps the longer interval.
    private var wasGivenUp = false
    /// Requests at the shortest interval.
    private static let patience = 4

    /// 500 ms, and 1 s for a screen, whose keyframes are large.
    init(isScreen: Bool) { interval = isScreen ? .seconds(1) : .milliseconds(500) }

    /// A subscriber needs a keyframe.
    mutating func request() {
        guard !isWanted else { return }
        isWanted = true
        asked = 0
        if !wasGivenUp { tries = 0 }
    }

    /// A keyframe has begun.
    mutating func keyframeStarted() { cancel() }

    /// Nothing is being sent: requests are pointless until something is.
    mutating func streamPaused() { isPaused = true }

    /// The stream resumes: request again soon.
    mutating func streamResumed() {
        isPaused = false
        tries = 0
    }

    /// The sender was unreachable for a while, or has moved: a request that it may have missed is repeated at once.
    mutating func senderReturned() {
        tries = 0
        lastSent = nil
    }

    /// The sender cannot answer any more.
    mutating func cancel() {
        isWanted = false
        wasGivenUp = false
    }

    /// Enough requests are unanswered to give up on a sender that sends nothing else.
    var isInVain: Bool { asked > 0 && tries >= Self.patience }

    /// Withdraws the request for a layer that is not sent. A subscriber that still needs the keyframe requests it again.
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
    mutating func consumeDue(at now: MonotonicTime) -> Bool {
        guard now >= nextDue else { return false }
        lastSent = now
        command &+= 1
        tries += 1
        asked += 1
        return true
    }
}
