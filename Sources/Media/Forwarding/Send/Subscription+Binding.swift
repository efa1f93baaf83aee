public import MediaControl
public import Primitives

// What stands behind the section: which track, paused or not, which layer is preferred.

extension Subscription {
    /// Puts `track` behind the section; the stream that the subscriber sees goes on.
    public mutating func bind(_ track: PublishedTrack) {
        section.bind(track)
        formatMatch = .accepted
        numbering.beginBinding()
        selector.reset()
        reports.restart()
        isBound = true
    }

    /// Takes the track away. Called while its packets are still there, so that the next one goes on where it ended.
    public mutating func unbind(_ track: PublishedTrack) {
        guard isBound else { return }
        stop(track)
        isBound = false
        numbering.endBinding()
        selector.reset()
    }

    /// Stops forwarding; the next packet comes from a keyframe. Also what to do when the track is unmuted.
    public mutating func stop(_ track: PublishedTrack) {
        abandonHeld()
        if let active = selector.active { numbering.remember(track.layer(Int(active))) }
        selector.stop()
    }

    /// Stops or resumes; true when there is something to begin.
    public mutating func setPaused(_ paused: Bool, track: PublishedTrack?) -> Bool {
        guard paused != isPaused else { return false }
        isPaused = paused
        if paused, let track, isBound { stop(track) }
        return !paused && kind == .video && isBound
    }

    /// Another preference; true when a keyframe of another layer is needed for it.
    public mutating func setPreference(_ preference: LayerPreference, track: PublishedTrack?, at now: MonotonicTime)
        -> Bool
    {
        selector.setPreference(preference)
        return lookForKeyframe(track, at: now)
    }

    /// A picture is about to begin, or to change its size: not before it is decided what bandwidth allows, or the largest layer would be
    /// asked for a keyframe that nobody can be sent.
    public mutating func awaitBound() {
        if kind == .video, isBound { selector.awaitBound() }
    }

    /// It waits for `setBound`.
    public var isAwaitingBound: Bool { selector.isAwaiting }

    private mutating func lookForKeyframe(_ track: PublishedTrack?, at now: MonotonicTime) -> Bool {
        guard let track, isBound, kind == .video, !isPaused else { return false }
        selector.look(at: track, now: now)
        return selector.needsKeyframe
    }

    /// The layers as known now, before any packet of the turn; true when a keyframe is needed to begin.
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
