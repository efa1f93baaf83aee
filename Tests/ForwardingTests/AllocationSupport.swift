import Forwarding
import MediaControl
import Primitives
import Testing

/// What publishers of the table send. Bitrates are cumulative, frame rates 8, 15 and 30 unless said otherwise.
enum Offers {
    /// Three simulcast layers with three temporal layers each.
    static let simulcast = [
        offer(0, 0, 75, 180, 7.5), offer(0, 1, 105, 180, 15), offer(0, 2, 150, 180, 30),
        offer(1, 0, 250, 360, 7.5), offer(1, 1, 350, 360, 15), offer(1, 2, 500, 360, 30),
        offer(2, 0, 750, 720, 7.5), offer(2, 1, 1_050, 720, 15), offer(2, 2, 1_500, 720, 30),
    ]
    /// The same from an encoder that spends a hundredth less.
    static let cheaper = simulcast.map { layer in
        offer(
            layer.point.spatial, layer.point.temporal, layer.bitrate.kilobitsPerSecond * 99 / 100, layer.height,
            layer.framesPerSecond)
    }
    /// One layer that cannot be thinned: H.264 of a phone.
    static let single = [offer(0, 0, 600, 720, 30)]
    /// A screen of 1080 lines with temporal layers.
    static let screen = [offer(0, 0, 400, 1_080, 5), offer(0, 1, 700, 1_080, 15), offer(0, 2, 1_200, 1_080, 30)]
    /// A screen in two sizes.
    static let screenSimulcast = [
        offer(0, 0, 100, 540, 5), offer(0, 1, 180, 540, 15), offer(1, 0, 400, 1_080, 5), offer(1, 1, 700, 1_080, 15),
    ]
    /// Film at 24 frames.
    static let film = [
        offer(0, 0, 100, 360, 12), offer(0, 1, 160, 360, 24), offer(1, 0, 500, 720, 12), offer(1, 1, 800, 720, 24),
    ]
    /// Two temporal layers of an encoder on a busy machine, as Chromium sent them: 27 frames, of which the lower layer has less than half.
    static let wavering = [
        offer(0, 0, 100, 180, 13.2), offer(0, 1, 136, 180, 27.2), offer(1, 0, 300, 360, 13.2),
        offer(1, 1, 482, 360, 27.2),
    ]
    /// A camera with 15 frames.
    static let slow = [
        offer(0, 0, 30, 180, 7.5), offer(0, 1, 50, 180, 15), offer(1, 0, 90, 360, 3.75), offer(1, 1, 130, 360, 15),
    ]
    /// The fewest frames of the larger size cost less than all of the smaller one.
    static let dear = [
        offer(0, 0, 60, 180, 7.5), offer(0, 1, 85, 180, 15), offer(0, 2, 120, 180, 30),
        offer(1, 0, 100, 360, 7.5), offer(1, 1, 200, 360, 15), offer(1, 2, 300, 360, 30),
    ]
    /// A still camera: the large picture costs less than the small one at full rate.
    static let still = [offer(0, 0, 60, 180, 15), offer(0, 1, 120, 180, 30), offer(1, 0, 80, 720, 30)]

    static func offer(_ spatial: Int, _ temporal: Int, _ kilobits: Int64, _ height: Int, _ frames: Double) -> LayerOffer
    {
        LayerOffer(
            LayerPoint(spatial: spatial, temporal: temporal), bitrate: .kilobitsPerSecond(kilobits), height: height,
            framesPerSecond: frames)
    }
}

/// A line of the table.
struct AllocationCase: Sendable, CustomTestStringConvertible {
    let name: String
    let mode: AllocationRules.Mode
    let kilobits: Int64
    var cap: Int64?
    var shortage = AllocationRules.Shortage.pause
    var maximumVideos: Int?
    var isCongested = true
    let requests: [AllocationRequest]
    /// "720p30 180p8 -": what each request gets, in order.
    let expected: String
    /// Words that the reasons start with, in order; nil: not looked at.
    let reasons: String?

    init(
        _ name: String, _ mode: AllocationRules.Mode, _ kilobits: Int64, cap: Int64? = nil,
        shortage: AllocationRules.Shortage = .pause, videos: Int? = nil, _ requests: [AllocationRequest],
        _ expected: String, why reasons: String? = nil
    ) {
        self.name = name
        self.mode = mode
        self.kilobits = kilobits
        self.cap = cap
        self.shortage = shortage
        maximumVideos = videos
        self.requests = requests.enumerated().map { index, request in
            var request = request
            request.id = SubscriptionID(UInt64(index + 1))
            return request
        }
        self.expected = expected
        self.reasons = reasons
    }

    /// A case of the grid.
    init(
        _ name: String, _ kilobits: Int64, cap: Int64? = nil, shortage: AllocationRules.Shortage = .pause,
        videos: Int? = nil, _ requests: [AllocationRequest], _ expected: String, why reasons: String? = nil
    ) {
        self.init(
            name, .grid, kilobits, cap: cap, shortage: shortage, videos: videos, requests, expected, why: reasons)
    }

    var testDescription: String { name }

    var rules: AllocationRules {
        AllocationRules(
            mode: mode, shortage: shortage, maximumVideos: maximumVideos, estimate: .kilobitsPerSecond(kilobits),
            cap: cap.map { .kilobitsPerSecond($0) }, isCongested: isCongested)
    }

    /// The case on a path that shows no sign of being full.
    var atEase: Self {
        var copy = self
        copy.isCongested = false
        return copy
    }
}

/// A camera of the table.
func camera(
    _ offers: [LayerOffer] = Offers.simulcast, height: Int? = nil, spatial: Int? = nil, frames: Double? = nil,
    priority: TrackPriority? = nil, publisher: TrackPriority = .standard, pinned: Bool = false, dominant: Bool = false,
    blocked: DecisionReason.Block? = nil, at current: (Int, Int)? = nil, mayRise: Bool = true,
    draining: Bool = false, beginning: Bool = false, mayThin: Bool = false, mayRegain: Bool = false,
    failed: AllocationRequest.FailedStep? = nil
) -> AllocationRequest {
    var request = AllocationRequest(
        id: SubscriptionID(0), offers: offers,
        limits: ViewerLimits(height: height, spatial: spatial, framesPerSecond: frames),
        publisherPriority: publisher, viewerPriority: priority, isPinned: pinned, isDominant: dominant,
        blocked: blocked,
        current: current.map { .init(spatial: $0.0, temporal: $0.1) }, mayRise: mayRise)
    request.isDraining = draining
    request.isBeginning = beginning
    request.mayThin = mayThin
    request.mayRegainFrames = mayRegain
    request.failed = failed
    return request
}

/// A step that failed so often.
func failed(
    _ spatial: Int, _ temporal: Int, _ attempts: Int, barred: Bool = false, at kilobits: Int64 = 0
) -> AllocationRequest.FailedStep {
    AllocationRequest.FailedStep(
        layer: .init(spatial: spatial, temporal: temporal), isBarred: barred, attempts: attempts,
        bitrate: .kilobitsPerSecond(kilobits))
}

/// A screen of the table.
func screen(
    _ offers: [LayerOffer] = Offers.screen, hint: ContentHint = .detail, at current: (Int, Int)? = nil
) -> AllocationRequest {
    AllocationRequest(
        id: SubscriptionID(0), offers: offers, hint: hint, isScreen: true,
        current: current.map { .init(spatial: $0.0, temporal: $0.1) })
}

/// "720p30", or "-" for nothing.
func shown(_ layer: LayerOffer?) -> String {
    layer.map { "\($0.height)p\(Int($0.framesPerSecond.rounded()))" } ?? "-"
}

/// The first word of a reason.
func word(_ reason: DecisionReason) -> String {
    switch reason {
    case .best: "best"
    case .asPreferred: "preference"
    case .bandwidth: "bandwidth"
    case .capped: "capped"
    case .settling: "settling"
    case .yieldsToScreen: "yields"
    case .oversent: "oversent"
    case .shortage: "shortage"
    case .tooManyVideos: "limit"
    case .blocked: "blocked"
    }
}
