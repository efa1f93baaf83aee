/// One encoding (simulcast layer) of what the remote sends, as far as the SDP names it.
public struct RemoteEncoding: Sendable, Hashable {
    /// `a=rid` value, at most 16 characters; nil for a plain stream or a layer announced by SSRC.
    public var rid: String?
    /// nil if packets reveal it (rid and mid header extensions).
    public var ssrc: UInt32?
    /// From the FID group.
    public var rtxSSRC: UInt32?

    /// An encoding.
    public init(rid: String? = nil, ssrc: UInt32? = nil, rtxSSRC: UInt32? = nil) {
        self.rid = rid
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
    }
}

/// What the remote side sends on a section, and how.
public struct RemoteSending: Sendable, Hashable {
    /// Every format that may appear, the preferred one first.
    public var formats: [NegotiatedFormat]
    /// In the order of the SDP, which reveals nothing about size (`h;q` was seen); one element for a plain stream.
    public var encodings: [RemoteEncoding]
    /// Header extensions that the remote may put on its packets.
    public var extensions: [ExtensionMapping]
    /// Feedback that the server may send about it.
    public var feedback: FeedbackSet
    /// From `a=msid` or the SSRC lines; nil without a stream.
    public var streamID: String?
    public var trackID: String?
    public var cname: String?
    /// `a=content`, for example `slides` (RFC 4796).
    public var contentHint: String?
    /// `a=ptime` in milliseconds.
    public var packetTime: Int?

    /// What is sent; everything but the formats may be unknown.
    public init(
        formats: [NegotiatedFormat], encodings: [RemoteEncoding] = [RemoteEncoding()],
        extensions: [ExtensionMapping] = [], feedback: FeedbackSet = [], streamID: String? = nil,
        trackID: String? = nil, cname: String? = nil, contentHint: String? = nil, packetTime: Int? = nil
    ) {
        self.formats = formats
        self.encodings = encodings
        self.extensions = extensions
        self.feedback = feedback
        self.streamID = streamID
        self.trackID = trackID
        self.cname = cname
        self.contentHint = contentHint
        self.packetTime = packetTime
    }
}

/// What the server is to send on a section.
public struct LocalSending: Sendable, Hashable {
    public var kind: SectionKind
    public var ssrc: UInt32
    /// nil: no retransmission stream; formats are then negotiated without one.
    public var rtxSSRC: UInt32?
    public var cname: String
    public var streamID: String
    public var trackID: String
    /// What the publisher sends (payload types do not matter): only formats that can decode one of these are negotiated, under the publisher's variant and with
    /// its parameters. nil if it is not known yet or changes (follow mode): all that the policy allows.
    public var formats: [NegotiatedFormat]?
    /// `a=ptime` in milliseconds of the publisher.
    public var packetTime: Int?

    /// What to send.
    public init(
        kind: SectionKind, ssrc: UInt32, rtxSSRC: UInt32? = nil, cname: String, streamID: String, trackID: String,
        formats: [NegotiatedFormat]? = nil, packetTime: Int? = nil
    ) {
        self.kind = kind
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
        self.cname = cname
        self.streamID = streamID
        self.trackID = trackID
        self.formats = formats
        self.packetTime = packetTime
    }
}

/// What was negotiated about a track that the server sends.
public struct AgreedSending: Sendable, Hashable {
    public var local: LocalSending
    /// Formats that the remote accepts, with its payload types, the preferred one first. Never empty.
    public var formats: [NegotiatedFormat]
    /// Header extensions that the server may put on its packets.
    public var extensions: [ExtensionMapping]
    /// Feedback that the remote may send about it.
    public var feedback: FeedbackSet
}

/// Why a section carries nothing, or less than one side requested.
public enum SectionRefusal: String, Sendable, Hashable {
    /// The remote offered or answered it with port 0.
    case rejectedByRemote = "rejected_by_remote"
    /// No codec, profile or packetization mode that both sides have.
    case noCommonCodec = "no_common_codec"
    /// Not RTP over DTLS-SRTP, and not data channels.
    case unsupportedProtocol = "unsupported_protocol"
    /// Data channels, which the policy does not accept.
    case dataChannelsUnsupported = "data_channels_unsupported"
    /// Outside the one BUNDLE group; the server has one transport per peer.
    case notBundled = "not_bundled"
    /// The caller refused it.
    case refusedByPolicy = "refused_by_policy"
    /// The server offered to send, but the remote does not receive.
    case notWantedByRemote = "not_wanted_by_remote"
}

/// One m-section of a remote offer, before the answer.
public struct OfferedSection: Sendable, Hashable {
    /// Position in the description.
    public var index: Int
    public var mid: String
    public var kind: SectionKind
    /// Why the answer will refuse the whole section; nil if it will be accepted.
    public var refusal: SectionRefusal?
    /// What the remote sends, in the formats that the default answer accepts; nil if it does not send.
    public var remoteSends: RemoteSending?
    /// Whether the server may send on it.
    public var remoteReceives: Bool
    /// Every format of the offer that the policy allows, in order of preference.
    public var formats: [NegotiatedFormat]
    /// What the server sent on it before this offer.
    public var sending: LocalSending?
    /// The m-line was used before under another mid.
    public var isRecycled: Bool
    /// For an accepted section of data channels.
    public var dataChannel: DataChannelFacts?
}

/// The content of a data channel section (RFC 8841).
public struct DataChannelFacts: Sendable, Hashable {
    /// `a=sctp-port`.
    public var sctpPort: UInt16
    /// `a=max-message-size` in bytes; 0 means any.
    public var maximumMessageSize: Int

    /// The content of the section.
    public init(sctpPort: UInt16, maximumMessageSize: Int) {
        self.sctpPort = sctpPort
        self.maximumMessageSize = maximumMessageSize
    }
}

/// A remote offer, interpreted.
public struct OfferOutcome: Sendable, Hashable {
    public var sections: [OfferedSection]
    /// nil where every section is refused.
    public var transport: TransportFacts?
    /// The remote requests an ICE restart: call `restartICE` with new credentials before `makeAnswer`.
    public var iceRestarted: Bool
}

/// One m-section as negotiated.
public struct NegotiatedSection: Sendable, Hashable {
    public var index: Int
    public var mid: String
    public var kind: SectionKind
    /// The server's direction; `.inactive` also if the section is rejected.
    public var direction: Direction
    /// Port 0: unused until recycled.
    public var isRejected: Bool
    /// Why it is rejected, or why less was negotiated than requested.
    public var refusal: SectionRefusal?
    /// What the server receives; nil if nothing.
    public var receiving: RemoteSending?
    /// What the server sends; nil if nothing.
    public var sending: AgreedSending?
    /// The content of an answer to the server's own data section; nil for other sections.
    public var dataChannel: DataChannelFacts?

    /// A section on which the server only receives, from a source with which nothing is negotiated.
    public init(receivingOn mid: String, index: Int, kind: SectionKind) {
        self.init(index: index, mid: mid, kind: kind, direction: .recvonly, isRejected: false)
    }

    init(
        index: Int, mid: String, kind: SectionKind, direction: Direction, isRejected: Bool,
        refusal: SectionRefusal? = nil, receiving: RemoteSending? = nil, sending: AgreedSending? = nil
    ) {
        self.index = index
        self.mid = mid
        self.kind = kind
        self.direction = direction
        self.isRejected = isRejected
        self.refusal = refusal
        self.receiving = receiving
        self.sending = sending
    }
}
