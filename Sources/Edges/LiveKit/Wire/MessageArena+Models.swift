import CLiveKitProtocol
import EdgeSupport
import MediaControl
import Rooms

// Rooms' values as messages. Only fields that clients read are written; the others keep their defaults.

extension MessageArena {
    /// `state`: nil if the participant is in the room, connected or not yet.
    func participant(
        _ info: ParticipantInfo, state: Livekit__ParticipantInfo__State? = nil
    ) -> UnsafeMutablePointer<Livekit__ParticipantInfo> {
        make(livekit__participant_info__init) { message in
            message.sid = text(info.sid)
            message.identity = text(info.identity)
            message.name = text(info.name)
            message.metadata = text(info.metadata)
            message.state =
                state
                ?? (info.hasConnected
                    ? LIVEKIT__PARTICIPANT_INFO__STATE__ACTIVE : LIVEKIT__PARTICIPANT_INFO__STATE__JOINED)
            message.n_tracks = info.tracks.count
            message.tracks = list(info.tracks.map(track))
            message.n_data_tracks = info.dataTracks.count
            message.data_tracks = list(info.dataTracks.map(dataTrack))
            message.joined_at = info.joinedAt / 1_000
            message.joined_at_ms = info.joinedAt
            message.version = info.version
            message.permission = permission(info.permissions)
            message.is_publisher = info.tracks.isEmpty ? 0 : 1
            message.kind = info.kindNumber
            let attributes = info.attributes.sorted { $0.key < $1.key }
            message.n_attributes = attributes.count
            message.attributes = list(
                attributes.map { attribute in
                    make(livekit__participant_info__attributes_entry__init) { entry in
                        entry.key = text(attribute.key)
                        entry.value = text(attribute.value)
                    }
                })
            message.client_protocol = Int32(clamping: info.clientTraits.peerProtocol)
            message.n_capabilities = info.clientTraits.capabilities.count
            message.capabilities = numbers(
                info.clientTraits.capabilities.map { Livekit__ClientInfo__Capability(UInt32(clamping: $0)) })
        }
    }

    func update(
        _ participants: [UnsafeMutablePointer<Livekit__ParticipantInfo>]
    ) -> UnsafeMutablePointer<Livekit__ParticipantUpdate> {
        make(livekit__participant_update__init) { update in
            update.n_participants = participants.count
            update.participants = list(participants)
        }
    }

    private func permission(_ permissions: Permissions) -> UnsafeMutablePointer<Livekit__ParticipantPermission> {
        make(livekit__participant_permission__init) { message in
            message.can_subscribe = permissions.canSubscribe ? 1 : 0
            // To clients, an empty list of sources means any source; here it means none.
            message.can_publish = permissions.canPublish && permissions.publishSources?.isEmpty != true ? 1 : 0
            message.can_publish_data = permissions.canPublishData ? 1 : 0
            message.hidden = permissions.hidden ? 1 : 0
            message.recorder = permissions.recorder ? 1 : 0
            message.can_update_metadata = permissions.canUpdateMetadata ? 1 : 0
            let sources = (permissions.publishSources ?? []).map(\.number).sorted { $0.rawValue < $1.rawValue }
            message.n_can_publish_sources = sources.count
            message.can_publish_sources = numbers(sources)
        }
    }

    func track(_ info: TrackInfo) -> UnsafeMutablePointer<Livekit__TrackInfo> {
        make(livekit__track_info__init) { message in
            message.sid = text(info.sid)
            message.type = info.kind == .video ? LIVEKIT__TRACK_TYPE__VIDEO : LIVEKIT__TRACK_TYPE__AUDIO
            message.name = text(info.name)
            message.muted = info.muted ? 1 : 0
            message.width = UInt32(clamping: info.width ?? 0)
            message.height = UInt32(clamping: info.height ?? 0)
            message.simulcast = info.simulcast || info.details.layers.count > 1 ? 1 : 0
            message.disable_dtx = info.kind == .audio && !info.details.usesDTX ? 1 : 0
            message.source = info.source.number
            message.n_layers = info.details.layers.count
            message.layers = list(info.details.layers.map(layer))
            message.mime_type = text(info.shownCodec?.mimeType ?? "")
            message.mid = text(info.mid)
            message.stereo = info.details.isStereo ? 1 : 0
            message.disable_red = info.details.disablesRED ? 1 : 0
            message.encryption = Livekit__Encryption__Type(UInt32(info.details.encryption.rawValue))
            message.stream = text(info.details.stream.isEmpty ? info.standardStream : info.details.stream)
            message.n_audio_features = info.details.audioFeatures.count
            message.audio_features = numbers(
                info.details.audioFeatures.map { Livekit__AudioTrackFeature(UInt32(clamping: $0)) })
            message.n_packet_trailer_features = info.details.frameTrailerFeatures.count
            message.packet_trailer_features = numbers(
                info.details.frameTrailerFeatures.map { Livekit__PacketTrailerFeature(UInt32(clamping: $0)) })
            let codecs = codecs(of: info)
            message.n_codecs = codecs.count
            message.codecs = list(codecs)
            message.backup_codec_policy = info.backupCodecPolicy.number
        }
    }

    /// The codec that is sent, once it is known, then the backup codec.
    private func codecs(of info: TrackInfo) -> [UnsafeMutablePointer<Livekit__SimulcastCodecInfo>] {
        guard let codec = info.shownCodec else { return [] }
        let first = make(livekit__simulcast_codec_info__init) { entry in
            entry.mime_type = text(codec.mimeType)
            entry.mid = text(info.mid)
            entry.cid = text(info.clientTrackID ?? "")
            entry.n_layers = info.details.layers.count
            entry.layers = list(info.details.layers.map(layer))
        }
        guard let backup = info.backupCodec else { return [first] }
        return [first, make(livekit__simulcast_codec_info__init) { $0.mime_type = text(backup.mimeType) }]
    }

    private func layer(_ layer: TrackDetails.Layer) -> UnsafeMutablePointer<Livekit__VideoLayer> {
        make(livekit__video_layer__init) { message in
            message.quality = Livekit__VideoQuality(UInt32(clamping: layer.quality))
            message.width = UInt32(clamping: layer.width)
            message.height = UInt32(clamping: layer.height)
            message.bitrate = UInt32(clamping: layer.bitrate)
            message.spatial_layer = Int32(clamping: layer.quality)
        }
    }

    func room(_ info: RoomInfo) -> UnsafeMutablePointer<Livekit__Room> {
        make(livekit__room__init) { message in
            message.sid = text(info.sid)
            message.name = text(info.name)
            message.metadata = text(info.metadata)
            message.max_participants = UInt32(clamping: info.maxParticipants ?? 0)
            message.num_participants = UInt32(clamping: info.participants)
            message.num_publishers = UInt32(clamping: info.publishers)
            message.active_recording = info.recordings.isEmpty ? 0 : 1
            message.creation_time = info.createdAt / 1_000
            message.creation_time_ms = info.createdAt
            message.n_enabled_codecs = Codec.enabled.count
            message.enabled_codecs = list(Codec.enabled.map(codec))
        }
    }

    private func codec(_ codec: Codec) -> UnsafeMutablePointer<Livekit__Codec> {
        make(livekit__codec__init) { $0.mime = text(codec.mimeType) }
    }

    func joinResponse(_ reply: JoinReply) -> UnsafeMutablePointer<Livekit__JoinResponse> {
        make(livekit__join_response__init) { message in
            message.room = room(reply.room)
            message.participant = participant(reply.participant, state: LIVEKIT__PARTICIPANT_INFO__STATE__JOINED)
            message.n_other_participants = reply.others.count
            message.other_participants = list(reply.others.map { participant($0) })
            message.server_version = text(Self.serverVersion)
            message.n_ice_servers = reply.iceServers.count
            message.ice_servers = list(reply.iceServers.map(iceServer))
            message.subscriber_primary = reply.isSubscriberPrimary ? 1 : 0
            // 0, the default, ends the process of clients that are built on the Rust SDK.
            message.ping_interval = reply.pingInterval
            message.ping_timeout = reply.pingTimeout
            message.server_info = serverInfo(reply.server)
            message.n_enabled_publish_codecs = reply.codecs.count
            message.enabled_publish_codecs = list(reply.codecs.map(codec))
        }
    }

    /// Clients derive features from it: a LiveKit server of this version has the features that exist here.
    private static let serverVersion = "1.9.0"
    /// The newest number in LiveKit's list of protocol versions whose requirements are met here.
    private static let protocolVersion: Int32 = 15

    func serverInfo(_ server: String = "") -> UnsafeMutablePointer<Livekit__ServerInfo> {
        make(livekit__server_info__init) { message in
            message.version = text(Self.serverVersion)
            message.protocol = Self.protocolVersion
            message.debug_info = text(server)
        }
    }

    func iceServer(_ server: ICEServer) -> UnsafeMutablePointer<Livekit__ICEServer> {
        make(livekit__iceserver__init) { message in
            message.n_urls = server.urls.count
            message.urls = list(server.urls.map(text))
            message.username = text(server.username ?? "")
            message.credential = text(server.credential ?? "")
        }
    }

    func description(
        _ type: String, _ sdp: String, _ id: UInt32, _ tracks: [String: String]
    ) -> UnsafeMutablePointer<Livekit__SessionDescription> {
        make(livekit__session_description__init) { message in
            message.type = text(type)
            message.sdp = text(sdp)
            message.id = id
            let entries = tracks.sorted { $0.key < $1.key }
            message.n_mid_to_track_id = entries.count
            message.mid_to_track_id = list(
                entries.map { mid, track in
                    make(livekit__session_description__mid_to_track_id_entry__init) { entry in
                        entry.key = text(mid)
                        entry.value = text(track)
                    }
                })
        }
    }

    func quality(_ quality: ParticipantQuality) -> UnsafeMutablePointer<Livekit__ConnectionQualityInfo> {
        make(livekit__connection_quality_info__init) { message in
            message.participant_sid = text(quality.participant)
            // The numbers are not in the order of size.
            message.quality =
                switch quality.quality {
                case ...0: LIVEKIT__CONNECTION_QUALITY__LOST
                case 1...2: LIVEKIT__CONNECTION_QUALITY__POOR
                case 3: LIVEKIT__CONNECTION_QUALITY__GOOD
                default: LIVEKIT__CONNECTION_QUALITY__EXCELLENT
                }
            message.score = Float(quality.quality)
        }
    }

    func streamState(
        _ participant: String, _ track: String, isPaused: Bool
    ) -> UnsafeMutablePointer<Livekit__StreamStateUpdate> {
        make(livekit__stream_state_update__init) { update in
            update.n_stream_states = 1
            update.stream_states = list([
                make(livekit__stream_state_info__init) { state in
                    state.participant_sid = text(participant)
                    state.track_sid = text(track)
                    state.state = isPaused ? LIVEKIT__STREAM_STATE__PAUSED : LIVEKIT__STREAM_STATE__ACTIVE
                }
            ])
        }
    }

    func subscribedQuality(
        _ track: String, _ demands: [ServerSignal.CodecDemand]
    ) -> UnsafeMutablePointer<Livekit__SubscribedQualityUpdate> {
        let qualities = demands.map { $0.qualities.map(quality) }
        return make(livekit__subscribed_quality_update__init) { message in
            message.track_sid = text(track)
            // Older clients know only one codec.
            message.n_subscribed_qualities = qualities.first?.count ?? 0
            message.subscribed_qualities = list(qualities.first ?? [])
            let codecs = zip(demands, qualities).compactMap { demand, qualities in
                demand.codec.map { codec in
                    make(livekit__subscribed_codec__init) { entry in
                        entry.codec = text(codec.word)
                        entry.n_qualities = qualities.count
                        entry.qualities = list(qualities)
                    }
                }
            }
            message.n_subscribed_codecs = codecs.count
            message.subscribed_codecs = list(codecs)
        }
    }

    private func quality(_ demand: ServerSignal.QualityDemand) -> UnsafeMutablePointer<Livekit__SubscribedQuality> {
        make(livekit__subscribed_quality__init) { message in
            message.quality = Livekit__VideoQuality(demand.quality.rawValue)
            message.enabled = demand.isEnabled ? 1 : 0
        }
    }

    func response(
        _ id: UInt32, _ refusal: ServerSignal.Refusal?, _ message: String
    ) -> UnsafeMutablePointer<Livekit__RequestResponse> {
        make(livekit__request_response__init) { response in
            response.request_id = id
            response.reason = Livekit__RequestResponse__Reason(refusal?.rawValue ?? 0)
            response.message = text(message)
        }
    }

    /// The response to a request to publish, which has no number: the client matches it by its own id of the track.
    func response(
        _ request: TrackRequest, _ refusal: ServerSignal.Refusal, _ message: String
    ) -> UnsafeMutablePointer<Livekit__RequestResponse> {
        let refused = response(0, refusal, message)
        refused.pointee.request_case = LIVEKIT__REQUEST_RESPONSE__REQUEST_ADD_TRACK
        refused.pointee.add_track = make(livekit__add_track_request__init) { add in
            add.cid = text(request.clientID)
            add.name = text(request.name)
            add.type = request.kind == .video ? LIVEKIT__TRACK_TYPE__VIDEO : LIVEKIT__TRACK_TYPE__AUDIO
            add.source = request.source.number
        }
        return refused
    }

    func dataTrack(_ info: DataTrackInfo) -> UnsafeMutablePointer<Livekit__DataTrackInfo> {
        make(livekit__data_track_info__init) { message in
            message.pub_handle = UInt32(info.handle)
            message.sid = text(info.sid)
            message.name = text(info.name)
            message.encryption = Livekit__Encryption__Type(UInt32(info.encryption.rawValue))
            message.frame_encoding = info.frameEncoding.map(encoding)
            message.schema = info.schema.map { schema in
                make(livekit__data_track_schema_id__init) { id in
                    id.name = text(schema.name)
                    id.encoding = schema.encoding.map(encoding)
                }
            }
        }
    }

    private func encoding(_ word: DataTrackInfo.Word) -> UnsafeMutablePointer<Livekit__DataTrackEncoding> {
        make(livekit__data_track_encoding__init) { encoding in
            switch word {
            case .known(let number):
                encoding.value_case = LIVEKIT__DATA_TRACK_ENCODING__VALUE_WELL_KNOWN
                encoding.well_known = number
            case .custom(let name):
                encoding.value_case = LIVEKIT__DATA_TRACK_ENCODING__VALUE_CUSTOM
                encoding.custom = text(name)
            }
        }
    }

    func handle(
        _ received: ReceivedDataTrack
    ) -> UnsafeMutablePointer<Livekit__DataTrackSubscriberHandles__SubHandlesEntry> {
        make(livekit__data_track_subscriber_handles__sub_handles_entry__init) { entry in
            entry.key = UInt32(received.number)
            entry.value = make(livekit__data_track_subscriber_handles__published_data_track__init) { track in
                track.publisher_identity = text(received.identity)
                track.publisher_sid = text(received.participant)
                track.track_sid = text(received.track)
            }
        }
    }

    /// The response to a request to publish a data track, which has no number either: the client matches it by its own number of the track.
    func response(
        _ track: DataTrackInfo, _ refusal: ServerSignal.Refusal, _ message: String
    ) -> UnsafeMutablePointer<Livekit__RequestResponse> {
        let refused = response(0, refusal, message)
        refused.pointee.request_case = LIVEKIT__REQUEST_RESPONSE__REQUEST_PUBLISH_DATA_TRACK
        refused.pointee.publish_data_track = make(livekit__publish_data_track_request__init) { publish in
            publish.pub_handle = UInt32(track.handle)
            publish.name = text(track.name)
        }
        return refused
    }
}

extension Codec {
    /// What clients may publish, in the server's order.
    static let enabled: [Codec] = [.opus, .red, .vp8, .h264, .vp9, .av1]

    /// The codec's media type (RFC 6838) in the spelling that LiveKit's clients compare with.
    var mimeType: String {
        switch self {
        case .opus: "audio/opus"
        case .red: "audio/red"
        case .vp8: "video/VP8"
        case .vp9: "video/VP9"
        case .h264: "video/H264"
        case .av1: "video/AV1"
        case .otherAudio: ""
        }
    }

    /// The one with this name; nil: not forwarded here. The Go SDK writes media types.
    init?(word: String) {
        let name = word.lowercased()
        let matches = { (codec: Codec) in codec.word == name || codec.mimeType.lowercased() == name }
        guard let codec = Codec.enabled.first(where: matches) else { return nil }
        self = codec
    }

    /// The name without the kind, in lower case.
    var word: String { String(mimeType.split(separator: "/").last ?? "").lowercased() }
}

extension TrackInfo {
    /// The codec that is sent, or before its first packet the one that was negotiated: the JavaScript and Flutter SDKs choose how to
    /// decrypt a track when they get it, which is mostly before that packet, and throw an error if there is no codec.
    var shownCodec: Codec? { codec ?? agreedCodec }

    /// LiveKit's clients put camera and microphone into one media stream, and screen and its audio into another.
    fileprivate var standardStream: String {
        switch source {
        case .camera, .microphone: "camera"
        case .screen, .screenAudio: "screen_share"
        case .unknown: ""
        }
    }
}
