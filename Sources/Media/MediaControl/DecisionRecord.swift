public import Primitives

/// One decision about one video of one subscriber, with its reason.
public struct DecisionRecord: Sendable, Hashable {
    /// Time of the decision, on the worker's clock. Other readers use `age`.
    public var time: MonotonicTime
    /// How long before the reading it was made.
    public var age = TimeSpan.zero
    public var subscription: SubscriptionID
    public var track: TrackID?
    /// The layer sent from then on; nil: none.
    public var layer: LayerOffer?
    /// The estimate of the subscriber's path; nil while nothing is limited.
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

    /// Whether both send the same layer for the same reason, regardless of the figures.
    public func isSame(as other: Self) -> Bool {
        layer?.point == other.layer?.point && reason.isSame(as: other.reason)
    }

    /// The record as read at `now`.
    public func read(at now: MonotonicTime) -> Self {
        var copy = self
        copy.age = now - time
        return copy
    }
}
