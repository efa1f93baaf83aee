import MediaControl
import Primitives
import SDP

// Translates SDP's terms into those of the media plane. The two modules do not know each other on purpose.

extension Codec {
    init(_ name: CodecName) {
        switch name {
        case .opus: self = .opus
        case .red: self = .red
        case .vp8: self = .vp8
        case .vp9: self = .vp9
        case .h264: self = .h264
        case .av1: self = .av1
        case .g722, .pcmu, .pcma: self = .otherAudio
        }
    }

    /// The names in SDP.
    var names: [CodecName] {
        switch self {
        case .opus: [.opus]
        case .red: [.red]
        case .vp8: [.vp8]
        case .vp9: [.vp9]
        case .h264: [.h264]
        case .av1: [.av1]
        case .otherAudio: [.g722, .pcmu, .pcma]
        }
    }
}

extension PayloadFormat {
    init(_ format: NegotiatedFormat) {
        self.init(
            codec: Codec(format.codec), payloadType: format.payloadType, rtxPayloadType: format.rtxPayloadType,
            clockRateHz: format.clockRateHz, variant: format.variant, parameterSets: format.parameterSets)
    }
}

extension EncodingDescription {
    init(_ encoding: RemoteEncoding) {
        self.init(rid: encoding.rid, ssrc: encoding.ssrc, rtxSSRC: encoding.rtxSSRC)
    }
}

extension TrackDescription {
    /// The media that a section receives, as one encoding of the track with this `info`.
    init(_ id: TrackID, peer: PeerID, _ info: TrackInfo, _ sending: RemoteSending, maximumBitrate: Bitrate?) {
        self.init(
            id: id, peer: peer, kind: info.kind, source: info.source, mid: info.mid,
            formats: sending.formats.map(PayloadFormat.init),
            encodings: sending.encodings.map(EncodingDescription.init),
            extensions: HeaderExtensionIDs(sending.extensions), feedback: FeedbackKinds(sending.feedback),
            maximumBitrate: maximumBitrate)
    }
}

extension FeedbackKinds {
    init(_ feedback: FeedbackSet) { self.init(rawValue: UInt8(truncatingIfNeeded: feedback.rawValue)) }
}

extension HeaderExtension {
    private static let byURI: [String: HeaderExtension] = [
        ExtensionURI.mid: .mid, ExtensionURI.rid: .rid, ExtensionURI.repairedRID: .repairedRID,
        ExtensionURI.audioLevel: .audioLevel, ExtensionURI.absoluteSendTime: .absoluteSendTime,
        ExtensionURI.transportSequence: .transportSequence, ExtensionURI.videoOrientation: .videoOrientation,
        ExtensionURI.playoutDelay: .playoutDelay, ExtensionURI.videoContentType: .videoContentType,
        ExtensionURI.videoTiming: .videoTiming, ExtensionURI.colorSpace: .colorSpace,
        ExtensionURI.transmissionOffset: .transmissionOffset,
        ExtensionURI.absoluteCaptureTime: .absoluteCaptureTime,
        ExtensionURI.dependencyDescriptor: .dependencyDescriptor,
        ExtensionURI.videoLayersAllocation: .videoLayersAllocation,
    ]

    init?(uri: String) {
        guard let known = Self.byURI[uri] else { return nil }
        self = known
    }
}

extension HeaderExtensionIDs {
    init(_ mappings: [ExtensionMapping]) {
        self.init()
        for mapping in mappings {
            if let known = HeaderExtension(uri: mapping.uri) { self[known] = mapping.id }
        }
    }
}

extension MediaKind {
    /// nil for data channels.
    init?(_ kind: SectionKind) {
        switch kind {
        case .audio: self = .audio
        case .video: self = .video
        case .application: return nil
        }
    }

    var sectionKind: SectionKind { self == .audio ? .audio : .video }
}

extension RemoteTransport {
    init(_ facts: TransportFacts) {
        self.init(
            ice: ICECredentials(ufrag: facts.iceUfrag, password: facts.icePassword),
            fingerprintSHA256: facts.fingerprintSHA256, localRole: facts.localSetup == .active ? .client : .server)
    }
}

extension LocalTransport {
    init(_ ice: ICECredentials, _ context: RoomContext) {
        self.init(
            iceUfrag: ice.ufrag, icePassword: ice.password, fingerprintSHA256: context.fingerprintSHA256,
            candidates: context.candidates)
    }
}

extension RoomError {
    /// A description's refusal with the stable code that edges return; the detail has the exact reason.
    init(_ error: NegotiationError) {
        let detail = "the session description is refused: \(error.description)"
        switch error.code {
        case .glare: self.init(.glare, "the server's offer is pending; roll back, answer it, and offer again")
        case .noPendingOffer: self.init(.unexpectedAnswer, "the server has no pending offer to answer")
        case .tooLong, .tooManyLines, .lineTooLong, .tooManySections, .tooManyOwnSections:
            self.init(.tooLarge, detail)
        case .planB, .rtcpMuxRequired, .iceLitePeer, .sdesUnsupported, .weakFingerprint:
            self.init(.unsupportedDescription, detail)
        default: self.init(.invalidDescription, detail)
        }
    }
}

extension NegotiationPolicy {
    /// The room's rules in SDP's terms.
    init(_ policy: RoomPolicy) {
        self.init()
        acceptsDataChannels = true
        if !policy.allowsSimulcast { maximumEncodings = 1 }
        if !policy.h264Profiles.isEmpty { h264Profiles = policy.h264Profiles }
        if !policy.vp9Profiles.isEmpty { vp9Profiles = policy.vp9Profiles }
        if !policy.av1Profiles.isEmpty { av1Profiles = policy.av1Profiles }
        if !policy.audioCodecs.isEmpty { audio = Codecs(policy.audioCodecs.flatMap(\.names), order: .policy) }
        if !policy.videoCodecs.isEmpty { video = Codecs(policy.videoCodecs.flatMap(\.names), order: .policy) }
    }
}
