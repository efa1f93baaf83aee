import MediaControl
public import Primitives
import SDP

// Messages: who may send which to whom, and on which way each receiver gets it.

extension Room {
    /// The member whose peer this is, and how its messages are written.
    public func messageSender(_ peer: PeerID) -> (session: SessionID, protocol: DataProtocol)? {
        guard let owner = roster.owner(of: peer), let member = roster[owner.session] else { return nil }
        return (owner.session, member.options.dataProtocol)
    }

    /// Sends a member's message, or refuses it with a reason. `peer`: it came over a data channel of this peer, whose own limits slow down a sender that is
    /// too fast; one that came another way is refused then.
    public mutating func send(
        _ message: RoomMessage, from session: SessionID, over peer: PeerID? = nil, turn: inout RoomTurn
    ) throws(RoomError) {
        let member = try member(session)
        guard member.permissions.canPublishData else {
            throw RoomError(.permissionDenied, "the token does not permit sending messages (canPublishData)")
        }
        guard policy.allowsMessages else {
            throw RoomError(.permissionDenied, "the room's policy does not allow messages")
        }
        try check(message)
        if peer == nil { try charge(member, session, at: turn.now) }
        var message = message
        message.participant = member.info.sid
        message.identity = member.info.identity
        let receivers = try receivers(of: message, except: session)
        deliver(message, to: receivers, source: peer, &turn)
    }

    /// Counts a message; one to nobody costs a look at the roster, too.
    private mutating func charge(_ member: Member, _ session: SessionID, at now: MonotonicTime) throws(RoomError) {
        var limit = member.messages
        let interval = TimeInterval.nanoseconds(1_000_000_000 / Int64(context.limits.messagesPerSecond))
        guard limit.take(every: interval, atOnce: context.limits.messagesPerSecond * 2, at: now) else {
            throw RoomError(
                .rateLimited, "more than \(context.limits.messagesPerSecond) messages per second",
                retryAfter: .seconds(1))
        }
        roster.update(session) { $0.messages = limit }
    }

    /// The message of this cost that came from a peer is dealt with: the worker may take its next one.
    public func release(_ cost: Int, of peer: PeerID, turn: inout RoomTurn) {
        turn.media(.releaseData(peer, cost: cost))
    }

    /// Sends a message of an operator or of the application's server.
    public mutating func sendFromServer(_ message: RoomMessage, turn: inout RoomTurn) throws(RoomError) {
        try check(message)
        var message = message
        message.participant = nil
        message.identity = nil
        deliver(message, to: try receivers(of: message, except: nil), source: nil, &turn)
    }

    /// A message that came on a data channel was refused: there is no reply on a channel, so its sender gets an event.
    public mutating func refuseMessage(
        _ error: RoomError, topic: String?, from session: SessionID, turn: inout RoomTurn
    ) {
        roster.notify(session, .messageRefused(topic: topic, code: error.code, detail: error.detail), &turn)
    }

    private func check(_ message: RoomMessage) throws(RoomError) {
        guard message.topic.utf8.count <= context.limits.topicBytes else {
            throw RoomError(.tooLarge, "the topic is longer than \(context.limits.topicBytes) bytes")
        }
        guard message.byteCount <= context.limits.messageBytes else {
            throw RoomError(.tooLarge, "the message is longer than \(context.limits.messageBytes) bytes")
        }
        guard (message.to?.count ?? 0) <= context.limits.messageReceivers else {
            throw RoomError(.tooLarge, "the message names more than \(context.limits.messageReceivers) receivers")
        }
    }

    /// The sessions that get it. A name that nobody has is left out, so that somebody who leaves does not stop a message to the others; where it is the
    /// only one, the sender is told.
    private func receivers(of message: RoomMessage, except sender: SessionID?) throws(RoomError) -> [SessionID] {
        guard let names = message.to else { return roster.sessions.filter { $0 != sender } }
        var receivers: [SessionID] = []
        for name in names {
            let found = roster.session(sid: name).map { [$0] } ?? roster.sessions(identity: name)
            for session in found where session != sender && !receivers.contains(session) {
                if roster[session]?.isHidden == false || sender == nil { receivers.append(session) }
            }
        }
        guard !receivers.isEmpty || names.isEmpty else {
            throw RoomError(.participantNotFound, "none of the receivers is in the room")
        }
        return receivers
    }

    /// Over a data channel where the member has one; over its socket otherwise.
    private mutating func deliver(
        _ message: RoomMessage, to receivers: [SessionID], source: PeerID?, _ turn: inout RoomTurn
    ) {
        var channels: [MessageReceiver] = []
        for session in receivers {
            guard let member = roster[session], member.options.wantsMessages else { continue }
            if case .foreign(let name, _) = message.content, member.options.dataProtocol.name != name { continue }
            if let channel = member.channel(isReliable: message.isReliable) {
                channels.append(channel)
            } else if member.options.dataProtocol.signallingCarriesMessages,
                message.byteCount <= context.limits.relayBytes
            {
                roster.notify(session, .messageReceived(message), &turn)
            }
        }
        if !channels.isEmpty { turn.effects.append(.send(message, to: channels, source: source)) }
    }

    // MARK: - Channels

    /// The offer's data section is accepted.
    func acceptData(_ outcome: OfferOutcome, on connection: inout Connection, _ turn: inout RoomTurn) {
        let section = outcome.sections.first { $0.kind == .application && $0.refusal == nil }
        _ = acceptData(section?.dataChannel, on: &connection, &turn)
    }

    /// The server's data section is accepted: it opens the channels on which the member receives messages.
    func acceptData(
        _ answer: AcceptedAnswer, on connection: inout Connection, _ names: DataProtocol, _ turn: inout RoomTurn
    ) {
        guard acceptData(answer.sections.lazy.compactMap(\.dataChannel).first, on: &connection, &turn) else { return }
        turn.media(.openDataChannel(connection.peer, DataChannelTerms(label: names.reliableLabel)))
        let lossy = DataChannelTerms(label: names.lossyLabel, isOrdered: false, reliability: .retransmissions(0))
        turn.media(.openDataChannel(connection.peer, lossy))
    }

    /// Whether the connection has data channels from now on, and had none.
    private func acceptData(
        _ facts: DataChannelFacts?, on connection: inout Connection, _ turn: inout RoomTurn
    ) -> Bool {
        guard !connection.hasData, connection.isOpened, let facts else { return false }
        connection.hasData = true
        // 0 means any length (RFC 8841 section 6.1).
        let longest = facts.maximumMessageSize == 0 ? Int.max : facts.maximumMessageSize
        turn.media(.acceptData(connection.peer, DataTransport(port: facts.sctpPort, longestMessage: longest)))
        return true
    }

    /// A channel of a member may be used. A WHIP session has no other way to ask for messages.
    mutating func channelOpened(_ peer: PeerID, _ label: String) {
        guard let owner = roster.owner(of: peer) else { return }
        roster.updateConnection(owner.connection, of: owner.session) { _ = $0.channels.insert(label) }
        if roster[owner.session]?.options.isSignalled == false {
            roster.update(owner.session) { $0.options.wantsMessages = true }
        }
    }

    /// A channel of a member is closed. One that took messages too slowly gets none until it opens another, and is told.
    mutating func channelClosed(_ peer: PeerID, _ label: String, _ reason: DataChannelEnd, _ turn: inout RoomTurn) {
        guard let owner = roster.owner(of: peer) else { return }
        roster.updateConnection(owner.connection, of: owner.session) { _ = $0.channels.remove(label) }
        guard reason == .receiverTooSlow else { return }
        roster.notify(
            owner.session, .channelClosed(connection: owner.connection, label: label, reason: reason.rawValue), &turn)
    }
}

extension Member {
    /// Where it gets messages of a kind: its own channel for them, or the other one, which is better than none.
    fileprivate func channel(isReliable: Bool) -> MessageReceiver? {
        let names = options.dataProtocol
        let labels =
            isReliable ? [names.reliableLabel] : [names.lossyLabel, names.reliableLabel]
        for label in labels {
            if let connection = connections.first(where: { $0.channels.contains(label) }) {
                return MessageReceiver(peer: connection.peer, label: label, protocol: names)
            }
        }
        return nil
    }
}
