import Primitives

/// Whether one address may be sent to: the server's own checks to it, and what came back (RFC 7675).
///
/// Only an authentic answer to a check that the server sent there proves that the peer is there and wants what it is sent. What
/// comes from the address proves nothing: whoever can forge a source address can name anybody's.
struct Consent {
    /// A check of the server that waits for its answer.
    struct Check {
        let id: TransactionID
        let credential: ICECredential
        let sentAt: MonotonicTime
    }

    /// Repeats leave 100, 200 and 400 ms after the first check: the answers of a path of 700 ms still find theirs.
    private static let openLimit = 4
    /// Before the first answer: sooner than a person notices that nothing comes, later than most round trips.
    private static let firstRepeat = TimeInterval.milliseconds(100)
    /// While consent runs out: RFC 7675 section 5.1 asks for 4 s between checks and gives up after 30 s. Here consent lasts 15 s
    /// by default, in which lossy links lose three checks in a row.
    private static let urgentInterval = TimeInterval.seconds(1)

    private var open: [Check] = []
    private var unanswered = 0
    private var renewal = MonotonicTime.zero
    /// Until when the address may be sent to; nil before the first answer and after the last one's time.
    private(set) var expiry: MonotonicTime?
    /// When the server is to check the address next.
    private(set) var nextCheck = MonotonicTime.distantFuture

    var isGiven: Bool { expiry != nil }
    var nextDeadline: MonotonicTime { min(nextCheck, expiry ?? .distantFuture) }

    func match(_ id: TransactionID) -> Check? { open.first { $0.id == id } }

    /// The address is to be checked at once: the peer has just shown itself there.
    mutating func request(at now: MonotonicTime) {
        unanswered = 0
        nextCheck = now
    }

    /// A check has left; `renewal` is when the next one is due if it is answered.
    mutating func sent(_ check: Check, interval: TimeInterval, renewal: MonotonicTime) {
        if open.count == Self.openLimit { open.removeFirst() }
        open.append(check)
        let pause = isGiven ? Self.urgentInterval : Self.firstRepeat * Int64(1 << min(unanswered, 10))
        unanswered += 1
        nextCheck = check.sentAt + min(pause, interval)
        self.renewal = renewal
    }

    /// Nothing could be sent; the next attempt is due at `time`.
    mutating func postpone(to time: MonotonicTime) { nextCheck = time }

    /// An authentic answer to one of the checks came; whether it was the first, or the first after consent had expired.
    mutating func answered(_ check: Check, until expiry: MonotonicTime) -> Bool {
        open.removeAll { $0.id == check.id }
        unanswered = 0
        nextCheck = .distantFuture
        defer { self.expiry = expiry }
        return !isGiven
    }

    /// The address is in use: its consent is renewed before it expires. Others' is not.
    mutating func keep(at now: MonotonicTime) { nextCheck = min(nextCheck, max(renewal, now)) }

    /// Forgets consent whose time is over.
    mutating func expire(at now: MonotonicTime) {
        if let expiry, now >= expiry { self.expiry = nil }
    }
}
