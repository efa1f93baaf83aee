import MediaControl
import Primitives
import SDP

extension Room {
    /// What was agreed becomes tracks and subscriptions of the worker.
    mutating func apply(
        _ sections: [NegotiatedSection], to name: String, of session: SessionID, _ turn: inout RoomTurn
    ) {
        for section in sections {
            if let receiving = section.receiving {
                receive(receiving, section: section, on: name, of: session, &turn)
            } else if let connection = try? connection(name, of: session),
                let track = connection.trackByMid[section.mid]
            {
                unpublish(track, &turn)
            }
            guard let connection = try? connection(name, of: session),
                let id = connection.subscriptionByMid[section.mid]
            else { continue }
            if let sending = section.sending {
                activate(id, section, sending, on: connection, &turn)
            } else {
                refuse(id, section, on: connection, &turn)
            }
        }
    }

    private mutating func activate(
        _ id: SubscriptionID, _ section: NegotiatedSection, _ sending: AgreedSending, on connection: Connection,
        _ turn: inout RoomTurn
    ) {
        guard let subscription = subscriptions[id] else { return }
        let hasRTX = sending.formats.contains { $0.rtxPayloadType != nil }
        let description = SubscriptionDescription(
            id: id, peer: connection.peer, track: subscription.track, kind: subscription.kind, mid: section.mid,
            ssrc: subscription.ssrc, rtxSSRC: hasRTX ? subscription.rtxSSRC : nil, cname: sending.local.cname,
            formats: sending.formats.map(PayloadFormat.init), extensions: HeaderExtensionIDs(sending.extensions),
            feedback: FeedbackKinds(sending.feedback), paused: isPaused(subscription),
            preference: subscription.preference)
        if subscription.description == nil {
            turn.media(.subscribe(description))
            if subscription.display != DisplayPreference() {
                turn.media(.setDisplayPreference(id, subscription.display))
            }
        } else if subscription.description != description {
            turn.media(.updateSubscription(description))
        }
        subscriptions[id]?.description = description
        subscriptions[id]?.connection = connection.id
        subscriptions[id]?.mid = section.mid
        guard subscription.state != .active else { return }
        subscriptions[id]?.state = .active
        subscriptionChanged(id, &turn)
    }

    /// A section that was to be sent on was not agreed.
    private mutating func refuse(
        _ id: SubscriptionID, _ section: NegotiatedSection, on connection: Connection, _ turn: inout RoomTurn
    ) {
        guard let subscription = subscriptions[id], let member = members[subscription.member] else { return }
        // A client that has none of the codecs answers with port 0.
        if section.refusal == .noCommonCodec || section.refusal == .rejectedByRemote {
            if subscription.description != nil { turn.media(.unsubscribe(id)) }
            subscriptions[id]?.unbind()
            subscriptions[id]?.state = .noCommonCodec
            if let index = member.connectionIndex(connection.id) {
                members[member.session]?.connections[index].subscriptionByMid[section.mid] = nil
            }
            let track = subscription.track.flatMap { tracks[$0]?.info.sid }
            turn.log(.noCommonCodec(participant: member.info.sid, track: track))
            subscriptionChanged(id, &turn)
        } else {
            // The client does not want it: it stays away until asked for.
            if let track = subscription.track { members[member.session]?.unwanted.insert(track) }
            endSubscription(id, tells: true, &turn)
        }
    }
}
