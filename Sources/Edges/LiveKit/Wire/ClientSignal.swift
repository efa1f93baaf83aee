import MediaControl
import Rooms

/// What a client sends on the signalling socket (`SignalRequest`).
enum ClientSignal: Sendable, Hashable {
    case offer(Description)
    case answer(Description)
    /// nil: not a candidate that can be read; the server learns addresses from checks anyway.
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
    /// Requests about things that are not there: answered so that nobody waits.
    case unsupported(requestID: UInt32)
    case publishDataTrack(DataTrackInfo)
    case unpublishDataTrack(handle: UInt16)
    case dataSubscriptions([DataTrackRequest.Subscription])
    /// A member that is not known here.
    case unknown

    /// Tracks that one message names at most, which is as many as a participant receives; those that come after are left out.
    static let mostTracks = 250
    /// More tracks than one participant publishes.
    static let mostGrantedTracks = 64

    /// How many requests it stands for: each track that it names is one for the room.
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

    /// How things stand for a client that goes on on another socket.
    struct SyncState: Sendable, Hashable {
        /// The sids of its own tracks and data tracks.
        var publications: [String]
        /// Tracks of others that it wants (`subscribes`), or does not want although it subscribes automatically.
        var tracks: [String]
        var subscribes: Bool
        /// Tracks that it does not want to be sent for now.
        var disabled: [String]
    }

    /// What a viewer says about a track.
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

/// What a client does when it is told to leave.
enum LeaveAction: UInt32, Sendable, Hashable {
    case disconnect = 0
    case resume = 1
    case reconnect = 2
}

/// A track that a client is about to publish (`AddTrackRequest`).
struct TrackRequest: Sendable, Hashable {
    /// The client's id of the track; the msid track id in its offer, where its browser lets it be.
    var clientID = ""
    var name = ""
    var kind = MediaKind.audio
    var source = TrackSource.unknown
    var isMuted = false
    var width = 0
    var height = 0
    var details = TrackDetails()
    /// The first choice, and behind it the backup codec; those that are not known here are left out.
    var codecs: [Codec] = []
    /// The client's id of the track in the backup codec, where it has one already (Go SDK); others send a request of its own later.
    var backupClientID = ""
    var backupCodecPolicy = BackupCodecPolicy.regression
    /// Of a track that is there already: this is its encoding in the backup codec.
    var sid = ""
}
