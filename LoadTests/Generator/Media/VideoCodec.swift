/// The codec in which publishers encode their video.
public enum VideoCodec: String, Codable, Sendable, Hashable {
    case vp8, h264

    /// The payload types that are offered, as Chromium numbers them: video, and its retransmissions.
    var payloadTypes: (media: UInt8, repeats: UInt8) {
        switch self {
        case .vp8: (96, 97)
        case .h264: (102, 103)
        }
    }

    var format: ReceivedFormat {
        switch self {
        case .vp8: .vp8
        case .h264: .h264
        }
    }

    /// Its lines in an offer: constrained baseline 3.1, fragmented as FU-A, for H.264 (RFC 6184 section 8.1).
    var mediaLines: [String] {
        switch self {
        case .vp8: ["a=rtpmap:96 VP8/90000"]
        case .h264:
            [
                "a=rtpmap:102 H264/90000",
                "a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f",
            ]
        }
    }
}
