import MediaControl
import Primitives
public import RoomService
import Rooms

/// One decision about one picture, in figures and in words. Bitrates are in bits a second.
public struct DecisionModel: Encodable, Sendable, Hashable {
    /// Milliseconds since 1970.
    public var at: Int64
    /// The subscription; nil where it has ended since.
    public var subscription: String?
    /// The track; nil where it has ended since.
    public var track: String?
    /// The stable word.
    public var reason: String
    /// The reason in words.
    public var text: String
    /// What the path is believed to carry; nil while nothing limits.
    public var estimate: Int64?
    /// What the next step takes.
    public var needed: Int64?
    /// What there is for it.
    public var available: Int64?
    /// What is sent; nil: nothing.
    public var layer: LayerModel?
    /// The next step; nil where there is none.
    public var next: LayerModel?

    /// What is or could be sent.
    public struct LayerModel: Encodable, Sendable, Hashable {
        var spatial: Int
        var temporal: Int
        var height: Int
        var framesPerSecond: Double
        var bitrate: Int64

        init(_ layer: DecisionRecord.Layer) {
            spatial = layer.spatial
            temporal = layer.temporal
            height = layer.height
            framesPerSecond = layer.framesPerSecond.isFinite ? layer.framesPerSecond : 0
            bitrate = layer.bitrate.bitsPerSecond
        }
    }

    /// The model of `report`.
    public init(_ report: DecisionReport) {
        let record = report.record
        at = report.at
        subscription = report.subscription
        track = report.track
        reason = record.reason
        estimate = record.estimate?.bitsPerSecond
        needed = record.needed?.bitsPerSecond
        available = record.available?.bitsPerSecond
        layer = record.layer.map(LayerModel.init)
        next = record.next.map(LayerModel.init)
        text = Self.sentence(record, report.limits)
    }

    /// "320 of 700 kbit/s needed for 720p".
    private static func sentence(_ record: DecisionRecord, _ limits: BandwidthSettings?) -> String {
        let needed = record.needed?.kilobitsPerSecond ?? 0, available = record.available?.kilobitsPerSecond ?? 0
        let shortage = "\(available) of \(needed) kbit/s needed for \(step(after: record))"
        return switch record.reason {
        case "best": "all that is sent"
        case "asWished": "as asked for; more is sent"
        case "bandwidth": shortage
        case "capped": "\(shortage); \(cap(limits?.maxDownlinkBitrate))"
        case "settling": "more fits, but it came down too short a time ago"
        case "yieldsToScreen": "a screen waits for bandwidth"
        case "oversent": "\(needed) kbit/s beyond \(bound(record, limits)), so that there is a picture at all"
        case "shortage": "\(available) of \(needed) kbit/s needed for the smallest picture"
        case "tooManyVideos": surplus(limits?.maxVideoSubscriptions)
        case "paused": "paused by the viewer"
        case "hidden": "not shown by the viewer"
        default: "nothing is sent by the publisher"
        }
    }

    /// "720p", or "30 fps" where the picture would not grow.
    private static func step(after record: DecisionRecord) -> String {
        guard let next = record.next, next.height > 0 else { return "the next layer" }
        guard let layer = record.layer, layer.height == next.height else { return "\(next.height)p" }
        return "\(next.height)p at \(Int(next.framesPerSecond.isFinite ? next.framesPerSecond.rounded() : 0)) fps"
    }

    /// What binds: the policy's cap where it is lower than what the path carries.
    private static func bound(_ record: DecisionRecord, _ limits: BandwidthSettings?) -> String {
        guard let cap = limits?.maxDownlinkBitrate, let estimate = record.estimate, cap.value < estimate else {
            return "the estimate"
        }
        return "the \(cap.value.kilobitsPerSecond) kbit/s that \(who(cap.source)) allows"
    }

    private static func cap(_ limit: BandwidthLimit<Bitrate>?) -> String {
        guard let limit else { return "capped by a policy that has changed since" }
        return "capped at \(limit.value.kilobitsPerSecond) kbit/s by \(who(limit.source))"
    }

    private static func surplus(_ limit: BandwidthLimit<Int>?) -> String {
        guard let limit else { return "more pictures are wanted than may be shown at a time" }
        return "more pictures are wanted than the \(limit.value) allowed at a time by \(who(limit.source))"
    }

    private static func who(_ source: LimitSource) -> String {
        switch source {
        case .room: "the room's policy"
        case .token: "the access token"
        case .participant: "the viewer's own wish"
        }
    }
}
