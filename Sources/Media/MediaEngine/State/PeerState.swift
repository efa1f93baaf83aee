import Forwarding
import MediaControl
import PeerTransport
import Primitives

/// One peer of the engine.
struct PeerState: ~Copyable {
    let id: PeerID
    /// Index of its room; ``Tables/movePeer(_:to:)`` changes it.
    var room: Int
    let profile: PeerProfile
    let transport: WebRTCTransport
    /// The transport's media path, for the packet path.
    let media: UnsafeMutablePointer<MediaPath>
    let uplink: Uplink
    /// State that only a receiver needs, in a block of its own; nil for publish-only peers.
    let downlink: UnsafeMutablePointer<Downlink>?
    /// Its user name fragments with their keys in the table.
    var ufrags: [(text: String, key: UInt64)] = []
    /// The source addresses that belong to it.
    var addresses: [SocketAddress] = []
    /// Limits checks for it from unknown addresses.
    var unknownSources = RateLimit()
    var trackCount = 0
    /// It is on the list of peers to process at the end of the turn.
    var isTouched = false
    /// Its transport's deadline may be earlier than `transportDeadline`. Media only moves the deadline later, and reading it touches
    /// three objects of cold memory.
    var isTransportTouched = true
    private var transportDeadline = MonotonicTime.zero
    /// It has data channels.
    var hasData = false
    /// When its data channels may send more.
    var dataResumesAt = MonotonicTime.distantFuture
    /// The first peer of its participant, and the index of the participant's next older peer; ``Tables`` changes it.
    let group: PeerID
    var nextOfGroup = -1
    /// The debts of senders that wait until it has accepted more.
    var debts = DataDebts()
    /// Lossy messages that were dropped for it, and messages from it that were ignored, as far as they are counted.
    var lossyDropsCounted = 0, ignoredCounted = 0
    /// Publisher's clock to server's clock, by its first sender report; fixed for its lifetime, so that all its streams stay in sync.
    var captureOffset: Int64?
    var packetsReceived: UInt64 = 0
    var bytesReceived: UInt64 = 0
    /// RTCP only; the downlink counts RTP.
    var packetsSent: UInt64 = 0
    var bytesSent: UInt64 = 0

    /// Whether media can pass. A player's packets come from this process, so it has no transport to wait for.
    var isConnected: Bool { transport.isConnected || profile == .player }

    init(_ description: PeerDescription, room: Int, transport: WebRTCTransport, uplink: Uplink) {
        id = description.id
        group = description.group
        self.room = room
        profile = description.profile
        self.transport = transport
        media = transport.media
        self.uplink = uplink
        guard description.profile == .full else {
            downlink = nil
            return
        }
        let downlink = UnsafeMutablePointer<Downlink>.allocate(capacity: 1)
        downlink.initialize(to: Downlink())
        self.downlink = downlink
    }

    /// The deadline of its transport.
    mutating func currentTransportDeadline() -> MonotonicTime {
        if isTransportTouched {
            transportDeadline = transport.nextDeadline
            isTransportTouched = false
        }
        return transportDeadline
    }

    deinit {
        downlink?.deinitialize(count: 1)
        downlink?.deallocate()
    }
}
