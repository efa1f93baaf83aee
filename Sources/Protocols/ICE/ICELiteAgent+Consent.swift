public import Primitives

/// The server's own checks that wait for an answer.
struct OpenChecks {
    struct Check {
        let id: TransactionID
        let destination: SocketAddress
        let credential: ICECredential
        let sentAt: MonotonicTime
    }

    /// Checks leave every 5 s and consent is lost in 30 at most: an answer to an older one has no use.
    static let limit = 4
    private var checks: [Check] = []

    init() { checks.reserveCapacity(Self.limit) }

    mutating func append(_ check: Check) {
        if checks.count == Self.limit { checks.removeFirst() }
        checks.append(check)
    }

    func contains(_ id: TransactionID) -> Bool { checks.contains { $0.id == id } }

    func match(_ id: TransactionID, from source: SocketAddress) -> Check? {
        checks.first { $0.id == id && $0.destination == source }
    }

    mutating func remove(_ id: TransactionID) { checks.removeAll { $0.id == id } }
}

extension ICELiteAgent {
    /// When `advance` wants to be called.
    public var nextDeadline: MonotonicTime {
        if isOver { return .distantFuture }
        return selected == nil ? setupDeadline : min(nextCheck, lastSignOfLife + settings.consentTimeout)
    }

    /// Ends a peer whose time is up and sends the server's own checks (RFC 7675 section 5.1).
    public mutating func advance(
        to now: MonotonicTime, stun: STUNAgent, random: inout RandomSource, into output: inout OutboundBatch
    ) {
        guard !isOver, now >= nextDeadline else { return }
        guard let selected else { return end(.setupTimedOut) }
        guard now - lastSignOfLife < settings.consentTimeout else { return end(.consentLost) }
        if now >= nextCheck { check(selected, now, stun, &random, &output) }
        releaseSilent(at: now)
    }

    private mutating func check(
        _ destination: SocketAddress, _ now: MonotonicTime, _ stun: STUNAgent, _ random: inout RandomSource,
        _ output: inout OutboundBatch
    ) {
        // 0.8 to 1.2 of the interval, so that peers which joined together do not stay in step.
        let base = settings.checkInterval
        let spread = UInt64(base.nanoseconds / 1_000 * 4 / 10)
        nextCheck = now + base * 8 / 10 + .microseconds(Int64(random.next() % max(1, spread)))
        // A peer whose description has not come yet has no password; its own checks keep it alive.
        guard let remote = previousRemote ?? remote else { return }
        guard
            let id = stun.sendCheck(
                to: destination, local: previousLocal ?? local, remote: remote, controlling: false, nominate: false,
                priority: Self.checkPriority, into: &output)
        else { return }
        openChecks.append(.init(id: id, destination: destination, credential: remote, sentAt: now))
    }

    /// Peer reflexive, highest local preference, component 1 (RFC 8445 section 5.1.2.1).
    static var checkPriority: UInt32 { 110 << 24 | 65_535 << 8 | 255 }
}
