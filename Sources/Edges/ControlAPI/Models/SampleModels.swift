import Primitives
import RoomService

/// How a track or a subscription performed in some seconds, as JSON shows it.
struct StreamSampleModel: Encodable {
    /// Milliseconds since 1970.
    var at: Int64
    /// Bits per second.
    var bitrate: Int64
    /// 0 to 1.
    var loss: Double
    /// For a subscription: the layer that was sent; absent: none.
    var layer: Int?

    init(_ sample: StreamSample) {
        at = sample.at
        bitrate = sample.bitrate.bitsPerSecond
        // Four digits: the kept values are no more exact.
        loss = (sample.loss * 10_000).rounded() / 10_000
        layer = sample.layer
    }
}

/// A room in some seconds, as JSON shows it. Bitrates are in bits per second.
struct RoomSampleModel: Encodable {
    /// Milliseconds since 1970.
    var at: Int64
    var participants: Int
    var tracks: Int
    var subscriptions: Int
    var uplink: Int64
    var downlink: Int64

    init(_ sample: RoomSample) {
        at = sample.at
        participants = sample.participants
        tracks = sample.tracks
        subscriptions = sample.subscriptions
        uplink = sample.uplink.bitsPerSecond
        downlink = sample.downlink.bitsPerSecond
    }
}
