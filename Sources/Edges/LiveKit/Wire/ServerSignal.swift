import CLiveKitProtocol
import EdgeSupport
import MediaControl
import Rooms

/// What the server sends on the signalling socket (`SignalResponse`).
enum ServerSignal: Sendable {
    case join(JoinReply)
    /// `lastSequence`: the number of the last reliable packet from the client that arrived; the client sends the following ones again.
    case reconnect([ICEServer], lastSequence: UInt32)
    case offer(sdp: String, id: UInt32)
    /// `tracks`: mid -> sid, for a client whose sections do not identify their tracks.
    case answer(sdp: String, id: UInt32, tracks: [String: String])
    case update([ParticipantInfo])
    /// With everything that the client knows of the participant: some clients consider what is missing here removed.
    case left(ParticipantInfo, LeaveReason)
    case trackPublished(clientID: String, TrackInfo)
    case trackUnpublished(track: String)
    case trackSubscribed(track: String)
    case mute(track: String, Bool)
    case speakers([Speaker])
    case quality([ParticipantQuality])
    case subscribedQuality(track: String, [CodecDemand])
    case subscriptionPermission(participant: String, track: String, allowed: Bool)
    /// A video is paused for lack of bandwidth, or sent again.
    case streamState(participant: String, track: String, isPaused: Bool)
    case room(RoomInfo)
    case refreshToken(String)
    /// The participant is in another room; `token` is valid for it, and empty if the server could not make one.
    case moved(SessionSnapshot, token: String)
    case pong(Int64)
    case pongResponse(last: Int64, now: Int64)
    /// `isKnown`: there is such a track.
    case subscriptionFailed(track: String, isKnown: Bool)
    case response(requestID: UInt32, Refusal?, String)
    case trackRefused(TrackRequest, Refusal, String)
    case dataTrackPublished(DataTrackInfo)
    case dataTrackUnpublished(DataTrackInfo)
    case dataTracksReceived([ReceivedDataTrack])
    case dataTrackRefused(DataTrackInfo, Refusal, String)
    case sectionsNeeded(audio: Int, video: Int)
    case leave(DisconnectReason, LeaveAction)

    /// How loud a participant is; silent and inactive: no longer a speaker.
    struct Speaker: Sendable, Hashable {
        var participant: String
        /// 0 to 1.
        var level: Float
        var isActive: Bool
    }

    /// Which qualities of a track somebody receives in one codec; nil: in the codec in which it is sent, if that is unknown. Newer clients skip this one.
    struct CodecDemand: Sendable, Hashable {
        var codec: Codec?
        var qualities: [QualityDemand]
    }

    /// Whether somebody receives one quality of a track.
    struct QualityDemand: Sendable, Hashable {
        var quality: Quality
        var isEnabled: Bool
    }

    /// Numbers of `VideoQuality`.
    enum Quality: UInt32, Sendable, Hashable, CaseIterable { case low, medium, high }

    /// Numbers of `RequestResponse.Reason`.
    enum Refusal: UInt32, Sendable, Hashable {
        case notFound = 1
        case notAllowed = 2
        case limitExceeded = 3
        case unsupportedType = 5
        case unclassified = 6
        case invalidHandle = 7
        case invalidName = 8
        case duplicateHandle = 9
        case duplicateName = 10
        case invalidRequest = 11
    }

    /// Numbers of `DisconnectReason`.
    enum DisconnectReason: UInt32, Sendable, Hashable {
        case unknown = 0
        case clientInitiated = 1
        case duplicateIdentity = 2
        case serverShutdown = 3
        case participantRemoved = 4
        case roomDeleted = 5
        case stateMismatch = 6
        case joinFailure = 7
        case migration = 8
        case signalClose = 9
        case connectionTimeout = 14
    }
}

/// The first message of a socket that joins.
struct JoinReply: Sendable {
    var room: RoomInfo
    var participant: ParticipantInfo
    var others: [ParticipantInfo]
    var iceServers: [ICEServer]
    var isSubscriberPrimary: Bool
    /// The server's name and version, for people.
    var server: String
    /// What the client may publish, in the room's order: it uses the first if its own choice is not among them.
    var codecs = Codec.enabled
    /// In seconds: how often the client sends a ping, and how long it waits for an answer before it joins anew.
    var pingInterval: Int32 = 5
    var pingTimeout: Int32 { 3 * pingInterval }
}

extension ServerSignal {
    /// The bytes of the binary frame.
    var frame: [UInt8] {
        let arena = MessageArena()
        let response = arena.make(livekit__signal_response__init) { write(into: &$0, arena) }
        return arena.packed(response)
    }

    private func write(into response: inout Livekit__SignalResponse, _ arena: MessageArena) {
        switch self {
        case .join(let reply):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_JOIN
            response.join = arena.joinResponse(reply)
        case .reconnect(let servers, let lastSequence):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_RECONNECT
            response.reconnect = arena.make(livekit__reconnect_response__init) { reply in
                reply.n_ice_servers = servers.count
                reply.ice_servers = arena.list(servers.map(arena.iceServer))
                reply.server_info = arena.serverInfo()
                reply.last_message_seq = lastSequence
            }
        case .offer(let sdp, let id):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_OFFER
            response.offer = arena.description("offer", sdp, id, [:])
        case .answer(let sdp, let id, let tracks):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_ANSWER
            response.answer = arena.description("answer", sdp, id, tracks)
        case .pong(let moment):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_PONG
            response.pong = moment
        case .pongResponse(let last, let now):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_PONG_RESP
            response.pong_resp = arena.make(livekit__pong__init) { pong in
                pong.last_ping_timestamp = last
                pong.timestamp = now
            }
        case .refreshToken(let token):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_REFRESH_TOKEN
            response.refresh_token = arena.text(token)
        case .leave(let reason, let action):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_LEAVE
            response.leave = arena.make(livekit__leave_request__init) { leave in
                leave.reason = reason.number
                leave.action = Livekit__LeaveRequest__Action(action.rawValue)
                leave.can_reconnect = action == .disconnect ? 0 : 1
            }
        case .update, .left, .room, .speakers, .quality, .moved: writeRoster(into: &response, arena)
        case .dataTrackPublished, .dataTrackUnpublished, .dataTracksReceived, .dataTrackRefused:
            writeDataTracks(into: &response, arena)
        default: writeTracks(into: &response, arena)
        }
    }

    /// Writes the participants and their network quality.
    private func writeRoster(into response: inout Livekit__SignalResponse, _ arena: MessageArena) {
        switch self {
        case .update(let participants):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_UPDATE
            response.update = arena.update(participants.map { arena.participant($0) })
        case .left(let info, let reason):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_UPDATE
            let gone = arena.participant(info, state: LIVEKIT__PARTICIPANT_INFO__STATE__DISCONNECTED)
            // Nothing comes after it.
            gone.pointee.version = .max
            gone.pointee.disconnect_reason = DisconnectReason(reason).number
            response.update = arena.update([gone])
        case .moved(let snapshot, let token):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_ROOM_MOVED
            response.room_moved = arena.make(livekit__room_moved_response__init) { moved in
                moved.room = arena.room(snapshot.room)
                moved.token = arena.text(token)
                moved.participant = arena.participant(snapshot.participant)
                moved.n_other_participants = snapshot.others.count
                moved.other_participants = arena.list(snapshot.others.map { arena.participant($0) })
            }
        case .room(let info):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_ROOM_UPDATE
            response.room_update = arena.make(livekit__room_update__init) { $0.room = arena.room(info) }
        case .speakers(let speakers):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_SPEAKERS_CHANGED
            response.speakers_changed = arena.make(livekit__speakers_changed__init) { changed in
                changed.n_speakers = speakers.count
                changed.speakers = arena.list(
                    speakers.map { speaker in
                        arena.make(livekit__speaker_info__init) { info in
                            info.sid = arena.text(speaker.participant)
                            info.level = speaker.level
                            info.active = speaker.isActive ? 1 : 0
                        }
                    })
            }
        case .quality(let list):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_CONNECTION_QUALITY
            response.connection_quality = arena.make(livekit__connection_quality_update__init) { update in
                update.n_updates = list.count
                update.updates = arena.list(list.map(arena.quality))
            }
        default: break
        }
    }

    /// Writes changes of tracks, and responses to requests.
    private func writeTracks(into response: inout Livekit__SignalResponse, _ arena: MessageArena) {
        switch self {
        case .trackPublished(let clientID, let info):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_TRACK_PUBLISHED
            response.track_published = arena.make(livekit__track_published_response__init) { published in
                published.cid = arena.text(clientID)
                published.track = arena.track(info)
            }
        case .trackUnpublished(let track):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_TRACK_UNPUBLISHED
            response.track_unpublished = arena.make(livekit__track_unpublished_response__init) {
                $0.track_sid = arena.text(track)
            }
        case .trackSubscribed(let track):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_TRACK_SUBSCRIBED
            response.track_subscribed = arena.make(livekit__track_subscribed__init) { $0.track_sid = arena.text(track) }
        case .mute(let track, let muted):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_MUTE
            response.mute = arena.make(livekit__mute_track_request__init) { mute in
                mute.sid = arena.text(track)
                mute.muted = muted ? 1 : 0
            }
        case .subscribedQuality(let track, let demands):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_SUBSCRIBED_QUALITY_UPDATE
            response.subscribed_quality_update = arena.subscribedQuality(track, demands)
        case .subscriptionPermission(let participant, let track, let allowed):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_SUBSCRIPTION_PERMISSION_UPDATE
            response.subscription_permission_update = arena.make(livekit__subscription_permission_update__init) {
                $0.participant_sid = arena.text(participant)
                $0.track_sid = arena.text(track)
                $0.allowed = allowed ? 1 : 0
            }
        case .streamState(let participant, let track, let isPaused):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_STREAM_STATE_UPDATE
            response.stream_state_update = arena.streamState(participant, track, isPaused: isPaused)
        case .subscriptionFailed(let track, let isKnown):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_SUBSCRIPTION_RESPONSE
            response.subscription_response = arena.make(livekit__subscription_response__init) {
                $0.track_sid = arena.text(track)
                // The protocol has no code for a limit.
                $0.err =
                    isKnown ? LIVEKIT__SUBSCRIPTION_ERROR__SE_UNKNOWN : LIVEKIT__SUBSCRIPTION_ERROR__SE_TRACK_NOTFOUND
            }
        case .response(let id, let refusal, let message):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_REQUEST_RESPONSE
            response.request_response = arena.response(id, refusal, message)
        case .trackRefused(let request, let refusal, let message):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_REQUEST_RESPONSE
            response.request_response = arena.response(request, refusal, message)
        case .sectionsNeeded(let audio, let video):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_MEDIA_SECTIONS_REQUIREMENT
            response.media_sections_requirement = arena.make(livekit__media_sections_requirement__init) {
                $0.num_audios = UInt32(clamping: audio)
                $0.num_videos = UInt32(clamping: video)
            }
        default: break
        }
    }
}

extension ServerSignal {
    private func writeDataTracks(into response: inout Livekit__SignalResponse, _ arena: MessageArena) {
        switch self {
        case .dataTrackPublished(let track):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_PUBLISH_DATA_TRACK_RESPONSE
            response.publish_data_track_response = arena.make(livekit__publish_data_track_response__init) {
                $0.info = arena.dataTrack(track)
            }
        case .dataTrackUnpublished(let track):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_UNPUBLISH_DATA_TRACK_RESPONSE
            response.unpublish_data_track_response = arena.make(livekit__unpublish_data_track_response__init) {
                $0.info = arena.dataTrack(track)
            }
        case .dataTracksReceived(let tracks):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_DATA_TRACK_SUBSCRIBER_HANDLES
            response.data_track_subscriber_handles = arena.make(livekit__data_track_subscriber_handles__init) {
                $0.n_sub_handles = tracks.count
                $0.sub_handles = arena.list(tracks.map(arena.handle))
            }
        case .dataTrackRefused(let track, let refusal, let message):
            response.message_case = LIVEKIT__SIGNAL_RESPONSE__MESSAGE_REQUEST_RESPONSE
            response.request_response = arena.response(track, refusal, message)
        default: break
        }
    }
}

extension ParticipantInfo {
    /// A participant of whom nothing else is known.
    init(sid: String, identity: String) {
        self.init(
            sid: sid, identity: identity, name: "", metadata: "", profile: .full, permissions: Permissions(),
            joinedAt: 0)
    }

    /// The kind in its token, or otherwise the kind that follows from what it does: clients find agents by it, and show them differently from people.
    var kindNumber: Livekit__ParticipantInfo__Kind {
        guard !permissions.recorder else { return LIVEKIT__PARTICIPANT_INFO__KIND__EGRESS }
        return switch kind {
        case "agent": LIVEKIT__PARTICIPANT_INFO__KIND__AGENT
        case "sip": LIVEKIT__PARTICIPANT_INFO__KIND__SIP
        case "ingress": LIVEKIT__PARTICIPANT_INFO__KIND__INGRESS
        case "egress": LIVEKIT__PARTICIPANT_INFO__KIND__EGRESS
        case "connector": LIVEKIT__PARTICIPANT_INFO__KIND__CONNECTOR
        case "bridge": LIVEKIT__PARTICIPANT_INFO__KIND__BRIDGE
        default:
            profile == .publishOnly
                ? LIVEKIT__PARTICIPANT_INFO__KIND__INGRESS : LIVEKIT__PARTICIPANT_INFO__KIND__STANDARD
        }
    }
}

extension ServerSignal.DisconnectReason {
    var number: Livekit__DisconnectReason { Livekit__DisconnectReason(rawValue) }

    /// LiveKit's name of a room's reason.
    init(_ reason: LeaveReason) {
        switch reason {
        case .left: self = .clientInitiated
        case .duplicateIdentity: self = .duplicateIdentity
        case .serverShutdown: self = .serverShutdown
        case .removed, .policyChanged, .tokenRevoked, .tokenExpired, .stayDurationReached: self = .participantRemoved
        case .roomDeleted, .roomDurationReached: self = .roomDeleted
        case .timeout, .connectionLost: self = .connectionTimeout
        case .tooSlow: self = .signalClose
        case .moved: self = .migration
        }
    }
}
