import MediaControl
import Primitives
import SDP

/// One peer connection of a member, from the control plane's point of view.
struct Connection: Sendable {
    /// The client's name for it, or the server's ("sub").
    let id: String
    let peer: PeerID
    /// The peer of the member's first connection: all of them are on one path.
    let group: PeerID
    let feedbackSSRC: UInt32
    var negotiation: Negotiation
    /// The server's current credentials.
    private(set) var ice: ICECredentials
    /// The client's side, as the worker was last commanded.
    private(set) var remote: RemoteTransport?
    /// The client's candidates that were trickled over its socket.
    var trickled = CandidateSummary()
    /// The worker was commanded to add the peer.
    private(set) var isOpened = false
    var state = ConnectionState.connecting
    /// When it was opened, or its ICE restarted.
    private(set) var connectingSince = MonotonicTime.zero
    /// How its bandwidth is allocated, as the worker was last commanded.
    private(set) var downlinkPolicy = DownlinkPolicy()
    /// Its data section is accepted.
    private(set) var hasData = false
    /// Labels of its open data channels.
    var channels: Set<String> = []
    /// What is sent has changed since the last description.
    var needsOffer = false
    /// The number of the event with the server's last offer on it.
    var lastOffer: UInt64 = 0
    /// A digest of the last client's answer that was applied.
    private(set) var lastAnswer: Int?
    /// The client has a new socket since its last answer was applied: it may not know that it was.
    private(set) var mayRepeatAnswer = false
    /// A digest of the last fragment that restarted ICE, and the server's fragment in response.
    private(set) var lastRestart: (fragment: Int, answer: String)?
    /// Sections that were last requested from a client that makes all offers itself, since its last offer.
    private(set) var requestedSections: SectionNeed?
    /// The track that comes in on each section.
    var trackByMid: [String: TrackID] = [:]
    /// The track that came in on a section before.
    private(set) var formerTracks: [String: TrackInfo] = [:]
    /// The subscription that goes out, or is offered to go out, on each section.
    var subscriptionByMid: [String: SubscriptionID] = [:]
}

// MARK: - Tracks

extension Connection {
    /// Nothing comes in on its section any more.
    mutating func trackEnded(_ track: TrackInfo) {
        trackByMid[track.mid] = nil
        formerTracks[track.mid] = track
    }

    /// The former track of the client on this section.
    func formerSource(of clientTrackID: String?, mid: String) -> TrackSource? {
        formerTracks[mid].flatMap { $0.clientTrackID == clientTrackID ? $0.source : nil }
    }
}

// MARK: - Negotiating

extension Connection {
    mutating func understand(_ offer: String, of member: Member) throws(RoomError) -> OfferOutcome {
        try member.checkNotAwaited()
        let outcome: OfferOutcome
        do { outcome = try negotiation.receiveOffer(offer) } catch { throw RoomError(error) }
        try member.formerConnections.check(outcome.transport)
        return outcome
    }

    mutating func accept(_ answer: String, of member: Member) throws(RoomError) -> AcceptedAnswer {
        try member.checkNotAwaited()
        let accepted: AcceptedAnswer
        do { accepted = try negotiation.receiveAnswer(answer) } catch { throw RoomError(error) }
        try member.formerConnections.check(accepted.transport)
        lastAnswer = answer.hashValue
        mayRepeatAnswer = false
        return accepted
    }

    /// Refuses an answer to an offer that was replaced: it was under way while the server began anew, and would be treated as the answer to the new offer.
    func checkIsCurrent(_ offer: UInt32?) throws(RoomError) {
        guard let offer, offer < UInt32(truncatingIfNeeded: lastOffer) else { return }
        throw RoomError(.unexpectedAnswer, "the answer is to a former offer")
    }

    mutating func answer(_ answers: [String: SectionAnswer]) throws(RoomError) -> AnswerOutcome {
        do { return try negotiation.makeAnswer(answers) } catch { throw RoomError(error) }
    }

    /// Makes an offer of `wanted`, and sets that to what the offer contains. If sections of ended subscriptions leave too little room, an offer of what is
    /// already sent removes them, and new subscriptions follow in the next one. Otherwise subscriptions without a section wait: `lacking` counts them. Throws
    /// if an offer would change nothing.
    mutating func makeOffer(
        _ wanted: inout [(id: SubscriptionID, sending: LocalSending)], lacking: inout Int
    ) throws(NegotiationError) -> LocalOffer {
        let isDue = needsOffer
        needsOffer = false
        do throws(NegotiationError) {
            return try negotiation.makeOffer(sending: wanted.map(\.sending))
        } catch {
            guard error.code == .tooManyOwnSections else { throw error }
            let sent = Set(negotiation.currentSending.values.map(\.ssrc))
            let kept = wanted.filter { sent.contains($0.sending.ssrc) }
            let givesUp = negotiation.givesUpSections(sending: kept.map(\.sending))
            if givesUp {
                wanted = kept
                needsOffer = true
            } else {
                let fitting = Set(negotiation.fitting(wanted.map(\.sending)).map(\.ssrc))
                lacking = wanted.count - fitting.count
                guard isDue || fitting.count > kept.count else { throw error }
                wanted = wanted.filter { fitting.contains($0.sending.ssrc) }
            }
            return try negotiation.makeOffer(sending: wanted.map(\.sending), givesUpIdle: givesUp)
        }
    }

    /// New server ICE credentials, signalled in the next description, and the server's current addresses.
    mutating func restartICE(with credentials: ICECredentials, at context: RoomContext) {
        ice = credentials
        negotiation.restartICE(ufrag: credentials.ufrag, password: credentials.password)
        negotiation.transport.candidates = context.candidates
        lastRestart = nil
    }

    /// Adds the connection's peer to the worker, or updates what the worker knows of the client's side.
    mutating func openOrUpdate(
        _ facts: TransportFacts?, of member: Member, iceRestarted: Bool, _ state: RoomState, _ turn: inout RoomTurn
    ) {
        let remote = facts.map(RemoteTransport.init)
        if !isOpened {
            isOpened = true
            connectingSince = turn.now
            self.remote = remote
            addPeer(member.profile == .publishOnly ? .publishOnly : .full, to: state.id, &turn)
            command(state.settings(of: member).downlinkPolicy, for: member, &turn)
            return
        }
        if iceRestarted {
            connectingSince = turn.now
            turn.media(.restartICE(peer, local: ice))
        }
        if let remote, remote != self.remote {
            self.remote = remote
            turn.media(.setRemoteTransport(peer, remote))
        }
    }

    /// Adds the peer of a file, which has no client: it is up from the beginning.
    mutating func openForPlayer(in room: RoomID, _ turn: inout RoomTurn) {
        isOpened = true
        state = .connected
        addPeer(.player, to: room, &turn)
    }

    private func addPeer(_ profile: PeerProfile, to room: RoomID, _ turn: inout RoomTurn) {
        turn.media(
            .addPeer(
                PeerDescription(
                    id: peer, room: room, profile: profile, localICE: ice, remote: remote, feedbackSSRC: feedbackSSRC,
                    group: group)))
    }

    /// Commands how the bandwidth is allocated, if that has changed for the worker.
    mutating func command(_ downlink: DownlinkPolicy, for member: Member, _ turn: inout RoomTurn) {
        guard member.profile != .publishOnly, downlinkPolicy != downlink else { return }
        downlinkPolicy = downlink
        turn.media(.setDownlinkPolicy(peer, downlink))
    }

    /// Records the candidates that were available.
    func logFailedICE(of participant: String, _ turn: inout RoomTurn) {
        var client = trickled
        for candidate in negotiation.remoteTransport?.candidates ?? [] { client.add(candidate) }
        turn.log(
            .iceFailed(
                participant: participant, connection: id,
                server: CandidateSummary(negotiation.transport.candidates), client: client))
    }
}

// MARK: - Repeated answers

extension Connection {
    /// Whether `answer` is the one that was applied last, sent again. While another offer waits, this counts only for the first answer after the client came
    /// back: clients that do not count versions may answer several offers with the same text.
    func hasTaken(_ answer: String) -> Bool {
        guard lastAnswer == answer.hashValue else { return false }
        return mayRepeatAnswer || negotiation.state != .haveLocalOffer
    }

    /// The client came back on another socket.
    mutating func clientCameBack() { mayRepeatAnswer = lastAnswer != nil }

    /// The client sent its last answer again: on this socket it does so once.
    mutating func answerWasRepeated() { mayRepeatAnswer = false }

    /// The client begins anew with the next offer, so no answer can be a repeated one.
    mutating func forgetAnswer() {
        lastAnswer = nil
        mayRepeatAnswer = false
    }
}

// MARK: - Repeated restarts

extension Connection {
    /// The server's fragment in response to one that restarts ICE.
    mutating func answerRestart(by fragment: String) throws(NegotiationError) -> String {
        let answer = try negotiation.makeFragment()
        lastRestart = (fragment.hashValue, answer)
        return answer
    }

    /// The earlier response to the same fragment, if that restarted ICE last.
    func answer(toRepeated fragment: String) -> String? {
        lastRestart.flatMap { $0.fragment == fragment.hashValue ? $0.answer : nil }
    }
}

// MARK: - Data channels

extension Connection {
    /// The offer's data section is accepted.
    mutating func acceptData(_ outcome: OfferOutcome, _ turn: inout RoomTurn) {
        let section = outcome.sections.first { $0.kind == .application && $0.refusal == nil }
        _ = acceptData(section?.dataChannel, &turn)
    }

    /// The server's data section is accepted: it opens the channels on which the member receives messages.
    mutating func acceptData(_ answer: AcceptedAnswer, _ names: DataProtocol, _ turn: inout RoomTurn) {
        guard acceptData(answer.sections.lazy.compactMap(\.dataChannel).first, &turn) else { return }
        turn.media(.openDataChannel(peer, DataChannelTerms(label: names.reliableLabel)))
        let lossy = DataChannelTerms(label: names.lossyLabel, isOrdered: false, reliability: .retransmissions(0))
        turn.media(.openDataChannel(peer, lossy))
        guard let label = names.dataTrackLabel else { return }
        let frames = DataChannelTerms(label: label, isOrdered: false, reliability: .retransmissions(0))
        turn.media(.openDataChannel(peer, frames))
    }

    /// Whether the connection has data channels from now on, and did not before.
    private mutating func acceptData(_ facts: DataChannelFacts?, _ turn: inout RoomTurn) -> Bool {
        guard !hasData, isOpened, let facts else { return false }
        hasData = true
        // 0 means any length (RFC 8841 section 6.1).
        let longest = facts.maximumMessageSize == 0 ? Int.max : facts.maximumMessageSize
        turn.media(.acceptData(peer, DataTransport(port: facts.sctpPort, longestMessage: longest)))
        return true
    }
}

// MARK: - Sections that its client must offer

extension Connection {
    /// What a client that makes all offers itself is to offer for `wanted`; nil if this was requested already, or if an offer would achieve nothing.
    /// `lacking`: the number that find no section because the description is full.
    mutating func requestSections(for wanted: [LocalSending]) -> (need: SectionNeed?, lacking: Int) {
        let missing = negotiation.missingSections(for: wanted)
        // An offer with more sections would be refused, and end the call: subscriptions without a section wait until another ends.
        let asked = negotiation.offerable(missing)
        let lacking = missing.count - asked.count
        let need = SectionNeed(audio: asked.count { $0.kind == .audio }, video: asked.count { $0.kind == .video })
        // If no section can be added, another offer helps only subscriptions that find a free one.
        let isFull = asked.isEmpty && !missing.isEmpty
        let findsSection = wanted.count - missing.count > subscriptionByMid.count
        guard needsOffer || !isFull || findsSection, requestedSections != need else { return (nil, lacking) }
        requestedSections = need
        return (need, lacking)
    }

    /// The client's own offer negotiates anew what is sent, so the server owes no offer on this connection.
    mutating func clientOffered() {
        needsOffer = false
        requestedSections = nil
    }

    /// Its member is in another room, where its sections are requested anew.
    mutating func forgetRequestedSections() { requestedSections = nil }
}

/// How many receiving sections a connection needs.
struct SectionNeed: Sendable, Hashable {
    var audio = 0
    var video = 0
}
