public import MediaControl

/// What the simulated sessions have negotiated. Publishers and subscribers have different payload types and extension ids, so that a missing
/// translation is noticed.
public enum SessionTerms {
    /// The format as a publisher sends it.
    public static func published(_ codec: Codec) -> PayloadFormat {
        switch codec {
        case .vp8: video(codec, 96)
        case .vp9: video(codec, 98)
        case .h264: video(codec, 102, variant: "42e0")
        case .av1: video(codec, 45)
        case .opus, .red, .otherAudio: audio(codec, 111)
        }
    }

    /// The format as a subscriber accepts it.
    public static func accepted(_ codec: Codec, hasRTX: Bool = true) -> PayloadFormat {
        var format = acceptedWithRTX(codec)
        if !hasRTX { format.rtxPayloadType = nil }
        return format
    }

    private static func acceptedWithRTX(_ codec: Codec) -> PayloadFormat {
        switch codec {
        case .vp8: video(codec, 120)
        case .vp9: video(codec, 122)
        case .h264: video(codec, 124, variant: "42e0")
        case .av1: video(codec, 126)
        case .opus, .red, .otherAudio: audio(codec, 109)
        }
    }

    private static func video(_ codec: Codec, _ type: UInt8, variant: String = "") -> PayloadFormat {
        PayloadFormat(
            codec: codec, payloadType: type, rtxPayloadType: type + 1, clockRateHz: 90_000, variant: variant)
    }

    private static func audio(_ codec: Codec, _ type: UInt8) -> PayloadFormat {
        PayloadFormat(codec: codec, payloadType: type, rtxPayloadType: nil, clockRateHz: 48_000)
    }

    /// Extension ids of publishers.
    public static let publishedExtensions = ids(
        (.audioLevel, 1), (.absoluteSendTime, 2), (.transportSequence, 3), (.mid, 4), (.rid, 5), (.repairedRID, 6),
        (.videoOrientation, 7), (.dependencyDescriptor, 8))

    /// Extension ids of subscribers.
    public static let acceptedExtensions = ids(
        (.mid, 9), (.audioLevel, 10), (.absoluteSendTime, 11), (.transportSequence, 12), (.videoOrientation, 13),
        (.dependencyDescriptor, 14))

    private static func ids(_ pairs: (HeaderExtension, UInt8)...) -> HeaderExtensionIDs {
        var ids = HeaderExtensionIDs()
        for (meaning, id) in pairs { ids[meaning] = id }
        return ids
    }
}
