import MediaControl
import Primitives
import RoomService

/// One decision about one picture, in figures and in words.
struct DecisionModel: Encodable {
    var at: Int64
    var subscription: String?
    var track: String?
    var reason: String
    var text: String
    var estimate: Int64?
    var needed: Int64?
    var available: Int64?
    var layer: LayerModel?

    /// What is sent.
    struct LayerModel: Encodable {
        var spatial: Int
        var temporal: Int
        var height: Int
        var framesPerSecond: Double
        var bitrate: Int64
    }

    init(_ report: DecisionReport) {
        let record = report.record
        at = report.at
        subscription = report.subscription
        track = report.track
        reason = record.reason
        estimate = record.estimate?.bitsPerSecond
        needed = record.needed?.bitsPerSecond
        available = record.available?.bitsPerSecond
        layer = record.layer.map {
            LayerModel(
                spatial: $0.spatial, temporal: $0.temporal, height: $0.height, framesPerSecond: $0.framesPerSecond,
                bitrate: $0.bitrate.bitsPerSecond)
        }
        text = Self.sentence(record)
    }

    /// "320 of 700 kbit/s needed for the next layer".
    private static func sentence(_ record: DecisionRecord) -> String {
        let needed = record.needed?.kilobitsPerSecond ?? 0, available = record.available?.kilobitsPerSecond ?? 0
        return switch record.reason {
        case "best": "all that is sent"
        case "asWished": "as asked for; more is sent"
        case "bandwidth": "\(available) of \(needed) kbit/s needed for the next layer"
        case "capped": "\(available) of \(needed) kbit/s needed for the next layer; capped by the policy"
        case "settling": "more fits, but it came down too short a time ago"
        case "yieldsToScreen": "a screen waits for bandwidth"
        case "oversent": "sent \(needed) kbit/s beyond the estimate, as the policy allows"
        case "shortage": "\(available) of \(needed) kbit/s needed for the lowest layer"
        case "tooManyVideos": "more pictures are wanted than may be shown at a time"
        case "paused": "paused by the viewer"
        case "hidden": "not shown by the viewer"
        default: "nothing is sent by the publisher"
        }
    }
}
