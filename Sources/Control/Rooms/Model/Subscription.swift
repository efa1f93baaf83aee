import MediaControl
import Primitives

/// One track, or one follow-mode section, as one member receives it.
struct Subscription: Sendable {
    let id: SubscriptionID
    let sid: String
    let member: SessionID
    let kind: MediaKind
    let ssrc: UInt32
    let rtxSSRC: UInt32?
    /// What is behind it now.
    var track: TrackID?
    /// A follow-mode section: which of the followed member's tracks of the kind, from 0.
    var slot: Int?
    var connection: String?
    var mid: String?
    /// Paused by request; all video of the member may be paused beside.
    var paused = false
    var preference = LayerPreference.best
    var display = DisplayPreference()
    var state = SubscriptionInfo.State.pending
    /// As the worker was last told; nil while it does not know it.
    var description: SubscriptionDescription?
}
