public import MediaControl
public import Primitives

// The source of a subscription: which track, paused or not, which layer is preferred.

extension Subscription {
    /// Binds `track` to the section; the stream that the subscriber sees continues.
    public mutating func bind(_ track: PublishedTrack) {
        section.bind(track)
        formatMatch = .accepted
        numbering.beginBinding()
        abandonedVideo = AbandonedVideo()
        selector.reset()
        reports.restart()
        isBound = true
    }

    /// Unbinds the track. Called while its packets still exist, so that the next track continues where it ended.
    public mutating func unbind(_ track: PublishedTrack) {
        guard isBound else { return }
        stop(track)
        isBound = false
        numbering.endBinding()
        selector.reset()
    }

    /// Stops forwarding until the next keyframe. Also used when the track is unmuted.
    public mutating func stop(_ track: PublishedTrack) {
        abandonHeld()
        if let active = selector.active { numbering.remember(track.layer(Int(active))) }
        selector.stop()
    }

    /// Pauses or resumes; true when there is something to start.
    public mutating func setPaused(_ paused: Bool, track: PublishedTrack?) -> Bool {
        guard paused != isPaused else { return false }
        isPaused = paused
        if paused, let track, isBound { stop(track) }
        return !paused && kind == .video && isBound
    }

    /// Sets another preference; true when it needs a keyframe of another layer.
    public mutating func setPreference(_ preference: LayerPreference, track: PublishedTrack?, at now: MonotonicTime)
        -> Bool
    {
        selector.setPreference(preference)
        return lookForKeyframe(track, at: now)
    }

    /// A video is about to start or to change its size: wait until the bandwidth decision, or the largest layer would be
    /// asked for a keyframe that no subscriber can be sent.
    public mutating func awaitBound() {
        if kind == .video, isBound { selector.awaitBound() }
    }

    /// Whether it waits for `setBound`.
    public var isAwaitingBound: Bool { selector.isAwaiting }

    private mutating func lookForKeyframe(_ track: PublishedTrack?, at now: MonotonicTime) -> Bool {
        guard let track, isBound, kind == .video, !isPaused else { return false }
        selector.look(at: track, now: now)
        return selector.needsKeyframe
    }

    /// Checks the known layers before any packet of the turn; true when a keyframe is needed to start.
    public mutating func lookForStart(_ track: PublishedTrack, at now: MonotonicTime) -> Bool {
        guard isBound, kind == .video, !isPaused, !isHeldBack else { return false }
        selector.look(at: track, now: now)
        return selector.target != nil && selector.needsKeyframe
    }

    /// The publisher's track was renegotiated.
    public mutating func trackUpdated(_ track: PublishedTrack) {
        section.trackUpdated(track, highest: numbering.highest)
        formatMatch = .accepted
    }
}
