public import Primitives

/// One decision about one video of one subscriber, with its reason.
public struct DecisionRecord: Sendable, Hashable {
    /// When, on the worker's clock. `age` is for readers elsewhere.
    public var time: MonotonicTime
    /// How long ago, when the record was read.
    public var age = TimeInterval.zero
    public var subscription: SubscriptionID
    public var track: TrackID?
    /// What is sent from then on; nil: nothing.
    public var layer: LayerOffer?
    /// The estimate of the subscriber's path; nil while nothing limits.
    public var estimate: Bitrate?
    public var reason: DecisionReason
    /// The next step; nil at the top.
    public var next: LayerOffer?

    /// A decision.
    public init(
        time: MonotonicTime, subscription: SubscriptionID, track: TrackID?, layer: LayerOffer?, estimate: Bitrate?,
        reason: DecisionReason, next: LayerOffer? = nil
    ) {
        self.time = time
        self.subscription = subscription
        self.track = track
        self.layer = layer
        self.estimate = estimate
        self.reason = reason
        self.next = next
    }

    /// The same as seen at `now`.
    public func read(at now: MonotonicTime) -> Self {
        var copy = self
        copy.age = now - time
        return copy
    }
}
