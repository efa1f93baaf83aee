import EdgeSupport
import Rooms

extension RoomEvent {
    /// Writes type and fields (Protocol.md section 7); `seq` is the caller's.
    func encode(to fields: inout FieldWriter) throws {
        try fields.set("type", type)
        switch self {
        case .participantJoined(let info), .participantUpdated(let info):
            try fields.set("participant", ParticipantModel(info))
        case .participantLeft(let participant, let identity, let reason):
            try fields.set("participant", participant)
            try fields.set("identity", identity)
            try fields.set("reason", reason.rawValue)
        case .trackPublished(let info), .trackUpdated(let info):
            try fields.set("track", TrackModel(info))
        case .trackUnpublished(let participant, let track):
            try fields.set("participant", participant)
            try fields.set("track", track)
        case .subscriptionUpdated(let info):
            try fields.set("subscription", SubscriptionModel(info))
        case .subscriptionEnded, .subscriptionStarted, .subscriptionHeld, .subscriptionsWaiting, .trackPermission:
            try encodeReceiving(to: &fields)
        case .publicationRefused(let connection, let mid, let track, let code, _):
            try fields.set("connection", connection)
            try fields.set("mid", mid)
            try fields.set("track", track)
            try fields.set("code", code.rawValue)
        case .offer, .sectionsNeeded, .connectionChanged: try encodeConnection(to: &fields)
        case .trackSubscribed(let track): try fields.set("track", track)
        case .relayed(let from, let identity, let payload):
            try fields.set("from", from)
            try fields.set("identity", identity)
            try fields.set("payload", payload)
        case .trackMutedByOther(let track, let by), .unmuteRequested(let track, let by):
            try fields.set("track", track)
            try fields.set("by", by)
        case .waitingRoomChanged(let guests): try fields.set("guests", guests.map(GuestModel.init))
        case .speakersChanged(let speakers): try fields.set("speakers", speakers.map(SpeakerModel.init))
        case .dominantSpeakerChanged(let participant): try fields.set("participant", participant)
        case .qualityChanged(let list): try fields.set("participants", list.map(QualityModel.init))
        case .layersWanted(let track, let layers):
            try fields.set("track", track)
            try fields.set(
                "layers", layers.map { LayerDemandModel(rid: $0.rid, spatial: $0.spatial, active: $0.isWanted) })
        // Only a client of LiveKit's protocol announces a backup codec, or has data tracks.
        case .backupWanted, .dataTrackPublished, .dataTrackUnpublished, .dataTracksReceived: break
        case .captureChanged(let notice): try notice.encode(to: &fields)
        case .drainChanged(let notice):
            try fields.set("deadline", notice?.deadline)
            try fields.set("cancelled", notice == nil ? true : nil)
        case .messageReceived, .messageRefused, .channelClosed: try encodeMessaging(to: &fields)
        case .roomUpdated(let info): try fields.set("room", RoomModel(info))
        case .moved(let snapshot): try snapshot.encode(to: &fields)
        case .ended(let reason, let message):
            try fields.set("reason", reason.rawValue)
            try fields.set("message", message)
        }
    }

    private func encodeReceiving(to fields: inout FieldWriter) throws {
        switch self {
        case .subscriptionEnded(let subscription, let track), .subscriptionStarted(let subscription, let track):
            try fields.set("subscription", subscription)
            try fields.set("track", track)
        case .subscriptionHeld(let subscription, _, let track, let isHeld):
            try fields.set("subscription", subscription)
            try fields.set("track", track)
            try fields.set("held", isHeld)
        case .subscriptionsWaiting(let limit, let waiting):
            try fields.set("limit", limit)
            try fields.set("waiting", waiting)
        case .trackPermission(let participant, let track, let isAllowed):
            try fields.set("participant", participant)
            try fields.set("track", track)
            try fields.set("allowed", isAllowed)
        default: break
        }
    }

    private func encodeConnection(to fields: inout FieldWriter) throws {
        switch self {
        case .offer(let connection, let sdp, let tracks):
            try fields.set("connection", connection)
            try fields.set("sdp", sdp)
            try fields.set("tracks", tracks)
        case .sectionsNeeded(let connection, let audio, let video):
            try fields.set("connection", connection)
            try fields.set("audio", audio)
            try fields.set("video", video)
        case .connectionChanged(let connection, let state, let reason):
            try fields.set("connection", connection)
            try fields.set("state", state.rawValue)
            try fields.set("reason", reason)
        default: break
        }
    }

    private func encodeMessaging(to fields: inout FieldWriter) throws {
        switch self {
        case .messageReceived(let message): try message.encode(to: &fields)
        case .messageRefused(let topic, let code, let detail):
            try fields.set("topic", topic)
            try fields.set("code", code.rawValue)
            try fields.set("message", detail)
        case .channelClosed(let connection, let label, let reason):
            try fields.set("connection", connection)
            try fields.set("label", label)
            try fields.set("reason", reason)
        default: break
        }
    }

    /// The word of the message.
    private var type: String {
        switch self {
        case .participantJoined: "participantJoined"
        case .participantUpdated: "participantUpdated"
        case .participantLeft: "participantLeft"
        case .trackPublished: "trackPublished"
        case .trackUpdated: "trackUpdated"
        case .trackUnpublished: "trackUnpublished"
        case .subscriptionUpdated: "subscriptionUpdated"
        case .subscriptionEnded: "subscriptionEnded"
        case .subscriptionStarted: "subscriptionStarted"
        case .subscriptionHeld: "subscriptionHeld"
        case .trackPermission: "trackPermission"
        case .subscriptionsWaiting: "subscriptionsWaiting"
        case .publicationRefused: "publicationRefused"
        case .offer: "offer"
        case .sectionsNeeded: "sectionsNeeded"
        case .trackSubscribed: "trackSubscribed"
        case .connectionChanged: "connection"
        case .speakersChanged: "speakers"
        case .dominantSpeakerChanged: "dominantSpeaker"
        case .qualityChanged: "quality"
        case .layersWanted: "layerDemand"
        case .backupWanted: "backupDemand"
        case .dataTrackPublished: "dataTrackPublished"
        case .dataTrackUnpublished: "dataTrackUnpublished"
        case .dataTracksReceived: "dataTracks"
        case .relayed: "relay"
        case .messageReceived: "data"
        case .messageRefused: "dataRefused"
        case .channelClosed: "dataChannelClosed"
        case .roomUpdated: "room"
        case .trackMutedByOther: "trackMutedByOther"
        case .captureChanged: "capture"
        case .drainChanged: "migrate"
        case .unmuteRequested: "unmuteRequested"
        case .waitingRoomChanged: "waitingRoom"
        case .moved: "moved"
        case .ended: "ended"
        }
    }
}

extension CaptureNotice {
    /// The fields for the participant; who requested it is shown only to operators.
    fileprivate func encode(to fields: inout FieldWriter) throws {
        try fields.set("active", isActive)
        try fields.set("payload", keepsPayload)
        try fields.set("until", until)
    }
}

private struct SpeakerModel: Encodable {
    var participant: String
    var track: String
    var loudness: Int

    init(_ info: SpeakerInfo) {
        participant = info.participant
        track = info.track
        loudness = info.loudness
    }
}

/// A layer of one's own video, and whether the publisher should send it: the `active` of `RTCRtpEncodingParameters`.
private struct LayerDemandModel: Encodable {
    var rid: String?
    var spatial: Int?
    var active: Bool
}

private struct QualityModel: Encodable {
    var participant: String
    var quality: Int

    init(_ info: ParticipantQuality) {
        participant = info.participant
        quality = info.quality
    }
}
