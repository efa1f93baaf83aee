import MediaControl
import Primitives
import SDP

// The results of negotiating the sections on which tracks are sent.

extension Distribution {
    /// A sending section was accepted.
    mutating func activate(
        _ id: SubscriptionID, _ section: NegotiatedSection, _ sending: AgreedSending, on connection: Connection,
        _ state: inout RoomState, _ turn: inout RoomTurn
    ) {
        guard let subscription = state.routing[id] else { return }
        let hasRTX = sending.formats.contains { $0.rtxPayloadType != nil }
        let formats = sending.formats.map(PayloadFormat.init)
        var description = SubscriptionDescription(
            id: id, peer: connection.peer, track: state.encoding(of: subscription.track, for: formats),
            kind: subscription.kind, mid: section.mid, ssrc: subscription.ssrc,
            rtxSSRC: hasRTX ? subscription.rtxSSRC : nil, cname: sending.local.cname, formats: formats,
            extensions: HeaderExtensionIDs(sending.extensions), feedback: FeedbackKinds(sending.feedback),
            paused: state.isPaused(subscription), preference: subscription.preference)
        if subscription.kind == .video {
            description.playoutDelay = state.policy.playoutDelay(after: subscription.description?.playoutDelay)
        }
        if let known = subscription.description {
            if known != description { turn.media(.updateSubscription(description)) }
            // The client's codecs have changed.
            if known.track != description.track { turn.media(.switchSubscription(id, to: description.track)) }
        } else {
            turn.media(.subscribe(description))
            if subscription.display != DisplayPreference() {
                turn.media(.setDisplayPreference(id, subscription.display))
            }
        }
        state.routing.update(id) { subscription in
            subscription.bind(to: connection.id, mid: section.mid)
            subscription.description = description
            subscription.state = .active
        }
        if let track = subscription.track { state.reviewBackupDemand(of: track, &turn) }
        state.announceSubscribed(subscription.track, &turn)
        guard subscription.state != .active else { return }
        state.subscriptionChanged(id, &turn)
    }

    /// A sending section was not accepted.
    mutating func refuse(
        _ id: SubscriptionID, _ section: NegotiatedSection, on connection: Connection, _ state: inout RoomState,
        _ turn: inout RoomTurn
    ) {
        guard let subscription = state.routing[id], let member = state.roster[subscription.member] else { return }
        // A client that supports none of the codecs answers with port 0.
        if section.refusal == .noCommonCodec || section.refusal == .rejectedByRemote {
            if subscription.description != nil { turn.media(.unsubscribe(id)) }
            state.routing.update(id) { subscription in
                subscription.unbind()
                subscription.state = .noCommonCodec
            }
            state.roster.updateConnection(connection.id, of: member.session) { $0.subscriptionByMid[section.mid] = nil }
            if let track = subscription.track { state.reviewBackupDemand(of: track, &turn) }
            let track = state.routing.track(of: subscription)?.info.sid
            turn.log(.noCommonCodec(participant: member.info.sid, track: track))
            state.subscriptionChanged(id, &turn)
        } else {
            // The client rejects it: it is not offered again until requested.
            if let track = subscription.track { state.note(track, asUnwantedBy: member.session) }
            end(id, notifies: true, &state, &turn)
        }
    }
}
