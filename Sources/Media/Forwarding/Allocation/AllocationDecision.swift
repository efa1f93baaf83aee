public import MediaControl
public import Primitives

/// What one subscription gets, and why not more.
public struct AllocationDecision: Sendable, Hashable {
    public var id: SubscriptionID
    /// What to forward; nil: nothing.
    public var layer: LayerOffer?
    public var reason: DecisionReason
    /// The step above that would come next; nil at the top. What probing aims for.
    public var next: LayerOffer?
}
