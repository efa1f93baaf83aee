public import Primitives

/// What a lite agent tells its owner, in order.
public enum ICEEvent: Sendable, Hashable {
    /// A check from this address was answered with success for the first time.
    case validated(SocketAddress)
    /// The address has been silent too long, or had to make room.
    case released(SocketAddress)
    /// Datagrams go to this address from now on. `isMove`: the peer was settled at another one, and its network changed.
    case selected(SocketAddress, isMove: Bool)
    /// A check with the new local credentials came; the old user name fragment is free (B21).
    case credentialsReplaced(oldUfrag: [UInt8])
    /// No address was selected in time.
    case setupTimedOut
    /// No sign of life for the consent timeout (RFC 7675).
    case consentLost
}

/// Limits of a lite agent.
public struct ICESettings: Sendable, Hashable {
    /// Silence after which consent is lost.
    public var consentTimeout = TimeInterval.seconds(15)
    /// How long an address may take to be selected.
    public var setupTimeout = TimeInterval.seconds(30)

    public init() {}

    /// RFC 7675 section 5.1 asks for 5 s; a short consent timeout still gets three checks.
    var checkInterval: TimeInterval { min(.seconds(5), consentTimeout / 3) }
}

/// ICE-lite for one peer (RFC 8445 sections 2.5 and 7.3, RFC 7675): answers checks, follows the peer's nominations,
/// and keeps consent alive in both directions.
///
/// Sans-IO. Every authentic sign of life counts for consent: the peer's checks, its answers to the server's own
/// checks, and its SRTP. A client that only answers (ffmpeg) and one that only asks both stay.
public struct ICELiteAgent {
    /// Addresses that a peer may have validated at one time: two interfaces, IPv4 and IPv6, and a relay each.
    public static let maximumTuples = 8
    /// A selected address that is silent for so long is left for another that lives, even without a nomination:
    /// longer than RTCP or video pause, shorter than a person notices.
    static let silenceBeforeFollowing = TimeInterval.seconds(2)
    /// A peer that has just connected tries its pairs one by one and nominates a better one as it answers (RFC 8445
    /// section 8.1.1): until then another address is its choice, not a move. Browsers are through in a second.
    static let settlingTime = TimeInterval.seconds(3)
    /// RFC 7675 section 5.1: without a check for 30 s an address may not be sent to.
    static let tupleLifetime = TimeInterval.seconds(30)

    struct Tuple {
        let address: SocketAddress
        var lastSeen: MonotonicTime
    }

    let settings: ICESettings
    var local: ICECredential
    /// Valid until a check with `local` arrives.
    var previousLocal: ICECredential?
    var remote: ICECredential?
    /// What the server's own checks use until the peer is seen to use the new ones.
    var previousRemote: ICECredential?
    var tuples: [Tuple] = []
    /// Where datagrams go.
    public internal(set) var selected: SocketAddress?
    var selectedSeen = MonotonicTime.zero
    /// When the peer's choice of an address is taken for settled; nil before the first.
    var settledAt: MonotonicTime?
    var lastSignOfLife = MonotonicTime.zero
    var setupDeadline: MonotonicTime
    var nextCheck = MonotonicTime.distantFuture
    var openChecks = OpenChecks()
    /// Round trip time of the server's last answered check.
    public internal(set) var roundTripTime: TimeInterval?
    private(set) var isOver = false
    private var events: [ICEEvent] = []

    /// The set-up limit runs from `setRemote`: before it there is nobody to wait for.
    public init(local: ICECredential, settings: ICESettings) {
        self.local = local
        self.settings = settings
        setupDeadline = .distantFuture
        tuples.reserveCapacity(Self.maximumTuples)
    }

    /// The peer's credentials: the first ones, or those of its restart.
    public mutating func setRemote(_ credential: ICECredential, at now: MonotonicTime) {
        if let remote, remote.ufrag != credential.ufrag {
            previousRemote = previousRemote ?? remote
        }
        remote = credential
        if selected == nil, setupDeadline == .distantFuture { setupDeadline = now + settings.setupTimeout }
    }

    /// New local credentials; the ones in use stay valid until a check with the new ones has been answered.
    public mutating func restart(local credential: ICECredential) {
        previousLocal = previousLocal ?? local
        local = credential
    }

    /// Whether datagrams from `address` come from the peer.
    public func isValidated(_ address: SocketAddress) -> Bool {
        if address == selected { return true }
        for tuple in tuples where tuple.address == address { return true }
        return false
    }

    /// Whether `pollEvent` has something.
    public var hasEvents: Bool { !events.isEmpty }

    /// The oldest event not yet taken.
    public mutating func pollEvent() -> ICEEvent? { events.isEmpty ? nil : events.removeFirst() }

    mutating func tell(_ event: ICEEvent) { events.append(event) }

    mutating func end(_ event: ICEEvent) {
        isOver = true
        tell(event)
    }
}
