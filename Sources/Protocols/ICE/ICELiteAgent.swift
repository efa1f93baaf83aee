public import Primitives

/// ICE-lite for one peer (RFC 8445 sections 2.5 and 7.3, RFC 7675): answers checks, follows the peer's nominations, and sends only where its own
/// checks are answered.
///
/// Sans-IO. An address goes through three states: *validated* when an authentic check has arrived from it, so that DTLS and SRTP from it are
/// accepted; *consented* when it has answered the server's own check; *selected* when the peer has nominated it as well. The peer stays connected as
/// long as anything authentic arrives: new checks, responses, SRTP. So a client that never answers checks (ffmpeg while it sends) stays as a sender,
/// and is sent next to nothing.
public struct ICELiteAgent {
    /// Addresses that a peer may have validated at the same time: two interfaces, IPv4 and IPv6, and a relay each.
    public static let maximumAddresses = 8
    /// A selected address that is silent for this long is replaced by another one that is not, even without a nomination: longer than the pauses of
    /// RTCP and video, shorter than a user notices.
    private static let silenceBeforeFollowing = TimeSpan.seconds(2)
    /// The same for an address that was found by media, which peers send only on the pair in use: longer than pauses of feedback (250 ms) and DTX (400 ms).
    private static let silenceBeforeRemapping = TimeSpan.milliseconds(500)
    /// Checks by themselves prove no move: a browser with nothing to send checks its selected pair every 2.5 s, and its others every 25 s. So the selected
    /// address is checked first, and has this long to answer: one check may be lost, and the next one, a second later, answered (`Consent`).
    private static let answerTime = TimeSpan.seconds(2)
    /// A peer that has just connected tries its pairs one by one and nominates a better one when it answers (RFC 8445 section 8.1.1): until then
    /// another address is its choice, not a move. Browsers finish within a second.
    private static let settlingTime = TimeSpan.seconds(3)
    /// RFC 7675 section 5.1: without a check for 30 s the server may not send to an address.
    private static let addressLifetime = TimeSpan.seconds(30)
    /// A check for which the credit did not suffice is retried: media from the address may have added some.
    private static let creditInterval = TimeSpan.milliseconds(500)
    /// Peer reflexive, highest local preference, component 1 (RFC 8445 section 5.1.2.1).
    private static let checkPriority: UInt32 = 110 << 24 | 65_535 << 8 | 255

    private struct PeerAddress {
        let address: SocketAddress
        var lastSeen: MonotonicTime
        /// Media came from it before any check.
        var isRemapped = false
        var consent = Consent()
        var credit = SendingCredit()
    }

    private let settings: ICESettings
    private var local: ICECredential
    /// Valid until a check with `local` arrives.
    private var previousLocal: ICECredential?
    private var remote: ICECredential?
    /// What the server's own checks use until the peer is known to use the new ones.
    private var previousRemote: ICECredential?
    private var addresses: [PeerAddress] = []
    private var history = CheckHistory()
    /// Bytes in addition to the credit that addresses earn by what they send.
    private var allowance = SendingCredit.allowance
    /// The nominated address that has consented.
    public private(set) var selected: SocketAddress?
    /// A newer nomination, pending until its address answers.
    public private(set) var nominee: SocketAddress?
    private var selectedSeen = MonotonicTime.zero
    /// When a check last asked whether the peer is still there.
    private var askedAt = MonotonicTime.zero
    /// When the peer's choice of an address counts as settled; nil before the first.
    private var settledAt: MonotonicTime?
    private var lastSignOfLife = MonotonicTime.zero
    private var setupDeadline = MonotonicTime.distantFuture
    /// The peer has nominated an address before.
    private var isSetUp = false
    /// Round trip time of the server's last answered check.
    public private(set) var roundTripTime: TimeSpan?
    private var isOver = false
    private var events: [ICEEvent] = []

    /// The setup timeout runs from `setRemote`: before it there is no peer to wait for.
    public init(local: ICECredential, settings: ICESettings) {
        self.local = local
        self.settings = settings
        addresses.reserveCapacity(2)
    }

    // MARK: - Credentials

    /// The peer's credentials: the first ones, or those of its restart.
    public mutating func setRemote(_ credential: ICECredential, at now: MonotonicTime) {
        // A check with the newest local credentials may overtake the description, as after the server's own offer of a restart: the peer already uses these.
        let isInUse = previousLocal == nil
        if let remote, !isInUse, remote.ufrag != credential.ufrag { previousRemote = previousRemote ?? remote }
        // Addresses that sent checks before the description arrived could not be checked until now.
        if remote == nil || isInUse {
            for index in addresses.indices where !addresses[index].consent.isGiven {
                addresses[index].consent.request(at: now)
            }
        }
        remote = credential
        if !isSetUp, setupDeadline == .distantFuture { setupDeadline = now + settings.setupTimeout }
    }

    /// New local credentials; the ones in use stay valid until a check with the new ones has been answered.
    public mutating func restart(local credential: ICECredential) {
        previousLocal = previousLocal ?? local
        local = credential
    }

    /// A check with the newest credentials arrived: the restart is complete.
    private mutating func adoptCredentials() {
        if let old = previousLocal {
            previousLocal = nil
            events.append(.credentialsReplaced(oldUfrag: old.ufrag))
        }
        previousRemote = nil
    }

    // MARK: - Questions

    /// Whether datagrams from `address` come from the peer.
    public func isValidated(_ address: SocketAddress) -> Bool { index(of: address) != nil }

    /// Whether `address` has recently answered the server's own check, so that the server may send to it.
    public func hasConsent(_ address: SocketAddress) -> Bool {
        index(of: address).map { addresses[$0].consent.isGiven } ?? false
    }

    /// Whether nothing has come from the selected address for longer than two packets of audio.
    public func isSilent(at now: MonotonicTime) -> Bool { now - selectedSeen >= .milliseconds(50) }

    /// Whether `count` bytes may be sent to `address` now. Without consent this uses up credit.
    public mutating func maySend(_ count: Int, to address: SocketAddress) -> Bool {
        guard let index = index(of: address) else { return false }
        return addresses[index].consent.isGiven || addresses[index].credit.spend(count, allowance: &allowance)
    }

    /// When to call `advance` next.
    public var nextDeadline: MonotonicTime {
        if isOver { return .distantFuture }
        var next = isSetUp ? lastSignOfLife + settings.consentTimeout : setupDeadline
        for address in addresses { next = min(next, address.consent.nextDeadline) }
        return next
    }

    /// Whether `pollEvent` would return an event.
    public var hasEvents: Bool { !events.isEmpty }

    /// The oldest event not yet consumed.
    public mutating func pollEvent() -> ICEEvent? { events.isEmpty ? nil : events.removeFirst() }

    private func index(of address: SocketAddress) -> Int? { addresses.firstIndex { $0.address == address } }

    // MARK: - Datagrams

    /// Processes a datagram that has the format of a STUN message; nil when it was accepted.
    public mutating func receive(
        _ datagram: UnsafeRawBufferPointer, from source: SocketAddress, at now: MonotonicTime, stun: STUNAgent,
        random: inout RandomSource, into output: inout OutboundBatch
    ) -> DropReason? {
        guard !isOver else { return .stunUnexpected }
        guard STUNPeek.isSTUN(datagram.bytes) else { return .stunMalformed }
        switch datagram.bytes.readUInt16(0) {
        case 0x0001: return receiveCheck(datagram, source, now, stun, &random, &output)
        case 0x0101: return receiveResponse(datagram, source, now, stun)
        // An error may be a 487 or 400 to the server's own check; it proves nothing and changes nothing.
        case 0x0111: return openCheck(TransactionID(of: datagram), source) != nil ? nil : .stunUnexpected
        // A Binding indication keeps a NAT open (RFC 8445 section 11). It carries no proof.
        case 0x0011: return isValidated(source) ? nil : .stunUnexpected
        default: return .stunUnexpected
        }
    }

    private mutating func receiveCheck(
        _ datagram: UnsafeRawBufferPointer, _ source: SocketAddress, _ now: MonotonicTime, _ stun: STUNAgent,
        _ random: inout RandomSource, _ output: inout OutboundBatch
    ) -> DropReason? {
        guard let ufrag = STUNPeek.localUfrag(of: datagram.bytes) else { return .stunMalformed }
        let isCurrent = local.matches(datagram, ufrag)
        let credential: ICECredential
        if isCurrent {
            credential = local
        } else if let previousLocal, previousLocal.matches(datagram, ufrag) {
            credential = previousLocal
        } else {
            return .stunUnknownUfrag
        }
        let id = TransactionID(of: datagram)
        let verdict = history.verdict(on: id, from: source)
        guard verdict != .replayed else { return .stunReplayed }
        let outcome = stun.answer(datagram, local: credential, from: source, into: &output) { nominates, output in
            noteReceived(datagram.count, from: source)
            guard verdict == .new else { return }
            history.append(id, from: source)
            if isCurrent { adoptCredentials() }
            noteCheck(from: source, nominates: nominates, length: datagram.count, at: now)
            // Ahead of the response, so that the client answers it before it continues, with DTLS for example.
            if let index = index(of: source) { check(index, now, stun, &random, &output) }
        }
        switch outcome {
        case .dropped(let reason): return reason
        case .refused: return nil
        case .answered:
            // Never longer than the check by more than an IPv6 address, so it is within the credit.
            if let reply = output.entries.last { _ = maySend(reply.length, to: source) }
            return nil
        }
    }

    private mutating func receiveResponse(
        _ datagram: UnsafeRawBufferPointer, _ source: SocketAddress, _ now: MonotonicTime, _ stun: STUNAgent
    ) -> DropReason? {
        // RFC 8445 section 7.2.5.2.1: a response must come from the address to which the check was sent.
        guard let index = index(of: source), let open = openCheck(TransactionID(of: datagram), source) else {
            return .stunUnexpected
        }
        guard stun.isAuthenticResponse(datagram, remote: open.credential) else { return .stunUnauthorized }
        roundTripTime = now - open.sentAt
        let isNew = addresses[index].consent.answered(open, until: now + settings.consentTimeout)
        if isNew { events.append(.consented(source)) }
        if source == nominee { select(source, at: now) }
        if source == selected { addresses[index].consent.keep(at: now) }
        noteSignOfLife(from: source, at: now)
        return nil
    }

    private func openCheck(_ id: TransactionID, _ source: SocketAddress) -> Consent.Check? {
        index(of: source).flatMap { addresses[$0].consent.match(id) }
    }

    // MARK: - Liveness

    /// An authentic SRTP or SRTCP packet came from `source`, which must be validated.
    @inline(__always)
    public mutating func noteAuthenticPacket(from source: SocketAddress, at now: MonotonicTime) {
        if source == selected {
            selectedSeen = now
            lastSignOfLife = now
        } else {
            noteSignOfLife(from: source, isMedia: true, at: now)
        }
    }

    /// A packet that is authentic, new and of `count` bytes came from an address that no check has validated: the peer's NAT has assigned it another port, and
    /// its next check may be seconds away. It counts as a check: the server checks there at once, and until the answer sends only what the credit permits.
    public mutating func noteRemapped(
        _ count: Int, from source: SocketAddress, at now: MonotonicTime, stun: STUNAgent, random: inout RandomSource,
        into output: inout OutboundBatch
    ) {
        guard !isOver, index(of: source) == nil else { return }
        let index = validate(source, count, at: now)
        addresses[index].isRemapped = true
        addresses[index].consent.request(at: now)
        noteSignOfLife(from: source, isMedia: true, at: now)
        check(index, now, stun, &random, &output)
    }

    /// `count` bytes that only the peer can have sent arrived from `source`.
    public mutating func noteReceived(_ count: Int, from source: SocketAddress) {
        if let index = index(of: source) { addresses[index].credit.received(count) }
    }

    /// A new check was authentic: the peer can send from the address; a nomination says where it wants to receive.
    ///
    /// The newest nomination wins. Browsers nominate only the pair they use (regular nomination), or all pairs while
    /// they connect (aggressive, RFC 5245) and then keep checking the one they use.
    private mutating func noteCheck(from source: SocketAddress, nominates: Bool, length: Int, at now: MonotonicTime) {
        let index = index(of: source) ?? validate(source, length, at: now)
        if !addresses[index].consent.isGiven { addresses[index].consent.request(at: now) }
        noteSignOfLife(from: source, at: now)
        if nominates { nominate(source, at: now) }
    }

    /// Something authentic arrived from a validated address. If the selected one has gone silent the peer has moved without a nomination: its NAT
    /// assigned another port. If there is none any more, because its TCP connection has ended, the peer continues here.
    private mutating func noteSignOfLife(from source: SocketAddress, isMedia: Bool = false, at now: MonotonicTime) {
        lastSignOfLife = now
        if source == selected {
            selectedSeen = now
            return
        }
        guard let index = index(of: source) else { return }
        addresses[index].lastSeen = now
        let silence = addresses[index].isRemapped ? Self.silenceBeforeRemapping : Self.silenceBeforeFollowing
        let isLeft = selected == nil ? isSetUp && nominee == nil : now - selectedSeen >= silence
        guard isLeft, source != nominee, isMedia || !mayAnswer(at: now) else { return }
        nominate(source, at: now)
    }

    /// Whether the selected address, which is silent, may still answer: it is checked now, or was a moment ago.
    private mutating func mayAnswer(at now: MonotonicTime) -> Bool {
        guard let selected, let index = index(of: selected) else { return false }
        if askedAt <= selectedSeen {
            askedAt = now
            addresses[index].consent.request(at: now)
        }
        return now - askedAt < Self.answerTime
    }

    private mutating func validate(_ source: SocketAddress, _ length: Int, at now: MonotonicTime) -> Int {
        if addresses.count == Self.maximumAddresses { releaseOldest() }
        addresses.append(PeerAddress(address: source, lastSeen: now))
        noteReceived(length, from: source)
        events.append(.validated(source))
        return addresses.count - 1
    }

    // MARK: - Selection

    private mutating func nominate(_ source: SocketAddress, at now: MonotonicTime) {
        isSetUp = true
        setupDeadline = .distantFuture
        guard source != selected else { return nominee = nil }
        if hasConsent(source) { return select(source, at: now) }
        guard source != nominee, let index = index(of: source) else { return }
        nominee = source
        addresses[index].consent.request(at: now)
        events.append(.nominated(source))
    }

    private mutating func select(_ source: SocketAddress, at now: MonotonicTime) {
        if let old = selected.flatMap({ index(of: $0) }) { addresses[old].lastSeen = selectedSeen }
        nominee = nil
        selected = source
        selectedSeen = now
        if let index = index(of: source) { addresses[index].consent.keep(at: now) }
        events.append(.selected(source, isMove: settledAt.map { now >= $0 } ?? false))
        settledAt = settledAt ?? now + Self.settlingTime
    }

    /// Another peer has proved to be at `address`, so it no longer belongs to this one. No event is needed.
    public mutating func release(_ address: SocketAddress) {
        addresses.removeAll { $0.address == address }
        if selected == address { selected = nil }
        if nominee == address { nominee = nil }
    }

    private mutating func releaseOldest() {
        let others = addresses.indices.filter { addresses[$0].address != selected }
        if let index = others.min(by: { addresses[$0].lastSeen < addresses[$1].lastSeen }) { remove(index) }
    }

    /// Removes addresses that have been silent for the consent timeout.
    private mutating func releaseSilent(at now: MonotonicTime) {
        for index in addresses.indices.reversed()
        where addresses[index].address != selected && now - addresses[index].lastSeen >= Self.addressLifetime {
            remove(index)
        }
    }

    private mutating func remove(_ index: Int) {
        let address = addresses.remove(at: index).address
        if nominee == address { nominee = nil }
        events.append(.released(address))
    }

    // MARK: - Time

    /// Closes a peer whose timeout has expired, and sends the server's own checks (RFC 7675 section 5.1).
    public mutating func advance(
        to now: MonotonicTime, stun: STUNAgent, random: inout RandomSource, into output: inout OutboundBatch
    ) {
        guard !isOver, now >= nextDeadline else { return }
        guard isSetUp || now < setupDeadline else { return end(.setupTimedOut) }
        guard !isSetUp || now - lastSignOfLife < settings.consentTimeout else { return end(.consentExpired) }
        for index in addresses.indices {
            addresses[index].consent.expire(at: now)
            check(index, now, stun, &random, &output)
        }
        releaseSilent(at: now)
    }

    private mutating func end(_ event: ICEEvent) {
        isOver = true
        events.append(event)
    }

    /// Whether a check of this many bytes may be sent. The allowance is for what only the server can initiate.
    private mutating func mayCheck(_ index: Int, _ count: Int) -> Bool {
        var none = 0
        return addresses[index].consent.isGiven || addresses[index].credit.spend(count, allowance: &none)
    }

    /// Sends the check that is due to an address, if anything may be sent there.
    private mutating func check(
        _ index: Int, _ now: MonotonicTime, _ stun: STUNAgent, _ random: inout RandomSource,
        _ output: inout OutboundBatch
    ) {
        guard now >= addresses[index].consent.nextCheck else { return }
        // There is no password before the peer's description has arrived.
        guard let remote = previousRemote ?? remote else {
            return addresses[index].consent.postpone(to: .distantFuture)
        }
        let mark = output.mark
        let destination = addresses[index].address
        let id = stun.sendCheck(
            to: destination, local: previousLocal ?? local, remote: remote, controlling: false, nominate: false,
            priority: Self.checkPriority, into: &output)
        guard let id, mayCheck(index, output.used - mark.used) else {
            output.rewind(to: mark)
            return addresses[index].consent.postpone(to: now + Self.creditInterval)
        }
        // 0.8 to 1.2 of the interval, so that peers that joined together do not check in step.
        let base = settings.checkInterval
        let spread = UInt64(base.nanoseconds / 1_000 * 4 / 10)
        let renewal = now + base * 8 / 10 + .microseconds(Int64(random.next() % max(1, spread)))
        addresses[index].consent.sent(
            Consent.Check(id: id, credential: remote, sentAt: now), interval: base, renewal: renewal)
    }
}
