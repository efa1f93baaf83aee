import MediaControl
import Primitives
import SDP

/// A published track with what subscribers' descriptions need of it.
struct RoomTrack: Sendable {
    let id: TrackID
    let publisher: SessionID
    let connection: String
    var info: TrackInfo
    /// As the worker was last commanded.
    var description: TrackDescription
    /// The publisher's formats with their parameters, which subscribers' sections repeat.
    var formats: [NegotiatedFormat]
    var packetTime: Int?
    /// The codec in which its publisher announced it; nil: as its offer prefers.
    var preferredCodec: Codec?
    /// Its publisher has announced what it is; otherwise that is a guess.
    var isAnnounced = false
    /// For a track's encoding in its backup codec: the track, which everybody sees and subscribes to.
    var main: TrackID?
    /// The encoding in the backup codec, while it is published.
    var backup: TrackID?
    /// What its publisher was last notified of about the backup codec: whether somebody needs it.
    var wantsBackup = false
    /// Its packets are arriving.
    var isFlowing = false
    /// The layers in demand according to the worker, regardless of what its publisher was notified of.
    var wantedLayers: [WantedLayer] = []
    /// Somebody has agreed to receive it.
    var hasSubscriber = false
    /// Size of each layer as it arrives.
    var layerSizes: [Int: Size] = [:]

    /// What the worker has of it.
    var encodings: [TrackID] { [id] + (backup.map { [$0] } ?? []) }

    struct Size: Sendable {
        var width: Int
        var height: Int
        var area: Int { width * height }
    }
}

extension [NegotiatedFormat] {
    /// Whether both look the same to subscribers, so that a change stays between the publisher and the server: payload types differ anyway.
    func lookTheSame(as other: [NegotiatedFormat]) -> Bool {
        count == other.count
            && zip(self, other).allSatisfy {
                $0.codec == $1.codec && $0.variant == $1.variant && $0.parameters == $1.parameters
                    && $0.clockRateHz == $1.clockRateHz && $0.channels == $1.channels
            }
    }
}
