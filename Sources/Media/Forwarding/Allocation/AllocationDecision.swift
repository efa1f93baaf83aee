import MediaControl
public import Primitives

/// What one subscription gets, and why not more.
public struct AllocationDecision: Sendable, Hashable {
    /// Why a subscription gets what it gets.
    public enum Reason: Sendable, Hashable {
        /// All that the publisher sends.
        case best
        /// All that the viewer asked for; the publisher sends more.
        case asWished
        /// The next step costs `needed`; `available` is what this subscription could have of the estimate.
        case bandwidth(needed: Bitrate, available: Bitrate)
        /// As `bandwidth`, but the policy's cap is what binds.
        case capped(needed: Bitrate, available: Bitrate)
        /// More fits, but it came down too short a time ago.
        case settling
        /// A screen waits for bandwidth: nobody else rises meanwhile.
        case yieldsToScreen
        /// More than the estimate, as the policy allows for the lowest step.
        case oversent(by: Bitrate)
        /// The lowest step costs `needed` and does not fit: not sent.
        case shortage(needed: Bitrate, available: Bitrate)
        /// More pictures are wanted than the viewer may have at a time: not sent.
        case tooManyVideos(limit: Int)
        /// Not sent, whatever the bandwidth.
        case blocked(AllocationRequest.Blocked)
    }

    public var id: SubscriptionID
    /// What to forward; nil: nothing.
    public var layer: LayerOffer?
    public var reason: Reason
    /// The step above that would come next; nil at the top. What probing aims for.
    public var next: LayerOffer?
}
