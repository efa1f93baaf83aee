public import MediaControl
public import Primitives

/// What the generator plays on one peer connection, as negotiated by the descriptions of both sides.
public struct ConnectionPlan: Sendable {
    /// A number that no other connection of the run has.
    public var id: ConnectionID
    var place: PeerPlace
    /// Connections of one room are played by one media thread.
    public var room: String
    /// When the join that needs the connection began, in nanoseconds of the monotonic clock.
    public var startedAt: Int64
    public var localICE: ICECredentials
    public var remoteICE: ICECredentials
    public var fingerprintSHA256: [UInt8]
    public var destination: SocketAddress
    /// Whether this side sends the ClientHello.
    public var isDTLSClient: Bool
    public var sends: [SendPlan]
    /// The meaning of the payload types that may arrive.
    public var receives: [UInt8: ReceivedFormat]
    public var extensions: ExtensionNumbers
    /// Whether every packet is decrypted and compared, and whether frames are really decoded.
    public var verifies = true
    public var decodes = false
    /// Whether the time to the first frame is that of a video frame.
    public var expectsVideo = true
    /// The network that the scenario emulates before the peer.
    public var link = LinkSettings()
    /// The participant whose silences are measured, over all of its connections; empty: none.
    public var participant = ""
}

/// Names one connection of a run.
public struct ConnectionID: Hashable, Sendable {
    public let rawValue: Int
    public init(_ rawValue: Int) { self.rawValue = rawValue }
}

/// One RTP stream that a connection sends.
public struct SendPlan: Sendable {
    public var kind: TrackKind
    public var mid: String
    public var rid: String?
    public var payloadType: UInt8
    public var rtxPayloadType: UInt8?
    public var ssrc: UInt32
    public var rtxSSRC: UInt32
    /// Which loop is replayed: the layer of a video, 0 for others.
    public var layer: Int
    /// Frames are sent together every so many nanoseconds; 0: each at its time.
    public var burst: Int64 = 0
}

/// Audio or video.
public enum TrackKind: String, Sendable, Hashable { case audio, video }

/// What a payload type stands for.
public enum ReceivedFormat: Sendable, Hashable {
    case opus, vp8, h264
    /// Retransmissions of the given payload type.
    case rtx(of: UInt8)

    var isVideo: Bool { self == .vp8 || self == .h264 }
}

/// The numbers of the negotiated header extensions; 0 if there is none.
public struct ExtensionNumbers: Sendable, Hashable {
    public var mid: UInt8 = 0
    public var rid: UInt8 = 0
    public var repairedRID: UInt8 = 0
    public var transportSequence: UInt8 = 0
    public var audioLevel: UInt8 = 0
    public var absoluteSendTime: UInt8 = 0
}

/// The network before one peer, emulated inside the generator.
public struct LinkSettings: Sendable, Hashable {
    /// Shares of datagrams lost on the way to and from the peer, 0 to 1.
    public var lossDown = 0.0
    public var lossUp = 0.0
    /// Bits per second on the way to the peer; 0: no limit.
    public var rateDown = 0
    /// Milliseconds of queue before that bottleneck.
    public var queueMilliseconds = 200

    public init() {}

    var isPerfect: Bool { lossDown == 0 && lossUp == 0 && rateDown == 0 }
}
