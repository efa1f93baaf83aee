import MediaControl
public import Primitives

/// What bandwidth allows of a picture.
public enum LayerBound: Sendable, Hashable {
    /// All that is wished for.
    case unlimited
    /// All that is wished for of the simulcast layers that are sent and measured now; others wait for the next decision.
    case present
    /// Up to this spatial rank, and of that up to this temporal layer.
    case upTo(spatial: Int, temporal: Int)
    /// Not at all.
    case nothing
    /// Not before its publisher sends it and another decision has been made.
    case undecided
}

extension Subscription {
    /// Sets what bandwidth allows; true when a keyframe is needed for it.
    public mutating func setBound(_ bound: LayerBound, track: PublishedTrack, at now: MonotonicTime) -> Bool {
        let wasHeldBack = isHeldBack
        isHeldBack = bound == .nothing || bound == .undecided
        awaitsPackets = bound == .undecided
        switch bound {
        case .unlimited, .nothing, .undecided: selector.setBound(spatial: nil, temporal: nil)
        case .present: selector.setBound(spatial: nil, temporal: nil, known: track.measuredLayers(at: now))
        case .upTo(let spatial, let temporal): selector.setBound(spatial: spatial, temporal: temporal)
        }
        guard isBound, kind == .video, !isPaused else { return false }
        if isHeldBack {
            // Not amid a frame: `plan` stops at its end.
            if !wasHeldBack, selector.active < 0 || tail.isFrameComplete { stop(track) }
            return false
        }
        selector.look(at: track, now: now)
        return selector.target >= 0 && selector.needsKeyframe
    }

    /// Ends the video that is larger than the decided one with the frame on its way: the path is full, and each further frame of it, of which few come
    /// through, would be ahead of the smaller one's keyframe in the queue.
    public mutating func endLarger(_ track: PublishedTrack) {
        guard selector.target >= 0, selector.pending < 0, isSmaller(Int(selector.target), in: track) else { return }
        leftVideo.beginEnding()
        if tail.isFrameComplete { stop(track) }
    }

    /// Whether a simulcast layer is a smaller video than the one being forwarded.
    func isSmaller(_ layer: Int, in track: PublishedTrack) -> Bool {
        guard track.layerCount > 1, selector.active >= 0 else { return false }
        return track.rank(ofLayer: layer) < track.rank(ofLayer: Int(selector.active))
    }

    /// What the viewer asked for, in the allocation's terms.
    public func limits(of track: PublishedTrack) -> ViewerLimits {
        switch selector.preference {
        case .best: ViewerLimits()
        case .height(let height): ViewerLimits(height: height)
        case .spatial(let rank): ViewerLimits(spatial: rank)
        case .rid(let rid):
            ViewerLimits(
                spatial: (0..<track.layerCount).first { track.layer($0).pointee.rid == rid }
                    .map { track.rank(ofLayer: $0) })
        }
    }
}
