public import MediaControl

/// What bandwidth allows of a video.
public enum LayerBound: Sendable, Hashable {
    /// Everything up to the preference.
    case unlimited
    /// Everything up to the preference among the simulcast layers that are sent and measured now; others wait for the next decision.
    case present
    /// Up to this spatial rank, and in it up to this temporal layer.
    case upTo(LayerPoint)
    /// Nothing.
    case nothing
    /// Nothing until its publisher sends it and another decision is made.
    case undecided
}

/// Whether a lack of bandwidth keeps a subscription from sending.
enum Hold {
    case none
    /// Bandwidth does not allow even the lowest layer, or too many videos are subscribed to.
    case byBandwidth
    /// The same, until there are packets to decide about.
    case untilPackets

    init(_ bound: LayerBound) {
        self =
            switch bound {
            case .nothing: .byBandwidth
            case .undecided: .untilPackets
            case .unlimited, .present, .upTo: .none
            }
    }
}
