/// What the server accepts: the room's policy in terms of SDP.
public struct NegotiationPolicy: Sendable, Hashable {
    /// Which side's order of codecs counts.
    public enum CodecOrder: Sendable, Hashable { case offer, policy }

    /// Allowed codecs of one kind, and which side's order counts.
    public struct Codecs: Sendable, Hashable {
        public var allowed: [CodecName]
        public var order: CodecOrder

        /// Allows `allowed`; `order` determines which side's preference counts.
        public init(_ allowed: [CodecName], order: CodecOrder) {
            self.allowed = allowed
            self.order = order
        }
    }

    /// Opus first, RED accepted after it; put `.red` first to request redundancy from publishers.
    public var audio = Codecs([.opus, .red], order: .policy)
    /// The client's own order unless the room prefers one.
    public var video = Codecs([.vp8, .h264, .vp9, .av1], order: .offer)
    /// False: an answer names one codec (with its retransmission format, and RED in addition to Opus), so that the publisher cannot switch codecs while it has
    /// subscribers. True: all allowed codecs, the preferred one first.
    public var answersAllCodecs = false
    /// H.264 profiles, the most widely decodable first; others are refused.
    public var h264Profiles: [H264Profile] = [.constrainedBaseline, .baseline, .main, .constrainedHigh, .high]
    /// Profiles of VP9 (RFC 9628 section 7) and AV1 (RTP specification section 7.2) that are accepted.
    public var vp9Profiles = [0, 1, 2, 3]
    public var av1Profiles = [0, 1, 2]
    /// Header extensions that are accepted, and offered in this order.
    public var extensions: [String] = ExtensionURI.all
    /// Feedback that is accepted and offered. REMB is not offered together with transport-wide feedback.
    public var feedback: FeedbackSet = .all
    /// Layers of one track that are accepted; 1 refuses simulcast.
    public var maximumEncodings = 3
    /// Whether a section of data channels is accepted, or refused (port 0).
    public var acceptsDataChannels = false
    /// `a=max-message-size` of the server, in bytes.
    public var longestMessage = 65_536
    public var limits = SDPLimits()

    /// The defaults above.
    public init() {}

    /// The codecs of `kind`.
    public func codecs(for kind: SectionKind) -> Codecs {
        switch kind {
        case .audio: audio
        case .video: video
        case .application: Codecs([], order: .offer)
        }
    }
}

/// Bounds that hold before anything is allocated for a description.
public struct SDPLimits: Sendable, Hashable {
    /// An answer with the maximum number of sections, at 2 KiB each. Chromium's answer to a video that the server offers to send takes 1.4 kB with one codec
    /// (0.7 kB of these for header extensions), 1.7 kB with two H.264 profiles, and 1.9 kB with a backup codec in addition to these; WebKit uses the same
    /// writer. Audio takes 0.9 kB, and 1.4 kB in aiortc (with three fingerprints); Firefox takes less, because it states its fingerprint once. A client that
    /// makes all offers itself lists all its codecs in each section, which takes 5 kB in Chromium: it is asked to offer some 100 videos, and the others wait.
    public var maximumBytes = 512 * 1024
    /// 80 for each section: an answered one has up to 49. An offer of Chromium with the maximum length has 17,500, at 30 bytes per line.
    public var maximumLines = 20_480
    /// The longest real lines are H.264 parameter sets and certificates' fingerprints, below 1 kB.
    public var maximumLineBytes = 4096
    /// A member of a room of 100 who receives everybody's audio and video on one connection has 200.
    public var maximumSections = 256
    /// Maximum mids that a client assigns in a connection's whole life, because none returns with another meaning: each section renewed 16 times.
    public var maximumMids = 4096
    /// Maximum attributes before the first section, which every section searches; real descriptions have about ten.
    public var maximumSessionAttributes = 128

    /// The defaults above.
    public init() {}
}
