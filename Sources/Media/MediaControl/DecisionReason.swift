public import Primitives

/// Why a subscription gets its layer.
public enum DecisionReason: Sendable, Hashable {
    /// It gets all that the publisher sends.
    case best
    /// It gets everything that the subscriber prefers; the publisher sends more.
    case asPreferred
    /// The next step costs `needed`; `available` is this subscription's possible share of the estimate.
    case bandwidth(needed: Bitrate, available: Bitrate)
    /// As `bandwidth`, but the policy's cap is the limit.
    case capped(needed: Bitrate, available: Bitrate)
    /// More fits, but the layer was changed too recently, other subscribers change at another moment, or the path recently did not carry as much.
    case settling
    /// A screen waits for bandwidth: no other video rises meanwhile.
    case yieldsToScreen
    /// It exceeds the estimate, as the policy allows for the lowest step.
    case oversent(by: Bitrate)
    /// The lowest step costs `needed` and does not fit: not sent.
    case shortage(needed: Bitrate, available: Bitrate)
    /// More videos are subscribed to than the subscriber may have at once: not sent.
    case tooManyVideos(limit: Int)
    /// Not sent, whatever the bandwidth.
    case blocked(Block)

    /// Why nothing may be sent, whatever the bandwidth.
    public enum Block: Sendable, Hashable {
        /// The subscriber paused it, or pauses all video.
        case paused
        /// The subscriber does not show it.
        case hidden
        /// The publisher muted it, or sends nothing now.
        case notSent
    }

    /// Whether a video of which nothing is sent is held for lack of bandwidth, and not because of its publisher, its subscriber or a maximum number.
    public var holdsVideo: Bool {
        switch self {
        case .bandwidth, .capped, .settling, .yieldsToScreen, .oversent, .shortage: true
        case .best, .asPreferred, .tooManyVideos, .blocked: false
        }
    }

    /// The path is the limit: with more bandwidth more would be sent.
    public var isShort: Bool {
        switch self {
        case .bandwidth, .settling, .yieldsToScreen, .oversent, .shortage: true
        case .best, .asPreferred, .capped, .tooManyVideos, .blocked: false
        }
    }

    /// Whether it is the same reason, regardless of its figures.
    public func isSame(as other: Self) -> Bool { withoutFigures == other.withoutFigures }

    private var withoutFigures: Self {
        switch self {
        case .bandwidth: .bandwidth(needed: .zero, available: .zero)
        case .capped: .capped(needed: .zero, available: .zero)
        case .oversent: .oversent(by: .zero)
        case .shortage: .shortage(needed: .zero, available: .zero)
        case .tooManyVideos: .tooManyVideos(limit: 0)
        case .best, .asPreferred, .settling, .yieldsToScreen, .blocked: self
        }
    }
}
