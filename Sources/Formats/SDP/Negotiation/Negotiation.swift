/// The m-line bookkeeping of one peer connection from the server's point of view: answers offers, makes offers, applies answers. A value without time, network
/// or randomness; the caller supplies SSRCs, names and credentials.
///
///                     receiveOffer                      makeOffer
///     haveRemoteOffer <----------- stable --------------------> haveLocalOffer
///                     -----------> stable <--------------------
///                     makeAnswer                   receiveAnswer
///
/// `withdrawOffer()` leads back to stable from either side, and a call that throws changes nothing.
public struct Negotiation: Sendable {
    /// What is allowed; may be changed between two negotiations.
    public var policy: NegotiationPolicy
    /// The server's end. Change credentials by `restartICE`; candidates may be replaced at any time.
    public var transport: LocalTransport
    let sessionID: UInt64
    /// Counts the descriptions made; the version in their `o=` lines.
    var version: UInt64 = 0
    /// The result of the last answer.
    var book = Book()
    var pending = Pending.none

    /// The description that waits for its counterpart, with the book as it would be.
    enum Pending: Sendable {
        case none
        case remote(RemoteOffer)
        case local(Book)
    }

    /// A connection without sections. `sessionID`: the number of the `o=` line, unique and below 2^63. `firstMid`: the number of the first mid that the
    /// server invents.
    public init(
        sessionID: UInt64, policy: NegotiationPolicy = NegotiationPolicy(), transport: LocalTransport, firstMid: Int = 0
    ) {
        book.nextMid = firstMid
        self.sessionID = sessionID & (1 << 63 - 1)
        self.policy = policy
        self.transport = transport
    }

    /// The number of a mid that no offer of the server had.
    public var nextMid: Int {
        if case .local(let book) = pending { max(book.nextMid, self.book.nextMid) } else { book.nextMid }
    }

    /// The state of offer and answer.
    public var state: NegotiationState {
        switch pending {
        case .none: .stable
        case .remote: .haveRemoteOffer
        case .local: .haveLocalOffer
        }
    }

    /// What the server sends now, by mid.
    public var currentSending: [String: LocalSending] {
        Dictionary(book.lines.compactMap { line in line.sending.map { (line.mid, $0) } }) { first, _ in first }
    }

    /// The remote end as last negotiated; nil before the first negotiation.
    public var remoteTransport: TransportFacts? { book.remote }

    /// Withdraws the server's pending offer from a client that may have accepted it, although its answer has not arrived. Sections, payload types and extension
    /// ids of the next offer are those of this one, so that it fits whether the client has accepted this one or not. A pending offer of the client is
    /// forgotten.
    public mutating func withdrawOffer() {
        defer { pending = .none }
        guard case .local(let offered) = pending else { return }
        // A client that has not accepted it continues with the sections that it gives up: their places are not free for others.
        guard zip(book.lines, offered.lines).allSatisfy({ $0.isRejected || !$1.isRejected }) else { return }
        book = offered
    }

    /// New local credentials: for the answer to a remote ICE restart, or for a restart that the next offer asks for.
    public mutating func restartICE(ufrag: String, password: String) {
        transport.iceUfrag = ufrag
        transport.icePassword = password
    }

    /// The `o=` line of the next description.
    mutating func nextOrigin() -> SessionDescription.Origin {
        version += 1
        return SessionDescription.Origin(sessionID: String(sessionID), version: String(version))
    }
}

/// A remote offer that waits for the server's answer.
struct RemoteOffer: Sendable {
    var byteCount: Int
    var readings: [SectionReading]
    var sections: [OfferedSection]
    /// Mids of the BUNDLE group in its order; nil where the offer has none.
    var bundle: [String]?
    var transport: TransportFacts?
    var iceRestarted: Bool
    /// `a=extmap-allow-mixed` is at session level.
    var allowsMixedExtensions: Bool
}
