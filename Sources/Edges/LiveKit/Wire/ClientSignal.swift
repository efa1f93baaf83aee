import MediaControl
import Rooms

/// What a client sends on the signalling socket (`SignalRequest`).
enum ClientSignal: Sendable, Hashable {
    case offer(Description)
    case answer(Description)
    /// nil: the candidate could not be read; the server learns addresses from connectivity checks anyway.
    case trickle(candidate: String?, Target)
    case addTrack(TrackRequest)
    case mute(track: String, Bool)
    case subscription(tracks: [String], subscribes: Bool)
    case trackSettings(tracks: [String], TrackSettings)
    case leave
    /// nil: everybody may receive everything.
    case subscriptionPermission([TrackGrant]?)
    case syncState(SyncState)
    case simulate(Scenario)
    case ping(Int64)
    case pingRequest(timestamp: Int64)
    case updateMetadata(MetadataUpdate)
    case updateTrack(sid: String, TrackUpdate)
    /// Requests for features that do not exist here: they are answered so that no client waits.
    case unsupported(requestID: UInt32)
    case publishDataTrack(DataTrackInfo)
    case unpublishDataTrack(handle: UInt16)
    case dataSubscriptions([DataTrackRequest.Subscription])
    /// A member that is not known here.
    case unknown

    /// The most tracks that one message may name, as many as a participant receives; further ones are ignored.
    static let mostTracks = 250
    /// More tracks than one participant publishes.
    static let mostGrantedTracks = 64

    /// How many requests it counts as: each track that it names is one for the room.
    var requests: Int {
        switch self {
        case .subscription(let tracks, _), .trackSettings(let tracks, _): max(1, tracks.count)
        case .dataSubscriptions(let subscriptions): max(1, subscriptions.count)
        case .syncState(let state): max(1, state.tracks.count + state.disabled.count)
        default: 1
        }
    }

    /// Which of a client's two connections is meant.
    enum Target: Sendable, Hashable { case publisher, subscriber }

    /// A session description with its number.
    struct Description: Sendable, Hashable {
        var sdp: String
        var id: UInt32
    }

    /// The state of a client that resumes on another socket.
    struct SyncState: Sendable, Hashable {
        /// The sids of its own tracks and data tracks.
        var publications: [String]
        /// Tracks of others that it wants (`subscribes`), or does not want although it subscribes automatically.
        var tracks: [String]
        var subscribes: Bool
        /// Tracks that it does not want to be sent for now.
        var disabled: [String]
    }

    /// A subscriber's settings for a track.
    struct TrackSettings: Sendable, Hashable {
        var isDisabled = false
        /// 0 low, 1 medium, 2 high, 3 off.
        var quality = 0
        var width = 0
        var height = 0
        var framesPerSecond = 0
        /// 0: the publisher's; else the lower, the more important.
        var priority = 0
    }

    /// What one participant may receive.
    struct TrackGrant: Sendable, Hashable {
        var participant: String
        var identity: String
        /// nil: all.
        var tracks: [String]?
    }

    /// Texts about oneself.
    struct MetadataUpdate: Sendable, Hashable {
        var requestID: UInt32
        var name: String
        var metadata: String
        var attributes: [String: String]
    }

    /// What changes about one's own track.
    enum TrackUpdate: Sendable, Hashable {
        case audioFeatures([Int])
        case size(width: Int, height: Int)
    }

    /// What a test suite asks the server to do.
    enum Scenario: Sendable, Hashable {
        case leave(LeaveAction)
        case other
    }
}

/// What a client does when the server asks it to leave.
enum LeaveAction: UInt32, Sendable, Hashable {
    case disconnect = 0
    case resume = 1
    case reconnect = 2
}

/// A track that a client is about to publish (`AddTrackRequest`).
struct TrackRequest: Sendable, Hashable {
    /// The client's id of the track, which is also the msid track id in its offer, if its browser permits.
    var clientID = ""
    var name = ""
    var kind = MediaKind.audio
    var source = TrackSource.unknown
    var isMuted = false
    var width = 0
    var height = 0
    var details = TrackDetails()
    /// The first choice, then the backup codec; unknown ones are omitted.
    var codecs: [Codec] = []
    /// The client's id of the track in the backup codec, if it has one already (Go SDK); other clients send a separate request later.
    var backupClientID = ""
    var backupCodecPolicy = BackupCodecPolicy.regression
    /// The sid of an existing track: this is its encoding in the backup codec.
    var sid = ""
}
