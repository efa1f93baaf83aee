import MediaControl
import Primitives
public import Rooms

/// The bandwidth settings of a room or a participant, as JSON shows them. Bitrates are in bits per second.
public struct BandwidthModel: Codable, Sendable, Hashable {
    /// `grid`, `collaboration` or `presentation`.
    public var mode: String?
    /// Most videos at a time.
    public var maxVideoSubscriptions: Int?
    /// Cap on all video that is received.
    public var maxDownlinkBitrate: Int64?
    /// Cap on all video that is sent.
    public var maxUplinkBitrate: Int64?
    /// `pause` or `oversend`.
    public var shortage: String?
    /// With `oversend`: how far the estimate may be exceeded.
    public var oversendBitrate: Int64?

    /// Says nothing.
    public init() {}

    /// The model of `profile`.
    public init(_ profile: BandwidthProfile) {
        mode = profile.mode?.rawValue
        maxVideoSubscriptions = profile.maxVideoSubscriptions
        maxDownlinkBitrate = profile.maxDownlinkBitrate?.bitsPerSecond
        maxUplinkBitrate = profile.maxUplinkBitrate?.bitsPerSecond
        (shortage, oversendBitrate) = Self.words(profile.shortage)
    }

    /// The model of the settings in force for a participant.
    public init(_ settings: BandwidthSettings) {
        mode = settings.mode.rawValue
        maxVideoSubscriptions = settings.maxVideoSubscriptions?.value
        maxDownlinkBitrate = settings.maxDownlinkBitrate?.value.bitsPerSecond
        maxUplinkBitrate = settings.maxUplinkBitrate?.value.bitsPerSecond
        (shortage, oversendBitrate) = Self.words(settings.shortage)
    }

    /// The profile, or the name of the first member whose value is not allowed.
    public var profile: Result<BandwidthProfile, WrongMember> {
        var profile = BandwidthProfile()
        profile.mode = mode.flatMap(AllocationMode.init)
        if mode != nil, profile.mode == nil {
            return .failure(WrongMember(name: "mode", wanted: AllocationMode.allWords))
        }
        if let most = maxVideoSubscriptions {
            guard (0...1_000).contains(most) else {
                return .failure(WrongMember(name: "maxVideoSubscriptions", wanted: "0 to 1000"))
            }
            profile.maxVideoSubscriptions = most
        }
        if let cap = maxDownlinkBitrate {
            guard Self.caps.contains(cap) else {
                return .failure(WrongMember(name: "maxDownlinkBitrate", wanted: Self.capsInWords))
            }
            profile.maxDownlinkBitrate = .bitsPerSecond(cap)
        }
        if let cap = maxUplinkBitrate {
            guard Self.caps.contains(cap) else {
                return .failure(WrongMember(name: "maxUplinkBitrate", wanted: Self.capsInWords))
            }
            profile.maxUplinkBitrate = .bitsPerSecond(cap)
        }
        switch (shortage, oversendBitrate) {
        case (nil, nil): break
        case ("pause", nil): profile.shortage = .pause
        case ("oversend", let most):
            guard (0...10_000_000).contains(most ?? 0) else {
                return .failure(WrongMember(name: "oversendBitrate", wanted: "0 to 10000000"))
            }
            profile.shortage = most.map { .oversend(.bitsPerSecond($0)) } ?? DownlinkPolicy().shortage
        case ("pause", _), (nil, _):
            return .failure(WrongMember(name: "oversendBitrate", wanted: "absent without shortage oversend"))
        default: return .failure(WrongMember(name: "shortage", wanted: "pause or oversend"))
        }
        return .success(profile)
    }

    /// The name of a member with a value that is not allowed.
    public struct WrongMember: Error, Sendable, Hashable {
        /// Its name in JSON.
        public var name: String
        /// What it must be.
        public var wanted: String
    }

    /// From what one voice needs to more than any browser sends.
    private static let caps: ClosedRange<Int64> = 10_000...1_000_000_000
    private static let capsInWords = "\(caps.lowerBound) to \(caps.upperBound)"

    private static func words(_ shortage: ShortagePolicy?) -> (String?, Int64?) {
        switch shortage {
        case nil: (nil, nil)
        case .pause: ("pause", nil)
        case .oversend(let most): ("oversend", most.bitsPerSecond)
        }
    }
}
