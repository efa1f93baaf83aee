import Primitives

/// Whether the server may send to one address: its own checks to it, and the responses (RFC 7675).
///
/// Only an authentic response to a check that the server sent there proves that the peer receives at the address and consents. Packets from the address prove
/// nothing: a sender that can forge source addresses can use anybody's.
struct Consent {
    /// A check of the server that is awaiting its response.
    struct Check {
        let id: TransactionID
        let credential: ICECredential
        let sentAt: MonotonicTime
    }

    /// Retransmissions follow 100, 200 and 400 ms after the first check: responses over a path of 700 ms still match.
    private static let openLimit = 4
    /// Before the first response: sooner than a user notices that nothing arrives, later than most round trips.
    private static let firstRepeat = TimeSpan.milliseconds(100)
    /// While consent expires: RFC 7675 section 5.1 requires 4 s between checks and expiry after 30 s. Here consent lasts 15 s by default, in which
    /// lossy links lose three checks in a row.
    private static let urgentInterval = TimeSpan.seconds(1)

    private var open: [Check] = []
    private var unanswered = 0
    private var renewal = MonotonicTime.zero
    /// Until when the server may send to the address; nil before the first response and after expiry.
    private(set) var expiry: MonotonicTime?
    /// When the server must check the address next.
    private(set) var nextCheck = MonotonicTime.distantFuture

    var isGiven: Bool { expiry != nil }
    var nextDeadline: MonotonicTime { min(nextCheck, expiry ?? .distantFuture) }

    func match(_ id: TransactionID) -> Check? { open.first { $0.id == id } }

    /// The address must be checked at once: the peer has just sent from there.
    mutating func request(at now: MonotonicTime) {
        unanswered = 0
        nextCheck = now
    }

    /// A check was sent; `renewal` is when the next one is due if it is answered.
    mutating func sent(_ check: Check, interval: TimeSpan, renewal: MonotonicTime) {
        if open.count == Self.openLimit { open.removeFirst() }
        open.append(check)
        let pause = isGiven ? Self.urgentInterval : Self.firstRepeat * Int64(1 << min(unanswered, 10))
        unanswered += 1
        nextCheck = check.sentAt + min(pause, interval)
        self.renewal = renewal
    }

    /// Nothing could be sent; the next attempt is due at `time`.
    mutating func postpone(to time: MonotonicTime) { nextCheck = time }

    /// An authentic response to one of the checks arrived; whether it was the first, or the first after consent had expired.
    mutating func answered(_ check: Check, until expiry: MonotonicTime) -> Bool {
        open.removeAll { $0.id == check.id }
        unanswered = 0
        nextCheck = .distantFuture
        defer { self.expiry = expiry }
        return !isGiven
    }

    /// The address is in use: its consent is renewed before it expires. That of unused addresses is not.
    mutating func keep(at now: MonotonicTime) { nextCheck = min(nextCheck, max(renewal, now)) }

    /// Removes expired consent.
    mutating func expire(at now: MonotonicTime) {
        if let expiry, now >= expiry { self.expiry = nil }
    }
}
