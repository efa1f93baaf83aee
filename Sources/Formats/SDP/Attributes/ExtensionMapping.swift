/// One `a=extmap` (RFC 8285 section 8): which id stands for which header extension.
public struct ExtensionMapping: Sendable, Hashable {
    /// 1 to 255; above 14 only the two-byte form can carry it.
    public var id: UInt8
    /// What it means.
    public var uri: String
    /// Which side may put it on packets, as seen by the side that the mapping is sent to or comes from.
    public var direction: Direction
    /// Extension attributes after the URI, for example `vad=on`; usually empty.
    public var attributes: String

    /// A mapping that holds for both directions unless another one is given.
    public init(id: UInt8, uri: String, direction: Direction = .sendrecv, attributes: String = "") {
        self.id = id
        self.uri = uri
        self.direction = direction
        self.attributes = attributes
    }
}

/// URIs of the header extensions that Martlet understands.
public enum ExtensionURI {
    /// RFC 9143: the m-section of a packet.
    public static let mid = "urn:ietf:params:rtp-hdrext:sdes:mid"
    /// RFC 8852: the simulcast layer of a packet.
    public static let rid = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
    /// RFC 8852: the simulcast layer that a retransmission repairs.
    public static let repairedRID = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
    /// RFC 6464.
    public static let audioLevel = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
    /// 24 bits of the sender's clock.
    public static let absoluteSendTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
    /// The number that transport-wide feedback refers to.
    public static let transportSequence =
        "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
    /// 3GPP TS 26.114: rotation and camera side.
    public static let videoOrientation = "urn:3gpp:video-orientation"
    /// Limits of the receiver's jitter buffer.
    public static let playoutDelay = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
    /// Camera or screen.
    public static let videoContentType = "http://www.webrtc.org/experiments/rtp-hdrext/video-content-type"
    /// Encoder and pacer times.
    public static let videoTiming = "http://www.webrtc.org/experiments/rtp-hdrext/video-timing"
    /// Colour space and HDR metadata.
    public static let colorSpace = "http://www.webrtc.org/experiments/rtp-hdrext/color-space"
    /// RFC 5450.
    public static let transmissionOffset = "urn:ietf:params:rtp-hdrext:toffset"
    /// Capture clock of the original sender.
    public static let absoluteCaptureTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"
    /// AV1 RTP specification, appendix A.
    public static let dependencyDescriptor =
        "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
    /// Target bitrates and sizes of all layers.
    public static let videoLayersAllocation =
        "http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00"

    /// Every URI above, in the order in which a server offer lists them.
    public static let all = [
        mid, rid, repairedRID, audioLevel, absoluteSendTime, transportSequence, videoOrientation, playoutDelay,
        videoContentType, videoTiming, colorSpace, transmissionOffset, absoluteCaptureTime, dependencyDescriptor,
        videoLayersAllocation,
    ]

    /// Those that make no sense on an audio section.
    static let videoOnly: Set<String> = [
        rid, repairedRID, videoOrientation, playoutDelay, videoContentType, videoTiming, colorSpace,
        transmissionOffset, dependencyDescriptor, videoLayersAllocation,
    ]
    /// Those that make no sense on a video section.
    static let audioOnly: Set<String> = [audioLevel]
}

extension ExtensionMapping {
    /// Parses `1/recvonly urn:… attributes`; nil for ids outside 1 to 255, and for 15, which ends a one-byte block.
    init?(parsing value: String) {
        let words = value.split(separator: " ", maxSplits: 2)
        guard words.count >= 2 else { return nil }
        let head = words[0].split(separator: "/", maxSplits: 1)
        guard let first = head.first, let id = UInt8(first), id != 0, id != 15 else { return nil }
        var direction = Direction.sendrecv
        if head.count == 2 {
            guard let given = Direction(rawValue: String(head[1])) else { return nil }
            direction = given
        }
        self.init(
            id: id, uri: String(words[1]), direction: direction, attributes: words.count == 3 ? String(words[2]) : "")
    }

    /// As written after `extmap:`; attributes are not repeated, because an answerer may leave them out.
    var text: String { "\(id)\(direction == .sendrecv ? "" : "/\(direction.rawValue)") \(uri)" }

    /// The same mapping from the other side's point of view.
    var reversed: Self { Self(id: id, uri: uri, direction: direction.reversed) }
}
