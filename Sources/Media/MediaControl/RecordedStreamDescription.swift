public import Primitives

/// A track to be recorded: a subscription whose subscriber is a recorder.
public struct RecordedStreamDescription: Sendable, Hashable {
    /// Identifies the stream, also among subscriptions.
    public var id: SubscriptionID
    public var track: TrackID
    /// A keyframe is requested when the last one is this old, because players seek to keyframes; zero: never.
    public var keyframeInterval: TimeSpan

    /// A stream of `track`.
    public init(id: SubscriptionID, track: TrackID, keyframeInterval: TimeSpan) {
        self.id = id
        self.track = track
        self.keyframeInterval = keyframeInterval
    }
}

/// How packets for a recorder are marked, whatever the publisher negotiated.
public enum RecordedStreamFormat {
    /// The header extension id of the video orientation.
    public static let orientationID: UInt8 = 1
    /// The header extension id of the dependency descriptor: without it layers would be joined for receivers that do not know them.
    static let descriptorID: UInt8 = 2

    /// The payload type of a codec.
    public static func payloadType(of codec: Codec) -> UInt8 { 96 + codec.rawValue }

    /// The codec of a payload type; nil for any other.
    public static func codec(ofPayloadType type: UInt8) -> Codec? { type >= 96 ? Codec(rawValue: type - 96) : nil }

    /// What a recorder accepts of a track: everything that the publisher may send.
    public static func subscription(
        to track: TrackDescription, as stream: RecordedStreamDescription
    ) -> SubscriptionDescription {
        var extensions = HeaderExtensionIDs()
        if track.extensions[.videoOrientation] != 0 { extensions[.videoOrientation] = orientationID }
        if track.extensions[.dependencyDescriptor] != 0 { extensions[.dependencyDescriptor] = descriptorID }
        let formats = track.formats.map {
            PayloadFormat(
                codec: $0.codec, payloadType: payloadType(of: $0.codec), rtxPayloadType: nil,
                clockRateHz: $0.clockRateHz, variant: $0.variant)
        }
        return SubscriptionDescription(
            id: stream.id, peer: track.peer, track: track.id, kind: track.kind, mid: "", ssrc: 1, rtxSSRC: nil,
            cname: "", formats: formats, extensions: extensions, feedback: [])
    }
}
