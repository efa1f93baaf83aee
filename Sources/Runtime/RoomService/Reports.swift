public import MediaControl
public import Primitives
public import Rooms

/// One room with everybody in it, as operators see it.
public struct RoomDetail: Sendable {
    public var info: RoomInfo
    public var policy: RoomPolicy
    public var participants: [ParticipantDetail]
}

/// One participant as operators see it.
public struct ParticipantDetail: Sendable {
    public var info: ParticipantInfo
    /// What its token permits; an operator may have changed its permissions since.
    public var granted: Permissions
    public var connections: [ConnectionInfo]
    public var subscriptions: [SubscriptionInfo]
    /// The limits of its bandwidth.
    public var bandwidth: BandwidthSettings
    /// Its own rules for what it may receive, by an operator or its token; nil: those of the room apply.
    public var subscribeRules: [SubscribeRule]?
}

/// One peer connection as operators see it.
public struct ConnectionInfo: Sendable, Hashable {
    public var id: String
    public var state: ConnectionState
}

/// One room's media at one moment, with the names that the control plane knows.
public struct RoomReport: Sendable {
    public var room: RoomInfo
    public var participants: [ParticipantReport]
}

/// One participant's transports, tracks and subscriptions.
public struct ParticipantReport: Sendable {
    public var sid: String
    public var identity: String
    public var connections: [ConnectionReport]
    public var tracks: [TrackReport]
    public var subscriptions: [SubscriptionReport]

    /// Adds an encoding of a track: the first one, or the one in the backup codec, in any order.
    mutating func add(_ encoding: TrackStatistics, of info: TrackInfo) {
        guard let index = tracks.firstIndex(where: { $0.info.sid == info.sid }) else {
            return tracks.append(TrackReport(info: info, statistics: encoding))
        }
        if encoding.codec == info.codec {
            tracks[index].backup = tracks[index].statistics
            tracks[index].statistics = encoding
        } else {
            tracks[index].backup = encoding
        }
    }
}

/// One transport and its traffic.
public struct ConnectionReport: Sendable {
    public var id: String
    public var statistics: PeerStatistics
}

/// One track and how it is received.
public struct TrackReport: Sendable {
    public var info: TrackInfo
    /// Statistics of its first encoding.
    public var statistics: TrackStatistics
    /// Statistics of its encoding in the backup codec, while that is sent.
    public var backup: TrackStatistics?

    /// All layers that are received.
    public var layers: [LayerStatistics] { statistics.layers + (backup?.layers ?? []) }
}

/// One subscription and how it is sent.
public struct SubscriptionReport: Sendable {
    public var info: SubscriptionInfo
    public var statistics: SubscriptionStatistics
}

/// The history of how a participant's bandwidth was allocated, oldest first.
public struct DecisionsReport: Sendable {
    public var decisions: [DecisionReport]
    /// The estimated bandwidth of the path in the last hour.
    public var estimates: [EstimateReport]

    /// These decisions and estimates.
    public init(decisions: [DecisionReport], estimates: [EstimateReport]) {
        self.decisions = decisions
        self.estimates = estimates
    }
}

/// The lowest and the highest estimate of some seconds.
public struct EstimateReport: Sendable, Hashable {
    /// When they began: milliseconds since 1970.
    public var at: Int64
    public var least: Bitrate
    public var most: Bitrate

    /// Estimates from `at` on.
    public init(at: Int64, least: Bitrate, most: Bitrate) {
        self.at = at
        self.least = least
        self.most = most
    }
}

/// One decision about one video, with the names that the control plane knows.
public struct DecisionReport: Sendable, Hashable {
    /// Milliseconds since 1970.
    public var at: Int64
    /// sid of the subscription; nil if it has ended since.
    public var subscription: String?
    /// sid of the track; nil if it has ended since.
    public var track: String?
    public var record: DecisionRecord
    /// The viewer's limits now, and who set them; nil if the viewer has left.
    public var limits: BandwidthSettings?

    /// A decision at `at`.
    public init(
        at: Int64, subscription: String?, track: String?, record: DecisionRecord, limits: BandwidthSettings? = nil
    ) {
        self.at = at
        self.subscription = subscription
        self.track = track
        self.record = record
        self.limits = limits
    }
}

/// What one participant is sent now, and why not more.
public struct AllocationReport: Sendable {
    /// The estimated bandwidth of its path; nil while nothing is known.
    public var estimate: Bitrate?
    /// The rate of the chosen layers, including audio.
    public var allocated = Bitrate.zero
    /// The rate of everything that is in demand.
    public var wanted = Bitrate.zero
    /// The decision for each of its videos.
    public var videos: [DecisionReport] = []

    /// Nothing is sent.
    public init() {}
}

/// Totals since the start and current gauges, for metrics.
public struct RoomServiceStatistics: Sendable {
    public var rooms = 0
    public var participants = 0
    public var publishers = 0
    public var tracks = 0
    public var subscriptions = 0
    public var connections = 0
    /// Connections that are reserved for participants, open or not, of at most `maxConnections`.
    public var reservedConnections = 0
    public var maxConnections = 0
    /// Sessions whose socket is closed and that may still be resumed.
    public var detachedSessions = 0
    public var whipSessions = 0
    public var whepSessions = 0
    public var joins: UInt64 = 0
    public var roomsCreated: UInt64 = 0
    public var resumes: UInt64 = 0
    public var eventsDelivered: UInt64 = 0
    /// Refusals by stable code.
    public var refusals: [String: UInt64] = [:]
    /// Departures by stable reason.
    public var departures: [String: UInt64] = [:]
    /// Ended transports by stable reason.
    public var connectionsEnded: [String: UInt64] = [:]
    public var offersAnswered: UInt64 = 0
    public var offersMade: UInt64 = 0
    /// Streams that ended because their reader did not keep up.
    public var slowReaders: UInt64 = 0
    /// Messages that arrived on data channels.
    public var messagesReceived: UInt64 = 0
    /// The time from the join to the first peer connection.
    public var connectTimes = ConnectTimes()
    /// The time from participants' joins until they reached each step.
    public var joinSteps: [JoinStep: ConnectTimes] = [:]
    /// The time that the verification of joining participants' tokens took.
    public var tokenVerification = Histogram(bounds: [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1])
    /// The state of participants' networks, sampled every five seconds.
    public var network = NetworkHistograms()
    /// For all videos that clients played and reported about.
    public var freezes = Freezes()
    public var isDraining = false
}

extension RoomReport {
    /// What a room's worker measured, with the names that the room knows.
    init(_ room: Room, _ statistics: MediaReport) {
        var reports: [SessionID: ParticipantReport] = [:]
        for session in room.sessions {
            guard let info = room.participant(session) else { continue }
            reports[session] = ParticipantReport(
                sid: info.sid, identity: info.identity, connections: [], tracks: [], subscriptions: [])
        }
        for peer in statistics.peers {
            guard let owner = room.owner(of: peer.peer) else { continue }
            reports[owner.session]?.connections.append(ConnectionReport(id: owner.connection, statistics: peer))
        }
        for track in statistics.tracks {
            guard let (session, info) = room.published(track.track) else { continue }
            reports[session]?.add(track, of: info)
        }
        for subscription in statistics.subscriptions {
            guard let (session, info) = room.subscribed(subscription.subscription) else { continue }
            reports[session]?.subscriptions.append(SubscriptionReport(info: info, statistics: subscription))
        }
        self.init(room: room.info, participants: room.sessions.compactMap { reports[$0] })
    }
}
