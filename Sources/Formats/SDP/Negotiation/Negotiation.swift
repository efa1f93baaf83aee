/// The m-line bookkeeping of one peer connection from the server's point of view: answers offers, makes offers, takes
/// answers. A value without time, network or randomness; the caller brings SSRCs, names and credentials.
public struct Negotiation: Sendable {
    /// What is allowed; may be changed between two negotiations.
    public var policy: NegotiationPolicy
    /// Where offer and answer stand.
    public private(set) var state = NegotiationState.stable
    let sessionID: UInt64
    var transport: LocalTransport

    /// A connection without sections. `sessionID`: the number of the `o=` line, unique and below 2^63.
    public init(sessionID: UInt64, policy: NegotiationPolicy = NegotiationPolicy(), transport: LocalTransport) {
        self.sessionID = sessionID & (1 << 63 - 1)
        self.policy = policy
        self.transport = transport
    }

    /// What the server sends now, by mid.
    public var currentSending: [String: LocalSending] { [:] }

    /// Understands the remote's offer. Throws `.glare` while the server's own offer waits.
    public mutating func receiveOffer(_ text: String) throws(NegotiationError) -> OfferOutcome {
        throw NegotiationError(.noSections)
    }

    /// Answers the offer. Sections not named in `answers` take what comes and send nothing; so what goes on being sent
    /// must be named again (start from `currentSending`).
    public mutating func makeAnswer(_ answers: [String: SectionAnswer] = [:]) throws(NegotiationError) -> AnswerOutcome
    {
        throw NegotiationError(.noPendingOffer)
    }

    /// Makes an offer after which the server sends exactly `sending`, one section each. Things already sent (same kind,
    /// SSRC and track) keep their section, sections of things no longer sent become inactive and are used again for
    /// other tracks of their kind, never for a track that they have carried before.
    public mutating func makeOffer(sending: [LocalSending]) throws(NegotiationError) -> LocalOffer {
        throw NegotiationError(.offerPending)
    }

    /// Takes the remote's answer to the pending offer.
    public mutating func receiveAnswer(_ text: String) throws(NegotiationError) -> AcceptedAnswer {
        throw NegotiationError(.noPendingOffer)
    }

    /// Withdraws the pending offer of either side; everything is as it was before.
    public mutating func rollback() { state = .stable }

    /// New local credentials: for the answer to a remote ICE restart, or for a restart that the next offer asks for.
    public mutating func restartICE(ufrag: String, password: String) {
        transport.iceUfrag = ufrag
        transport.icePassword = password
    }

    /// Spreads `wanted` over the receiving sections of a pending remote offer: what is already sent stays, the rest
    /// goes to free sections of its kind. What finds no place comes back in `unplaced`.
    public func place(_ wanted: [LocalSending]) -> (placed: [String: LocalSending], unplaced: [LocalSending]) {
        ([:], wanted)
    }
}
