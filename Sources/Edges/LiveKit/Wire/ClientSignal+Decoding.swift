import CLiveKitProtocol
import MediaControl
import Rooms

extension ClientSignal {
    /// nil where the frame is no `SignalRequest`.
    init?(frame bytes: [UInt8]) {
        guard let message = UnpackedMessage<Livekit__SignalRequest>(bytes, livekit__signal_request__unpack) else {
            return nil
        }
        self = message.read { Self($0) }
    }

    private init(_ message: Livekit__SignalRequest) {
        switch message.message_case {
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_OFFER: self = .offer(Description(message.offer.pointee))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_ANSWER: self = .answer(Description(message.answer.pointee))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_TRICKLE:
            let trickle = message.trickle.pointee
            let target: Target = trickle.target == LIVEKIT__SIGNAL_TARGET__SUBSCRIBER ? .subscriber : .publisher
            self = .trickle(candidate: CandidateInit(String(trickle.candidateinit))?.candidate, target)
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_ADD_TRACK: self = .addTrack(TrackRequest(message.add_track.pointee))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_MUTE:
            self = .mute(track: String(message.mute.pointee.sid), message.mute.pointee.muted != 0)
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_SUBSCRIPTION: self = Self.subscription(message.subscription.pointee)
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_TRACK_SETTING:
            let setting = message.track_setting.pointee
            self = .trackSettings(
                tracks: Array(distinct: [(setting.track_sids, setting.n_track_sids)], atMost: Self.mostTracks),
                TrackSettings(setting))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_LEAVE: self = .leave
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_SUBSCRIPTION_PERMISSION:
            self = Self.permission(message.subscription_permission.pointee)
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_SYNC_STATE:
            self = .syncState(SyncState(message.sync_state.pointee))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_SIMULATE: self = .simulate(Scenario(message.simulate.pointee))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_PING: self = .ping(message.ping)
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_PING_REQ:
            self = .pingRequest(timestamp: message.ping_req.pointee.timestamp)
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_UPDATE_METADATA:
            self = .updateMetadata(MetadataUpdate(message.update_metadata.pointee))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_UPDATE_AUDIO_TRACK:
            let update = message.update_audio_track.pointee
            self = .updateTrack(
                sid: String(update.track_sid),
                .audioFeatures((0..<update.n_features).map { Int(update.features[$0].rawValue) }))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_UPDATE_VIDEO_TRACK:
            let update = message.update_video_track.pointee
            self = .updateTrack(
                sid: String(update.track_sid), .size(width: Int(update.width), height: Int(update.height)))
        default: self = Self.data(message)
        }
    }

    /// About data tracks.
    private static func data(_ message: Livekit__SignalRequest) -> ClientSignal {
        switch message.message_case {
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_PUBLISH_DATA_TRACK_REQUEST:
            return .publishDataTrack(DataTrackInfo(message.publish_data_track_request.pointee))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_UNPUBLISH_DATA_TRACK_REQUEST:
            let handle = message.unpublish_data_track_request.pointee.pub_handle
            return .unpublishDataTrack(handle: DataTrackInfo.handle(handle))
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_UPDATE_DATA_SUBSCRIPTION:
            let update = message.update_data_subscription.pointee
            return .dataSubscriptions(
                messages(update.updates, min(update.n_updates, mostTracks)) {
                    DataTrackRequest.Subscription(track: String($0.track_sid), subscribes: $0.subscribe != 0)
                })
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_STORE_DATA_BLOB_REQUEST:
            return .unsupported(requestID: message.store_data_blob_request.pointee.request_id)
        case LIVEKIT__SIGNAL_REQUEST__MESSAGE_GET_DATA_BLOB_REQUEST:
            return .unsupported(requestID: message.get_data_blob_request.pointee.request_id)
        default: return .unknown
        }
    }

    private static func subscription(_ update: Livekit__UpdateSubscription) -> ClientSignal {
        .subscription(tracks: tracks(of: update), subscribes: update.subscribe != 0)
    }

    /// The same track may be named twice, in both lists.
    fileprivate static func tracks(of update: Livekit__UpdateSubscription) -> [String] {
        let lists =
            [(update.track_sids, update.n_track_sids)]
            + messages(update.participant_tracks, update.n_participant_tracks) { ($0.track_sids, $0.n_track_sids) }
        return Array(distinct: lists, atMost: mostTracks)
    }

    private static func permission(_ permission: Livekit__SubscriptionPermission) -> ClientSignal {
        guard permission.all_participants == 0 else { return .subscriptionPermission(nil) }
        return .subscriptionPermission(
            messages(permission.track_permissions, permission.n_track_permissions) { grant in
                TrackGrant(
                    participant: String(grant.participant_sid), identity: String(grant.participant_identity),
                    tracks: grant.all_tracks != 0
                        ? nil : Array(distinct: [(grant.track_sids, grant.n_track_sids)], atMost: mostGrantedTracks))
            })
    }
}

extension ClientSignal.Description {
    init(_ description: Livekit__SessionDescription) {
        self.init(sdp: String(description.sdp), id: description.id)
    }
}

extension ClientSignal.SyncState {
    init(_ state: Livekit__SyncState) {
        publications =
            messages(state.publish_tracks, state.n_publish_tracks) { $0.track.map { String($0.pointee.sid) } ?? "" }
            + messages(state.publish_data_tracks, state.n_publish_data_tracks) {
                $0.info.map { String($0.pointee.sid) } ?? ""
            }
        tracks = state.subscription.map { ClientSignal.tracks(of: $0.pointee) } ?? []
        subscribes = state.subscription.map { $0.pointee.subscribe != 0 } ?? false
        disabled = Array(
            distinct: [(state.track_sids_disabled, state.n_track_sids_disabled)],
            atMost: ClientSignal.mostTracks - tracks.count)
    }
}

extension ClientSignal.TrackSettings {
    init(_ setting: Livekit__UpdateTrackSettings) {
        self.init(
            isDisabled: setting.disabled != 0, quality: Int(setting.quality.rawValue), width: Int(setting.width),
            height: Int(setting.height), framesPerSecond: Int(setting.fps), priority: Int(setting.priority))
    }
}

extension ClientSignal.MetadataUpdate {
    init(_ update: Livekit__UpdateParticipantMetadata) {
        self.init(
            requestID: update.request_id, name: String(update.name), metadata: String(update.metadata),
            attributes: Dictionary(
                messages(update.attributes, update.n_attributes) { (String($0.key), String($0.value)) }
            ) { $1 })
    }
}

extension ClientSignal.Scenario {
    init(_ scenario: Livekit__SimulateScenario) {
        switch scenario.scenario_case {
        case LIVEKIT__SIMULATE_SCENARIO__SCENARIO_NODE_FAILURE,
            LIVEKIT__SIMULATE_SCENARIO__SCENARIO_LEAVE_REQUEST_FULL_RECONNECT:
            self = .leave(.reconnect)
        case LIVEKIT__SIMULATE_SCENARIO__SCENARIO_MIGRATION: self = .leave(.resume)
        case LIVEKIT__SIMULATE_SCENARIO__SCENARIO_SERVER_LEAVE: self = .leave(.disconnect)
        default: self = .other
        }
    }
}

extension TrackRequest {
    init(_ request: Livekit__AddTrackRequest) {
        clientID = String(request.cid)
        name = String(request.name)
        kind = request.type == LIVEKIT__TRACK_TYPE__VIDEO ? .video : .audio
        source = TrackSource(request.source)
        isMuted = request.muted != 0
        width = Int(request.width)
        height = Int(request.height)
        sid = String(request.sid)
        let named = messages(request.simulcast_codecs, request.n_simulcast_codecs) { one in
            Codec(word: String(one.codec)).map { (codec: $0, clientID: String(one.cid)) }
        }.compactMap { $0 }
        codecs = named.map(\.codec)
        if named.count > 1 { backupClientID = named[1].clientID }
        backupCodecPolicy = BackupCodecPolicy(request.backup_codec_policy)
        details.encryption = TrackDetails.Encryption(rawValue: Int(request.encryption.rawValue)) ?? .none
        details.stream = String(request.stream)
        // Flags that features have replaced: clients send one or both, depending on their age.
        func has(_ feature: Livekit__AudioTrackFeature) -> Bool {
            (0..<request.n_audio_features).contains { request.audio_features[$0] == feature }
        }
        details.isStereo = request.stereo != 0 || has(LIVEKIT__AUDIO_TRACK_FEATURE__TF_STEREO)
        details.usesDTX =
            kind == .audio && request.disable_dtx == 0 && !has(LIVEKIT__AUDIO_TRACK_FEATURE__TF_NO_DTX)
        details.disablesRED = request.disable_red != 0
        details.audioFeatures = (0..<request.n_audio_features).map { Int(request.audio_features[$0].rawValue) }
        details.frameTrailerFeatures = (0..<request.n_packet_trailer_features).map {
            Int(request.packet_trailer_features[$0].rawValue)
        }
        details.layers = messages(request.layers, request.n_layers) { layer in
            TrackDetails.Layer(
                quality: Int(layer.quality.rawValue), width: Int(layer.width), height: Int(layer.height),
                bitrate: Int(layer.bitrate))
        }
    }
}

extension BackupCodecPolicy {
    /// `PREFER_REGRESSION`, which clients also mean if they send nothing, leaves the choice to the server: it is regression, which they prefer.
    init(_ policy: Livekit__BackupCodecPolicy) {
        self = policy == LIVEKIT__BACKUP_CODEC_POLICY__SIMULCAST ? .simulcast : .regression
    }

    var number: Livekit__BackupCodecPolicy {
        self == .simulcast ? LIVEKIT__BACKUP_CODEC_POLICY__SIMULCAST : LIVEKIT__BACKUP_CODEC_POLICY__REGRESSION
    }
}

extension DataTrackInfo {
    init(_ request: Livekit__PublishDataTrackRequest) {
        self.init(handle: Self.handle(request.pub_handle), name: String(request.name))
        encryption = TrackDetails.Encryption(rawValue: Int(request.encryption.rawValue)) ?? .none
        frameEncoding = request.frame_encoding.flatMap { Word($0.pointee) }
        schema = request.schema.map { schema in
            Schema(name: String(schema.pointee.name), encoding: schema.pointee.encoding.flatMap { Word($0.pointee) })
        }
    }

    /// 0, which no data track has, for a number that no packet can carry.
    static func handle(_ number: UInt32) -> UInt16 { UInt16(exactly: number) ?? 0 }
}

extension DataTrackInfo.Word {
    init?(_ encoding: Livekit__DataTrackEncoding) {
        switch encoding.value_case {
        case LIVEKIT__DATA_TRACK_ENCODING__VALUE_WELL_KNOWN: self = .known(encoding.well_known)
        case LIVEKIT__DATA_TRACK_ENCODING__VALUE_CUSTOM: self = .custom(String(encoding.custom))
        default: return nil
        }
    }
}

extension TrackSource {
    init(_ source: Livekit__TrackSource) {
        switch source {
        case LIVEKIT__TRACK_SOURCE__CAMERA: self = .camera
        case LIVEKIT__TRACK_SOURCE__MICROPHONE: self = .microphone
        case LIVEKIT__TRACK_SOURCE__SCREEN_SHARE: self = .screen
        case LIVEKIT__TRACK_SOURCE__SCREEN_SHARE_AUDIO: self = .screenAudio
        default: self = .unknown
        }
    }

    var number: Livekit__TrackSource {
        switch self {
        case .camera: LIVEKIT__TRACK_SOURCE__CAMERA
        case .microphone: LIVEKIT__TRACK_SOURCE__MICROPHONE
        case .screen: LIVEKIT__TRACK_SOURCE__SCREEN_SHARE
        case .screenAudio: LIVEKIT__TRACK_SOURCE__SCREEN_SHARE_AUDIO
        case .unknown: LIVEKIT__TRACK_SOURCE__UNKNOWN
        }
    }
}
