import MediaControl
import Primitives
public import RoomService
import Rooms

/// One decision about one video, in figures and in words. Bitrates are in bits per second.
public struct DecisionModel: Encodable, Sendable, Hashable {
    /// Milliseconds since 1970.
    public var at: Int64
    /// The subscription; nil if it has ended since.
    public var subscription: String?
    /// The track; nil if it has ended since.
    public var track: String?
    /// The stable word.
    public var reason: String
    /// The reason in words.
    public var text: String
    /// The bandwidth estimate of the path; nil while nothing limits it.
    public var estimate: Int64?
    /// What the next step takes.
    public var needed: Int64?
    /// What there is for it.
    public var available: Int64?
    /// What is sent; nil: nothing.
    public var layer: LayerModel?
    /// The next step; nil if there is none.
    public var next: LayerModel?

    /// A layer that is or could be sent.
    public struct LayerModel: Encodable, Sendable, Hashable {
        var spatial: Int
        var temporal: Int
        var height: Int
        var framesPerSecond: Double
        var bitrate: Int64

        init(_ layer: LayerOffer) {
            spatial = layer.point.spatial
            temporal = layer.point.temporal
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
        reason = record.reason.code
        estimate = record.estimate?.bitsPerSecond
        (needed, available) = Self.figures(of: record.reason)
        layer = record.layer.map(LayerModel.init)
        next = record.next.map(LayerModel.init)
        text = Self.sentence(record, report.limits)
    }

    private static func figures(of reason: DecisionReason) -> (needed: Int64?, available: Int64?) {
        switch reason {
        case .bandwidth(let needed, let available), .capped(let needed, let available),
            .shortage(let needed, let available):
            (needed.bitsPerSecond, available.bitsPerSecond)
        case .oversent(let excess): (excess.bitsPerSecond, nil)
        case .best, .asPreferred, .settling, .yieldsToScreen, .tooManyVideos, .blocked: (nil, nil)
        }
    }

    /// "320 of 700 kbit/s needed for 720p".
    private static func sentence(_ record: DecisionRecord, _ limits: BandwidthSettings?) -> String {
        switch record.reason {
        case .best: "the best layer that the publisher sends"
        case .asPreferred: "limited by the subscriber's preference; the publisher sends more"
        case .bandwidth(let needed, let available): shortage(needed, available, record)
        case .capped(let needed, let available):
            "\(shortage(needed, available, record)); \(cap(limits?.maxDownlinkBitrate))"
        case .settling: "recently changed, or a raise did not hold; waiting before raising again"
        case .yieldsToScreen: "a screen share waits for bandwidth"
        case .oversent(let excess):
            "\(excess.kilobitsPerSecond) kbit/s above \(bound(record, limits)), to keep some video"
        case .shortage(let needed, let available):
            "\(available.kilobitsPerSecond) of \(needed.kilobitsPerSecond) kbit/s needed for the lowest layer"
        case .tooManyVideos: surplus(limits?.maxVideoSubscriptions)
        case .blocked(.paused): "paused by the subscriber"
        case .blocked(.hidden): "hidden by the subscriber"
        case .blocked(.notSent): "the publisher sends nothing"
        }
    }

    private static func shortage(_ needed: Bitrate, _ available: Bitrate, _ record: DecisionRecord) -> String {
        "\(available.kilobitsPerSecond) of \(needed.kilobitsPerSecond) kbit/s needed for \(step(after: record))"
    }

    /// "720p", or "30 fps" if the video would not become larger.
    private static func step(after record: DecisionRecord) -> String {
        guard let next = record.next, next.height > 0 else { return "the next layer" }
        guard let layer = record.layer, layer.height == next.height else { return "\(next.height)p" }
        return "\(next.height)p at \(Int(next.framesPerSecond.isFinite ? next.framesPerSecond.rounded() : 0)) fps"
    }

    /// The limit that applies: the policy's cap, if it is lower than what the path carries.
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
        guard let limit else { return "more videos are subscribed than may be sent at once" }
        return "more videos are subscribed than the \(limit.value) allowed at once by \(who(limit.source))"
    }

    private static func who(_ source: LimitSource) -> String {
        switch source {
        case .room: "the room's policy"
        case .token: "the access token"
        case .participant: "the subscriber's own preference"
        }
    }
}

extension DecisionReason {
    /// Its name in martlet.v1 and the control API.
    var code: String {
        switch self {
        case .best: "best"
        case .asPreferred: "asPreferred"
        case .bandwidth: "bandwidth"
        case .capped: "capped"
        case .settling: "settling"
        case .yieldsToScreen: "yieldsToScreen"
        case .oversent: "oversent"
        case .shortage: "shortage"
        case .tooManyVideos: "tooManyVideos"
        case .blocked(.paused): "paused"
        case .blocked(.hidden): "hidden"
        case .blocked(.notSent): "notSent"
        }
    }
}
