import EdgeSupport
import MediaControl
import Primitives
import RoomService
import Rooms

/// One room's media at one moment.
struct RoomStatisticsModel: Encodable {
    var room: RoomModel
    var participants: [ParticipantStatisticsModel]

    init(_ report: RoomReport) {
        room = RoomModel(report.room)
        participants = report.participants.map { ParticipantStatisticsModel($0) }
    }
}

/// One participant's transports, tracks and subscriptions.
struct ParticipantStatisticsModel: Encodable {
    var sid: String
    var identity: String
    var connections: [ConnectionStatisticsModel]
    var tracks: [TrackStatisticsModel]
    var subscriptions: [SubscriptionStatisticsModel]

    init(_ report: ParticipantReport) {
        sid = report.sid
        identity = report.identity
        connections = report.connections.map { ConnectionStatisticsModel($0) }
        tracks = report.tracks.map { TrackStatisticsModel($0) }
        subscriptions = report.subscriptions.map { SubscriptionStatisticsModel($0) }
    }
}

/// One transport and its traffic.
struct ConnectionStatisticsModel: Encodable {
    var id: String
    var isConnected: Bool
    var usesIPv6: Bool
    var srtpProfile: String
    var packetsReceived: UInt64
    var bytesReceived: UInt64
    var packetsSent: UInt64
    var bytesSent: UInt64
    var rtpPacketsSent: UInt64
    var roundTripMilliseconds: Double?
    /// Bits per second.
    var estimate: Int64?
    var allocated: Int64?
    var demand: Int64?
    var downlinkLoss: Double
    var queueDelayMilliseconds: Double
    var probeBytes: UInt64
    var downlinkStateBytes: Int

    init(_ report: ConnectionReport) {
        let statistics = report.statistics
        id = report.id
        isConnected = statistics.isConnected
        usesIPv6 = statistics.usesIPv6
        srtpProfile = statistics.srtpProfile
        packetsReceived = statistics.packetsReceived
        bytesReceived = statistics.bytesReceived
        packetsSent = statistics.packetsSent
        bytesSent = statistics.bytesSent
        rtpPacketsSent = statistics.rtpPacketsSent
        roundTripMilliseconds = statistics.roundTripTime.map { $0.seconds * 1_000 }
        estimate = statistics.estimate?.bitsPerSecond
        allocated = statistics.allocated?.bitsPerSecond
        demand = statistics.wanted?.bitsPerSecond
        downlinkLoss = statistics.downlinkLoss.finite
        queueDelayMilliseconds = max(0, statistics.queueDelay.seconds * 1_000)
        probeBytes = statistics.probeBytes
        downlinkStateBytes = statistics.downlinkStateBytes
    }
}

/// One track and how it is received: the track's members, and counters next to them.
struct TrackStatisticsModel: Encodable {
    var track: TrackModel
    var loudness: Int
    var historyBytes: Int
    var layers: [LayerStatisticsModel]

    init(_ report: TrackReport) {
        track = TrackModel(report.info)
        track.codec = report.statistics.codec?.word ?? track.codec
        loudness = report.statistics.loudness
        historyBytes = report.statistics.historyBytes + (report.backup?.historyBytes ?? 0)
        layers = [report.statistics, report.backup].compactMap(\.self).flatMap { encoding in
            encoding.layers.map { LayerStatisticsModel($0, codec: encoding.codec) }
        }
    }

    private enum CodingKeys: String, CodingKey { case loudness, historyBytes, layers }

    func encode(to encoder: any Encoder) throws {
        try track.encode(to: encoder)
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(loudness, forKey: .loudness)
        try fields.encode(historyBytes, forKey: .historyBytes)
        try fields.encode(layers, forKey: .layers)
    }
}

/// One layer of a track.
struct LayerStatisticsModel: Encodable {
    var rid: String?
    /// The layer's codec: while its backup codec is sent, a track's layers have two.
    var codec: String?
    var ssrc: UInt32
    var isActive: Bool
    var packetsReceived: UInt64
    var bytesReceived: UInt64
    var packetsLost: UInt64
    var packetsRepaired: UInt64
    var nacksSent: UInt64
    var keyframeRequestsSent: UInt64
    var keyframesReceived: UInt64
    var framesReceived: UInt64
    /// Bits per second.
    var bitrate: Int64
    var framesPerSecond: Double
    var width: Int
    var height: Int
    var jitterMilliseconds: Double

    init(_ layer: LayerStatistics, codec: Codec?) {
        rid = layer.rid
        self.codec = codec?.word
        ssrc = layer.ssrc
        isActive = layer.isActive
        packetsReceived = layer.packetsReceived
        bytesReceived = layer.bytesReceived
        packetsLost = layer.packetsLost
        packetsRepaired = layer.packetsRepaired
        nacksSent = layer.nacksSent
        keyframeRequestsSent = layer.keyframeRequestsSent
        keyframesReceived = layer.keyframesReceived
        framesReceived = layer.framesReceived
        bitrate = layer.bitrate.bitsPerSecond
        framesPerSecond = layer.framesPerSecond.finite
        width = layer.width
        height = layer.height
        jitterMilliseconds = layer.jitterMilliseconds.finite
    }
}

/// One subscription and how it is sent: the subscription's members, and counters next to them.
struct SubscriptionStatisticsModel: Encodable {
    var subscription: SubscriptionModel
    var counters: Counters

    struct Counters: Encodable {
        var packetsSent: UInt64
        var bytesSent: UInt64
        /// Bits per second.
        var bitrate: Int64
        var retransmissionsSent: UInt64
        var nacksReceived: UInt64
        var keyframeRequestsReceived: UInt64
        var layerSwitches: UInt64
        var layer: Int?
        var width: Int
        var height: Int
        var fractionLost: Double
        var jitterMilliseconds: Double
        var orientationNotNegotiated: Bool
        /// As the client reports them.
        var freezeCount: UInt64?
        var freezeSeconds: Double?
    }

    init(_ report: SubscriptionReport) {
        let statistics = report.statistics
        subscription = SubscriptionModel(report.info)
        counters = Counters(
            packetsSent: statistics.packetsSent, bytesSent: statistics.bytesSent,
            bitrate: statistics.bitrate.bitsPerSecond, retransmissionsSent: statistics.retransmissionsSent,
            nacksReceived: statistics.nacksReceived, keyframeRequestsReceived: statistics.keyframeRequestsReceived,
            layerSwitches: statistics.layerSwitches, layer: statistics.layer,
            width: statistics.width, height: statistics.height, fractionLost: statistics.fractionLost.finite,
            jitterMilliseconds: statistics.jitterMilliseconds.finite,
            orientationNotNegotiated: statistics.orientationNotNegotiated, freezeCount: report.info.freezes?.count,
            freezeSeconds: report.info.freezes?.duration.seconds)
    }

    func encode(to encoder: any Encoder) throws {
        try subscription.encode(to: encoder)
        try counters.encode(to: encoder)
    }
}

extension Double {
    /// JSON has no infinity and no NaN.
    fileprivate var finite: Double { isFinite ? self : 0 }
}
