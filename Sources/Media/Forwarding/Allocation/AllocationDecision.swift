public import MediaControl
public import Primitives

/// What one subscription is sent, and why not more.
public struct AllocationDecision: Sendable, Hashable {
    public var id: SubscriptionID
    /// The layer to forward; nil: none.
    public var layer: LayerOffer?
    public var reason: DecisionReason
    /// The layer has too few frames to look smooth, so that the video keeps its size for some seconds.
    public var isThinned = false
    /// The next step up; nil at the top. It is what probing aims for.
    public var next: LayerOffer?
}
