public import Primitives

/// The kind of media of a track.
public enum MediaKind: String, Sendable, Hashable, Codable, CaseIterable { case audio, video }

/// Where a track's media comes from; determines its treatment when bandwidth is short.
public enum TrackSource: String, Sendable, Hashable, Codable, CaseIterable {
    case microphone, camera, screen, screenAudio, unknown
}

/// A codec that Martlet forwards.
public enum Codec: UInt8, Sendable, Hashable, CaseIterable {
    case opus, red, vp8, vp9, h264, av1
    /// Comfort noise, PCMU and the like: forwarded as opaque audio.
    case otherAudio

    /// Whether the codec is for audio or video.
    public var kind: MediaKind {
        switch self {
        case .opus, .red, .otherAudio: .audio
        case .vp8, .vp9, .h264, .av1: .video
        }
    }
}

/// One negotiated payload format of a track or of a subscription.
public struct PayloadFormat: Sendable, Hashable {
    /// The codec.
    public var codec: Codec
    /// The RTP payload type, 0 to 127.
    public var payloadType: UInt8
    /// The payload type of its retransmissions (RFC 4588), where negotiated.
    public var rtxPayloadType: UInt8?
    /// RTP clock, for example 90000 or 48000.
    public var clockRateHz: UInt32
    /// Distinguishes formats of one codec that a receiver must not mix (H.264 profile and packetization mode, VP9 or
    /// AV1 profile); equal strings are interchangeable. Empty where a codec has one format only.
    public var variant: String
    /// The H.264 parameter sets in the publisher's description, each a NAL unit (RFC 6184 section 8.1): some encoders do not send them in packets.
    public var parameterSets: [[UInt8]]

    public init(
        codec: Codec, payloadType: UInt8, rtxPayloadType: UInt8?, clockRateHz: UInt32, variant: String = "",
        parameterSets: [[UInt8]] = []
    ) {
        self.codec = codec
        self.payloadType = payloadType
        self.rtxPayloadType = rtxPayloadType
        self.clockRateHz = clockRateHz
        self.variant = variant
        self.parameterSets = parameterSets
    }
}

/// A header extension that Martlet understands (RFC 8285); any other is not forwarded.
public enum HeaderExtension: UInt8, Sendable, Hashable, CaseIterable {
    /// `urn:ietf:params:rtp-hdrext:sdes:mid` (RFC 9143).
    case mid
    /// `urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id` (RFC 8852).
    case rid
    /// `urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id` (RFC 8852).
    case repairedRID
    /// `urn:ietf:params:rtp-hdrext:ssrc-audio-level` (RFC 6464).
    case audioLevel
    /// `http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time`.
    case absoluteSendTime
    /// `http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01`.
    case transportSequence
    /// `urn:3gpp:video-orientation` (3GPP TS 26.114 section 7.4.5).
    case videoOrientation
    /// `http://www.webrtc.org/experiments/rtp-hdrext/playout-delay`.
    case playoutDelay
    /// `http://www.webrtc.org/experiments/rtp-hdrext/video-content-type`.
    case videoContentType
    /// `http://www.webrtc.org/experiments/rtp-hdrext/video-timing`.
    case videoTiming
    /// `http://www.webrtc.org/experiments/rtp-hdrext/color-space`.
    case colorSpace
    /// `urn:ietf:params:rtp-hdrext:toffset` (RFC 5450).
    case transmissionOffset
    /// `http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time`.
    case absoluteCaptureTime
    /// `https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension`.
    case dependencyDescriptor
    /// `http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00`.
    case videoLayersAllocation
}

/// The header extension ids of one m-section: a flat table for both directions.
public struct HeaderExtensionIDs: Sendable, Hashable {
    /// Bytes by `HeaderExtension.rawValue`, the first eight in `low`; 0 means not negotiated. Ids are 1 to 255 (above 14: two-byte form only).
    private var low: UInt64 = 0, high: UInt64 = 0

    public init() {}

    /// The id of `ext`, or 0 if it was not negotiated.
    public subscript(ext: HeaderExtension) -> UInt8 {
        @inline(__always) get {
            let index = UInt64(ext.rawValue)
            return UInt8(truncatingIfNeeded: (index < 8 ? low : high) >> ((index & 7) &* 8))
        }
        set {
            let index = UInt64(ext.rawValue)
            let shift = (index & 7) * 8
            if index < 8 {
                low = low & ~(0xff << shift) | UInt64(newValue) << shift
            } else {
                high = high & ~(0xff << shift) | UInt64(newValue) << shift
            }
        }
    }

    /// The extension with this id; nil for an id that was not negotiated.
    public func meaning(of id: UInt8) -> HeaderExtension? {
        guard id != 0 else { return nil }
        return HeaderExtension.allCases.first { self[$0] == id }
    }
}

/// RTCP feedback that an m-section negotiated (RFC 4585, 5104).
public struct FeedbackKinds: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    /// Generic NACK.
    public static let nack = Self(rawValue: 1)
    /// Picture loss indication.
    public static let pli = Self(rawValue: 2)
    /// Full intra request.
    public static let fir = Self(rawValue: 4)
    /// Transport-wide congestion control feedback.
    public static let transportCC = Self(rawValue: 8)
    /// Receiver estimated maximum bitrate.
    public static let remb = Self(rawValue: 16)
    /// XR receiver reference time (RFC 3611 section 4.4).
    public static let receiverReferenceTime = Self(rawValue: 32)
}

/// One encoding (simulcast layer) of a published track as far as the SDP describes it.
public struct EncodingDescription: Sendable, Hashable {
    /// `a=rid` value, at most 16 characters; nil for a single stream or one announced by SSRC.
    public var rid: String?
    /// The SSRC, if it is in the SDP; otherwise learned from the first packets.
    public var ssrc: UInt32?
    /// The SSRC of its retransmissions, if it is in the SDP (FID group).
    public var rtxSSRC: UInt32?

    public init(rid: String? = nil, ssrc: UInt32? = nil, rtxSSRC: UInt32? = nil) {
        self.rid = rid
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
    }
}

/// A track that a peer publishes.
public struct TrackDescription: Sendable, Hashable {
    public var id: TrackID
    /// The peer whose transport receives the packets.
    public var peer: PeerID
    public var kind: MediaKind
    public var source: TrackSource
    /// `a=mid` of its m-section, at most 16 characters.
    public var mid: String
    /// Every payload format that may occur, in order of preference.
    public var formats: [PayloadFormat]
    /// Layers in the order of the SDP, at most 3; one element without rid for a plain stream.
    public var encodings: [EncodingDescription]
    public var extensions: HeaderExtensionIDs
    public var feedback: FeedbackKinds
    /// The publisher's bitrate limit for this track; nil for none.
    public var maximumBitrate: Bitrate?

    public init(
        id: TrackID, peer: PeerID, kind: MediaKind, source: TrackSource, mid: String, formats: [PayloadFormat],
        encodings: [EncodingDescription], extensions: HeaderExtensionIDs, feedback: FeedbackKinds,
        maximumBitrate: Bitrate? = nil
    ) {
        self.id = id
        self.peer = peer
        self.kind = kind
        self.source = source
        self.mid = mid
        self.formats = formats
        self.encodings = encodings
        self.extensions = extensions
        self.feedback = feedback
        self.maximumBitrate = maximumBitrate
    }
}

/// A track as one subscriber receives it: one sending m-section.
public struct SubscriptionDescription: Sendable, Hashable {
    public var id: SubscriptionID
    /// The subscriber's peer.
    public var peer: PeerID
    /// The track to forward; nil for a section without a track (WHEP follow mode before the first speaker).
    public var track: TrackID?
    public var kind: MediaKind
    /// `a=mid` of its m-section, at most 16 characters.
    public var mid: String
    /// The SSRC that the subscriber sees for the section's lifetime, whichever track is bound to it.
    public var ssrc: UInt32
    /// The SSRC of retransmissions; nil if RTX was not negotiated (then they use `ssrc`).
    public var rtxSSRC: UInt32?
    /// RTCP canonical name of the section's SSRCs.
    public var cname: String
    /// Formats that the subscriber accepts; packets of any other are not sent.
    public var formats: [PayloadFormat]
    public var extensions: HeaderExtensionIDs
    public var feedback: FeedbackKinds
    /// Forwarding does not start before `setSubscriptionPaused(false)`.
    public var paused: Bool
    public var preference: LayerPreference
    /// Bounds of the receiver's playout delay, in place of the publisher's; nil: the publisher's.
    public var playoutDelay: PlayoutDelayBounds?

    public init(
        id: SubscriptionID, peer: PeerID, track: TrackID?, kind: MediaKind, mid: String, ssrc: UInt32, rtxSSRC: UInt32?,
        cname: String, formats: [PayloadFormat], extensions: HeaderExtensionIDs, feedback: FeedbackKinds,
        paused: Bool = false, preference: LayerPreference = .best
    ) {
        self.id = id
        self.peer = peer
        self.track = track
        self.kind = kind
        self.mid = mid
        self.ssrc = ssrc
        self.rtxSSRC = rtxSSRC
        self.cname = cname
        self.formats = formats
        self.extensions = extensions
        self.feedback = feedback
        self.paused = paused
        self.preference = preference
    }
}

/// Which layer a subscriber prefers.
public enum LayerPreference: Sendable, Hashable {
    /// The best that the publisher sends.
    case best
    /// The layer with this rid, or the best below it while it is not sent.
    case rid(String)
    /// The smallest layer at least this many pixels high, or the best below it.
    case height(Int)
    /// By quality: 0 is the lowest layer.
    case spatial(Int)
}
