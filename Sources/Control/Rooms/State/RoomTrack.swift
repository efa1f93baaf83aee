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
    /// Somebody has received it.
    var hasSubscriber = false
    /// Size of each layer as it arrives.
    var layerSizes: [Int: Size] = [:]

    struct Size: Sendable {
        var width: Int
        var height: Int
        var area: Int { width * height }
    }
}
