public import Primitives

/// Counters and gauges of one worker at one moment.
public struct WorkerStatistics: Sendable {
    /// The worker hangs: all other values are outdated.
    public var hangs = false
    public var rooms = 0
    public var peers = 0
    public var tracks = 0
    public var subscriptions = 0
    public var packetsReceived: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    public var packetsSent: UInt64 = 0
    public var bytesSent: UInt64 = 0
    /// RTP packets protected for subscribers.
    public var packetsForwarded: UInt64 = 0
    /// The number of these that were padded to the length of their neighbours.
    public var packetsPadded: UInt64 = 0
    public var nacksReceived: UInt64 = 0
    public var nacksSent: UInt64 = 0
    public var retransmissionsSent: UInt64 = 0
    public var keyframeRequestsReceived: UInt64 = 0
    public var keyframeRequestsSent: UInt64 = 0
    /// How often a microphone took the place of another among the loudest of its room.
    public var microphoneSwitches: UInt64 = 0
    public var commandsIgnored: UInt64 = 0
    /// Messages on data channels.
    public var data = DataCounters()
    public var drops = DropCounters()
    /// DTLS handshakes that failed, by cause.
    public var handshakeFailures: [HandshakeFailure: UInt64] = [:]
    /// Probes sent to subscribers, by outcome.
    public var probes = ProbeCounters()
    /// TCP connections of its clients.
    public var tcp = TCPStatistics()
    /// Datagrams that the kernel dropped because the worker did not read them in time.
    public var receiveBufferDrops: UInt64 = 0
    /// Datagrams sent in segmented runs.
    public var packetsSegmented: UInt64 = 0
    /// Runs that were sent one by one because the kernel refused to segment them; after a refusal for the whole route, no more are tried.
    public var segmentationRefused: UInt64 = 0
    /// System calls for sending or receiving.
    public var socketCalls: UInt64 = 0
    /// Turns of the worker's loop.
    public var turns: UInt64 = 0
    /// How long forwarded packets stayed in the server.
    public var transit = TransitHistogram()
    /// How long turns kept the loop busy, in the same buckets as packets' times: a packet may have waited that long in the kernel.
    public var turnTimes = TransitHistogram()
    /// Time during which the worker did not sleep.
    public var busyTime = TimeSpan.zero

    public init() {}
}

/// Counters of messages on data channels.
public struct DataCounters: Sendable, Hashable {
    public var received: UInt64 = 0
    /// Messages queued for a receiver, counted for each.
    public var sent: UInt64 = 0
    /// Bytes of datagrams that carry them, with acknowledgements and retransmissions.
    public var bytesSent: UInt64 = 0
    /// Messages on lossy channels that were dropped as too old or too many, or abandoned after a loss.
    public var lossyDropped: UInt64 = 0
    /// Messages for a peer that has no such channel or accepts no message of that length.
    public var undeliverable: UInt64 = 0
    /// Messages from a peer on a stream without an open channel, or with an unknown payload protocol identifier.
    public var ignored: UInt64 = 0
    /// Reliable channels that were closed because their peer was too slow.
    public var channelsClosedAsSlow: UInt64 = 0

    public init() {}
}

/// Counters and gauges of one peer's transport.
public struct PeerStatistics: Sendable, Hashable {
    public var peer: PeerID
    public var isConnected = false
    /// Whether datagrams use IPv6; the address itself stays out of reports.
    public var usesIPv6 = false
    public var srtpProfile = ""
    public var profile = PeerProfile.full
    public var packetsReceived: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    public var packetsSent: UInt64 = 0
    public var bytesSent: UInt64 = 0
    /// RTP packets sent to the peer, all subscriptions together.
    public var rtpPacketsSent: UInt64 = 0
    /// Round trip time measured by STUN or RTCP; nil before the first.
    public var roundTripTime: TimeSpan?
    /// The estimate of the path to the peer; nil while there is none.
    public var estimate: Bitrate?
    /// The bitrate of the selected layers, audio included.
    public var allocated: Bitrate?
    /// The bitrate that all its subscriptions together could use.
    public var wanted: Bitrate?
    /// Share of lost packets to the peer, 0 to 1, by its transport-wide feedback.
    public var downlinkLoss = 0.0
    /// How long packets to the peer wait in queues on the path.
    public var queueDelay = TimeSpan.zero
    /// Bytes of probes sent to it.
    public var probeBytes: UInt64 = 0
    /// Packets are sent to the peer, but no feedback arrives.
    public var isSilent = false
    /// Memory of this peer's downlink: 0 for publish-only.
    public var downlinkStateBytes = 0

    public init(peer: PeerID) { self.peer = peer }
}

/// One layer (or the only stream) of a track.
public struct LayerStatistics: Sendable {
    public var rid: String?
    public var ssrc: UInt32 = 0
    public var packetsReceived: UInt64 = 0
    public var bytesReceived: UInt64 = 0
    /// Packets still missing after repair.
    public var packetsLost: UInt64 = 0
    /// Packets repaired by retransmission.
    public var packetsRepaired: UInt64 = 0
    public var nacksSent: UInt64 = 0
    public var keyframeRequestsSent: UInt64 = 0
    public var keyframesReceived: UInt64 = 0
    public var framesReceived: UInt64 = 0
    public var bitrate = Bitrate.zero
    public var framesPerSecond = 0.0
    public var width = 0
    public var height = 0
    /// Interarrival jitter (RFC 3550 section 6.4.1) in milliseconds.
    public var jitterMilliseconds = 0.0
    public var isActive = false

    public init() {}
}

/// A published track.
public struct TrackStatistics: Sendable {
    public var track: TrackID
    public var kind: MediaKind
    public var codec: Codec?
    public var isMuted = false
    /// No recent packets although not muted: the publisher paused.
    public var isSilent = false
    public var layers: [LayerStatistics] = []
    /// Loudness 0 to 127, audio only.
    public var loudness = 0
    /// Bytes stored for retransmission.
    public var historyBytes = 0

    public init(track: TrackID, kind: MediaKind) {
        self.track = track
        self.kind = kind
    }
}

/// One track as one subscriber receives it.
public struct SubscriptionStatistics: Sendable {
    public var subscription: SubscriptionID
    public var track: TrackID?
    public var packetsSent: UInt64 = 0
    public var bytesSent: UInt64 = 0
    public var bitrate = Bitrate.zero
    public var retransmissionsSent: UInt64 = 0
    public var nacksReceived: UInt64 = 0
    public var keyframeRequestsReceived: UInt64 = 0
    public var layerSwitches: UInt64 = 0
    /// The layer being forwarded; nil when none.
    public var layer: Int?
    public var isPaused = false
    /// Width and height of the video that is forwarded, in pixels; 0 while none is, or while they are unknown.
    public var width = 0
    public var height = 0
    /// Fraction of packets lost as last reported by the subscriber, 0 to 1.
    public var fractionLost = 0.0
    /// Interarrival jitter (RFC 3550 section 6.4.1) as last reported by the subscriber, in milliseconds.
    public var jitterMilliseconds = 0.0
    /// The decision in force, of a video.
    public var decision: DecisionRecord?
    /// The subscriber did not negotiate the video-orientation extension although the track uses it.
    public var orientationNotNegotiated = false

    public init(subscription: SubscriptionID) { self.subscription = subscription }
}
