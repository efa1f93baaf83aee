public import MediaControl
public import Primitives

/// Who a simulated client is and how it is connected.
public struct ClientSettings: Sendable {
    /// The features that the server provides for it.
    public var profile = PeerProfile.full
    /// The link to the server, and the link back.
    public var uplink = LinkModel(delay: .milliseconds(10))
    public var downlink = LinkModel(delay: .milliseconds(10))
    /// How its transport behaves.
    public var behaviour = ClientBehaviour()
    /// How often it sends transport-wide feedback; libwebrtc: every 50 to 250 ms, so that it takes about 5 % of the rate.
    public var transportFeedbackInterval = TimeSpan.milliseconds(50)
    /// Reports packets that arrived after later ones, within half a second, as libwebrtc does. False: they stay reported as lost.
    public var reportsLatePackets = false
    /// Reports its own receive estimate (REMB), once per second and when that falls.
    public var estimatesItself = false
    /// How often it sends reports.
    public var reportInterval = TimeSpan.seconds(1)
    /// Sends NACKs, keyframe requests, reports and transport-wide feedback. False: silent, as some viewers are.
    public var sendsFeedback = true
    /// Accepts retransmissions in a separate stream (RFC 4588). False: they arrive on the media SSRC, as does padding.
    public var hasRTX = true
    /// Accepts packets of the retransmission stream only after one of them carried the mid, as Firefox does; earlier ones are neither read nor reported.
    public var learnsRTXByMID = false
    /// Retransmits what the server requests.
    public var answersNACK = true

    /// The IPv4 address of the NAT that it shares with others; nil: an address of its own.
    public var sharedAddress: UInt32?

    /// The first peer of its participant, whose path it shares; nil: it is the first.
    public var group: PeerID?

    /// A browser 10 ms away.
    public init() {}

    /// A client with the same link model both ways.
    public init(link: LinkModel, profile: PeerProfile = .full) {
        uplink = link
        downlink = link
        self.profile = profile
    }

    /// A client with these link models.
    public init(uplink: LinkModel, downlink: LinkModel) {
        self.uplink = uplink
        self.downlink = downlink
    }
}

/// What a client received, by kind. Bytes are those of datagrams.
public struct ReceivedTraffic: Sendable, Hashable {
    public var rtpPackets = 0
    public var rtpBytes = 0
    public var rtcpDatagrams = 0
    public var rtcpBytes = 0
    /// STUN and DTLS.
    public var otherDatagrams = 0
    public var otherBytes = 0
    /// Datagrams that the client's transport refused.
    public var refused = 0
}
