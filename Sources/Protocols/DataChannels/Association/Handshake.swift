import Primitives

/// Set-up of an association (RFC 9260 section 5): answers the peer's INIT, or sends one if none comes.
///
/// The peer is authenticated already and has one association only, so the cookie holds nothing: 16 random bytes name the one offer that is open.
struct Handshake {
    /// All browsers send INIT themselves as soon as DTLS is up; if both do, the messages cross.
    static let patience = TimeSpan.milliseconds(500)
    /// Minimum interval at which a live association answers a new INIT (of a peer that has restarted).
    private static let restartInterval = TimeSpan.seconds(1)

    enum State: Equatable {
        /// Waits for the peer's INIT; until then.
        case waiting
        /// Waits for INIT ACK, and for COOKIE ACK.
        case sentInitiation, sentCookie
        case established
    }

    /// A packet to send: one chunk, under the tag.
    struct Reply {
        var type: ChunkType
        var flags: UInt8 = 0
        var value: [UInt8]
        var tag: UInt32
    }

    /// The result of a chunk.
    enum Outcome {
        case nothing
        case reply(Reply)
        /// The association is up, or begins again, with these parameters of the two sides; the reply is for the peer.
        case established(local: Initiation, peer: Initiation, Reply?)
    }

    private struct Offer {
        var local: Initiation, peer: Initiation
        var isAccepted = false
    }

    private(set) var state = State.waiting
    private(set) var local: Initiation
    private(set) var peer: Initiation?
    private var offer: Offer?
    private var random: RandomSource
    private var deadline = MonotonicTime.distantFuture
    private var timeout = RetransmissionTimer.initial
    private var restarts = RateLimit()
    private let window: UInt32, streams: UInt16

    init(window: UInt32, streams: UInt16, random: RandomSource) {
        self.random = random
        self.window = window
        self.streams = streams
        local = Self.makeInitiation(window, streams, &self.random)
    }

    private static func makeInitiation(_ window: UInt32, _ streams: UInt16, _ random: inout RandomSource) -> Initiation
    {
        let tag = UInt32(truncatingIfNeeded: random.next())
        return Initiation(
            tag: max(tag, 1), window: window, streams: streams, firstTSN: UInt32(truncatingIfNeeded: random.next()))
    }

    var nextDeadline: MonotonicTime { deadline }
    var isEstablished: Bool { state == .established }

    /// DTLS is up.
    mutating func start(at now: MonotonicTime) { deadline = now + Self.patience }

    /// Whether a packet under `tag` belongs to this association.
    func accepts(tag: UInt32, first: ChunkType?) -> Bool {
        tag == local.tag || first == .cookieEcho && tag == offer?.local.tag
    }

    mutating func receiveInitiation(_ value: UnsafeRawBufferPointer, at now: MonotonicTime) -> Outcome {
        guard let peer = Initiation(value) else { return .nothing }
        if let offer, offer.peer == peer { return .reply(acknowledgement(of: offer)) }
        if state == .established {
            guard restarts.accept(every: Self.restartInterval, atOnce: 1, at: now) else { return .nothing }
        }
        var answer = state == .established ? Self.makeInitiation(window, streams, &random) : local
        answer.cookie = cookie()
        let offer = Offer(local: answer, peer: peer)
        self.offer = offer
        return .reply(acknowledgement(of: offer))
    }

    private func acknowledgement(of offer: Offer) -> Reply {
        Reply(type: .initiationAck, value: offer.local.bytes, tag: offer.peer.tag)
    }

    private mutating func cookie() -> [UInt8] {
        var cookie: [UInt8] = []
        for _ in 0..<4 { cookie.append(number: UInt32(truncatingIfNeeded: random.next())) }
        return cookie
    }

    mutating func receiveInitiationAck(_ value: UnsafeRawBufferPointer, at now: MonotonicTime) -> Outcome {
        guard state == .sentInitiation, let peer = Initiation(value), !peer.cookie.isEmpty else { return .nothing }
        self.peer = peer
        state = .sentCookie
        restartTimer(at: now)
        return .reply(Reply(type: .cookieEcho, value: peer.cookie, tag: peer.tag))
    }

    mutating func receiveCookieEcho(_ value: UnsafeRawBufferPointer, tag: UInt32) -> Outcome {
        guard var offer, tag == offer.local.tag, value.elementsEqual(offer.local.cookie) else { return .nothing }
        let reply = Reply(type: .cookieAck, value: [], tag: offer.peer.tag)
        // Our COOKIE ACK was lost.
        if offer.isAccepted { return .reply(reply) }
        offer.isAccepted = true
        self.offer = offer
        local = offer.local
        // The messages of both sides crossed, and the association is up already (RFC 9260 section 5.2.4, D).
        if state == .established, peer?.tag == offer.peer.tag { return .reply(reply) }
        peer = offer.peer
        establish()
        return .established(local: offer.local, peer: offer.peer, reply)
    }

    mutating func receiveCookieAck() -> Outcome {
        guard state == .sentCookie, let peer else { return .nothing }
        establish()
        return .established(local: local, peer: peer, nil)
    }

    private mutating func establish() {
        state = .established
        deadline = .distantFuture
    }

    private mutating func restartTimer(at now: MonotonicTime) {
        timeout = RetransmissionTimer.initial
        deadline = now + timeout
    }

    /// Sends the first INIT, or repeats the unanswered message.
    mutating func advance(to now: MonotonicTime) -> Reply? {
        guard deadline <= now else { return nil }
        switch state {
        case .established: return nil
        case .waiting:
            state = .sentInitiation
            restartTimer(at: now)
        case .sentInitiation, .sentCookie:
            timeout = min(timeout * 2, RetransmissionTimer.maximum)
            deadline = now + timeout
        }
        if state == .sentCookie, let peer { return Reply(type: .cookieEcho, value: peer.cookie, tag: peer.tag) }
        return Reply(type: .initiation, value: local.bytes, tag: 0)
    }
}
