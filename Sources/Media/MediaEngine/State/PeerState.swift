import Forwarding
import MediaControl
import PeerTransport
import Primitives

/// One peer of the engine.
struct PeerState: ~Copyable {
    let id: PeerID
    /// Index of its room.
    let room: Int
    let profile: PeerProfile
    let transport: PeerTransport
    /// The transport's, for the packet path.
    let media: UnsafeMutablePointer<MediaPath>
    let uplink: Uplink
    /// Everything that only a receiver needs; nil for publish-only peers (B1 to B3).
    var downlink: UnsafeMutablePointer<DownlinkState>?
    /// Its user name fragments by their keys in the table.
    var ufrags: [(text: String, key: UInt64)] = []
    /// Source addresses that are its own.
    var addresses: [SocketAddress] = []
    /// Checks for it from unknown addresses.
    var strangers = RateLimit()
    var trackCount = 0
    /// It is on the list of peers to look after at the end of the turn.
    var isTouched = false
    /// Its transport may have another deadline than `transportDeadline`, an earlier one. Media only moves that later, and looking for it is
    /// three objects' worth of cold memory.
    var isTransportTouched = true
    var transportDeadline = MonotonicTime.zero
    /// Publisher's clock to server's clock, by its first sender report; fixed for its life, so that all of its streams stay in step.
    var captureOffset: Int64?
    var packetsReceived: UInt64 = 0
    var bytesReceived: UInt64 = 0
    var packetsSent: UInt64 = 0
    var bytesSent: UInt64 = 0

    init(_ description: PeerDescription, room: Int, transport: PeerTransport, uplink: Uplink) {
        id = description.id
        self.room = room
        profile = description.profile
        self.transport = transport
        media = transport.media
        self.uplink = uplink
        if description.profile == .full {
            let downlink = UnsafeMutablePointer<DownlinkState>.allocate(capacity: 1)
            downlink.initialize(to: DownlinkState())
            self.downlink = downlink
        }
    }

    deinit {
        downlink?.deinitialize(count: 1)
        downlink?.deallocate()
    }
}

/// What a peer that receives needs beside its subscriptions.
struct DownlinkState: ~Copyable {
    /// Head of the list of its subscriptions; -1 for none.
    var firstSubscription = -1
    var subscriptionCount = 0
    /// Subscriptions with packets in this turn, chained in the order in which they were planned.
    var firstPending = -1
    var lastPending = -1
    /// The transport-wide sequence number used last.
    var transportSequence: UInt16 = 0
    /// How its bandwidth is shared out.
    var allocation = AllocationState()
    /// Made when the first packet with a transport-wide number leaves, or the first REMB comes.
    private(set) var control: UnsafeMutablePointer<SendControl>?
    /// Smoothed round trip by receiver reports.
    var roundTrip: TimeInterval?
    /// When sender reports are looked at next.
    var nextReport = MonotonicTime.distantFuture
    var rtpPacketsSent: UInt64 = 0
    /// Repeats among them.
    var repeatsSent: UInt64 = 0
    private var lookups = Allowance.lookups
    private var repeats = Allowance.repeats

    deinit {
        control?.deinitialize(count: 1)
        control?.deallocate()
    }

    /// Its estimator and pacer, made when there are none.
    mutating func makeControl() -> UnsafeMutablePointer<SendControl> {
        if let control { return control }
        let made = UnsafeMutablePointer<SendControl>.allocate(capacity: 1)
        made.initialize(to: SendControl())
        control = made
        return made
    }

    /// Whether feedback may have `count` numbers looked up.
    mutating func mayLookUp(_ count: Int) -> Bool { lookups.take(count, sent: rtpPacketsSent) }

    /// Whether one more packet may be sent again: where there is no estimate, nothing else bounds repeats.
    mutating func mayRepeat() -> Bool { repeats.take(1, sent: rtpPacketsSent &- repeatsSent) }

    /// Weighs a new measurement by an eighth (RFC 6298's gain).
    mutating func measured(_ sample: TimeInterval) {
        roundTrip = roundTrip.map { $0 + (sample - $0) / 8 } ?? sample
    }
}
