public import MediaControl
public import Primitives

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

extension Subscription {
    /// Sets what bandwidth allows; true when a keyframe is needed for it.
    public mutating func setBound(_ bound: LayerBound, track: PublishedTrack, at now: MonotonicTime) -> Bool {
        let wasHeldBack = isHeldBack
        hold =
            switch bound {
            case .nothing: .byBandwidth
            case .undecided: .untilPackets
            case .unlimited, .present, .upTo: .none
            }
        switch bound {
        case .unlimited, .nothing, .undecided: selector.setBound(nil)
        case .present: selector.setBound(nil, known: track.measuredLayers(at: now))
        case .upTo(let layer): selector.setBound(layer)
        }
        guard isBound, kind == .video, !isPaused else { return false }
        if isHeldBack {
            // Not in the middle of a frame: `plan` stops at its end.
            if !wasHeldBack, selector.active == nil || numbering.tail.isFrameComplete { stop(track) }
            return false
        }
        selector.look(at: track, now: now)
        return selector.target != nil && selector.needsKeyframe
    }

    /// Ends a video larger than the decided one after its current frame: the path is full, and each further frame of it, few of which
    /// arrive, would precede the smaller one's keyframe in the queue.
    public mutating func endLarger(_ track: PublishedTrack) {
        guard let target = selector.target, selector.pending == nil, isSmaller(Int(target), in: track) else { return }
        abandonedVideo.beginEnding()
        if numbering.tail.isFrameComplete { stop(track) }
    }

    /// Whether a simulcast layer is a smaller video than the one being forwarded.
    func isSmaller(_ layer: Int, in track: PublishedTrack) -> Bool {
        guard track.layerCount > 1, let active = selector.active else { return false }
        return track.rank(ofLayer: layer) < track.rank(ofLayer: Int(active))
    }

    /// The subscriber's preference, as limits for the allocation.
    public func limits(of track: PublishedTrack) -> ViewerLimits {
        switch selector.preference {
        case .best: ViewerLimits()
        case .height(let height): ViewerLimits(height: height)
        case .spatial(let rank): ViewerLimits(spatial: rank)
        case .rid(let rid): ViewerLimits(spatial: track.rank(of: rid))
        }
    }
}
