import MediaControl
import Primitives

/// Which layer a subscription forwards and which one it waits for.
///
/// The choice follows the subscriber's preference among the layers that are being sent, within what bandwidth allows; see `setBound`.
struct LayerSelector {
    private(set) var preference: LayerPreference
    /// The highest rank that bandwidth allows; nil: any.
    private var bound: Int8?
    private var known = KnownLayers()
    private var temporal = TemporalFilter()
    private var spatial = SpatialFilter()
    private var repair = KeyframeRepair()
    /// The layer being forwarded; nil while none is.
    private(set) var active: UInt8?
    /// The layer that follows the active one, and how far that is prepared.
    private(set) var next = NextLayer.same
    /// When the target is checked next.
    private var nextLook = NextLook.at(.zero)
    /// The history may be searched once for a keyframe to start with, before any packet arrives. That is allowed before a target is known.
    private var mayReplay = true
    private var announcements = TargetAnnouncements()

    /// What follows the active layer.
    enum NextLayer {
        /// The active layer stays; if none is active, none is awaited either.
        case same
        /// Another layer, of which a keyframe is needed first.
        case awaited(UInt8)
        /// Another layer, whose keyframe has begun while the active layer was in the middle of a frame.
        case prepared(PendingSwitch)

        /// The other layer; nil if the active one stays.
        @inline(__always) var layer: UInt8? {
            switch self {
            case .same: nil
            case .awaited(let layer): layer
            case .prepared(let pending): pending.layer
            }
        }
    }

    /// A switch that can be made as soon as the active layer's frame ends.
    struct PendingSwitch {
        let layer: UInt8
        /// First sequence number of that keyframe.
        let start: Int64
        let since: MonotonicTime
    }

    private enum NextLook {
        case at(MonotonicTime)
        /// No layer is started before the next bandwidth decision.
        case afterBound
    }

    /// An unfinished frame gets this long to end when another layer's keyframe arrives. Frames of all
    /// layers leave a simulcast sender within a few milliseconds.
    static let patience = TimeSpan.milliseconds(30)
    /// Layers start and stop within seconds; ten checks per second suffice.
    static let lookInterval = TimeSpan.milliseconds(100)
    /// Maximum age of a keyframe in the history with which a new subscriber starts, without requesting another. Half a second of video is the most
    /// that is sent at once.
    static let replayAge = TimeSpan.milliseconds(500)
    /// The same when bandwidth is short: the replayed packets would add to the regular bitrate.
    static let shortReplayAge = TimeSpan.milliseconds(100)
    /// The limit in force.
    var replayLimit: TimeSpan { bound == nil ? Self.replayAge : Self.shortReplayAge }

    init(preference: LayerPreference) { self.preference = preference }

    /// The layer that should be forwarded; nil while none is sent.
    @inline(__always) var target: UInt8? { next.layer ?? active }

    /// Whether it waits for `setBound`.
    var isAwaiting: Bool { if case .afterBound = nextLook { true } else { false } }

    // MARK: - What changes the choice

    mutating func setPreference(_ preference: LayerPreference) {
        self.preference = preference
        if !isAwaiting { nextLook = .at(.zero) }
        mayReplay = true
    }

    /// The most that bandwidth allows; nil for everything. Temporal layers follow at once, spatial ones at a keyframe.
    /// `layers`: those that the decision knew; nil: all.
    mutating func setBound(_ layer: LayerPoint?, known layers: UInt8? = nil) {
        known.decided(layers)
        // A rank beyond all layers bounds only the temporal ones.
        bound = layer.flatMap { Int8(exactly: $0.spatial) }
        temporal.target = layer.map { UInt8(clamping: $0.temporal) } ?? .max
        if isAwaiting { mayReplay = true }
        nextLook = .at(.zero)
    }

    /// No new layer starts before `setBound`; the current one continues.
    mutating func awaitBound() {
        nextLook = .afterBound
        next = .same
    }

    /// Another track is bound: resets the choice.
    mutating func reset() {
        active = nil
        next = .same
        nextLook = .at(.zero)
        mayReplay = true
        spatial = SpatialFilter()
        repair = KeyframeRepair()
        announcements = TargetAnnouncements()
    }

    /// Clears the active layer: forwarding resumes with a keyframe.
    mutating func stop() {
        if let target { next = .awaited(target) }
        active = nil
        if !isAwaiting { nextLook = .at(.zero) }
        mayReplay = true
    }

    // MARK: - Switching

    /// A keyframe of the awaited layer has arrived, from `start` on.
    mutating func prepare(_ start: Int64, at now: MonotonicTime) {
        guard case .awaited(let layer) = next else { return }
        next = .prepared(PendingSwitch(layer: layer, start: start, since: now))
    }

    /// Returns and clears the prepared switch: unless `begin` follows, another keyframe is needed.
    mutating func consumePending() -> PendingSwitch? {
        guard case .prepared(let pending) = next else { return nil }
        next = .awaited(pending.layer)
        return pending
    }

    /// Forwards `layer` from now on, from a keyframe whose first frame has `timestamp`.
    mutating func begin(_ layer: Int, at timestamp: Int64) {
        active = UInt8(layer)
        next = .same
        spatial.begin(at: timestamp)
        temporal.begin(at: timestamp)
    }

    /// The awaited layer, if the history may be searched for its keyframe; only once.
    @inline(__always)
    mutating func consumeReplay() -> UInt8? {
        guard mayReplay, target != nil else { return nil }
        mayReplay = false
        guard case .awaited(let layer) = next else { return nil }
        return layer
    }

    /// Whether the preference needs a keyframe first.
    @inline(__always) var needsKeyframe: Bool {
        if case .awaited = next { return true }
        return active != nil && spatial.needsKeyframe
    }

    // MARK: - Layers inside a stream

    /// The outcome for a packet of the active layer.
    enum Verdict {
        case forwarded
        /// Belongs to a spatial layer that the subscriber does not get.
        case aboveSpatialCap
        /// Belongs to a temporal layer that the subscriber does not get; `isFirst` of its frame.
        case aboveTemporalCap(isFirst: Bool)
    }

    /// Judges a packet. `isNewFrame`: its timestamp is not that of the last forwarded packet; `highest` is the highest output number.
    @inline(__always)
    mutating func verdict(_ record: UnsafePointer<PacketRecord>, isNewFrame: Bool, highest: Int64) -> Verdict {
        if spatial.drops(record, isNewFrame: isNewFrame, highest: highest, repair: &repair) { return .aboveSpatialCap }
        guard temporal.drops(record, isNewFrame: isNewFrame) else { return .forwarded }
        return .aboveTemporalCap(isFirst: temporal.omit(record))
    }

    /// The layers in force now.
    @inline(__always) var caps: LayerCaps { LayerCaps(spatial: spatial.cap, temporal: temporal.cap) }

    /// The highest temporal layer that is forwarded from the next frame on.
    var temporalLimit: UInt8 { min(temporal.cap, temporal.target) }

    /// The layers in force for the frame of `timestamp`; `caps` were those of its range.
    func caps(at timestamp: Int64, else caps: LayerCaps) -> LayerCaps {
        LayerCaps(
            spatial: timestamp >= spatial.since ? spatial.cap : caps.spatial,
            temporal: timestamp >= temporal.since ? temporal.cap : caps.temporal)
    }

    /// The announcement for the first packet of a frame of the lowest layers of `layer`; nil for none.
    @inline(__always)
    mutating func announcement(
        atKeyframe isKeyframe: Bool, of layer: UnsafeMutablePointer<ReceiveLayer>
    ) -> LayerMark? {
        // Often bandwidth allows all layers, and then every receiver's descriptor stays as it is.
        announcements.next(layer.pointee.isWhole(below: caps) ? LayerCaps() : caps, atKeyframe: isKeyframe)
    }

    /// The receiver lacks the packet with the output number `number`. `isGone`: it was sent, but is no longer stored.
    mutating func noteMissing(_ number: Int64, isGone: Bool) { repair.noteMissing(number, isGone: isGone) }

    /// Whether a keyframe repairs better than retransmissions, reported once.
    mutating func consumeRepair() -> Bool { repair.consume() }

    // MARK: - Choosing

    /// Whether a layer is being sent that no decision knew, reported once.
    @inline(__always)
    mutating func consumeFoundLayer() -> Bool { known.consumeFound() }

    /// Checks the layers, if it is time, and sets the target.
    @inline(__always) mutating func look(at track: PublishedTrack, now: MonotonicTime) {
        guard case .at(let moment) = nextLook, now >= moment else { return }
        nextLook = .at(now + Self.lookInterval)
        if track.layerCount == 1 {
            setTarget(0)
            lookAtSpatialLayers(of: track)
        } else {
            setTarget(choose(among: track, now: now))
        }
    }

    /// A switch that is prepared for this layer stays prepared; nil: the active layer stays.
    private mutating func setTarget(_ layer: UInt8?) {
        guard let layer, layer != active else { return next = .same }
        if layer != next.layer { next = .awaited(layer) }
    }

    /// The layer that fits the preference best among those being sent; nil while nothing is.
    private mutating func choose(among track: PublishedTrack, now: MonotonicTime) -> UInt8? {
        var best: (layer: Int, rank: Int)?
        var above: (layer: Int, rank: Int)?
        let preferred = preferredRank(in: track)
        let allowed = known.allowed(of: track.activeLayers(at: now))
        for index in 0..<track.layerCount where allowed & 1 << UInt8(index) != 0 {
            let rank = track.rank(ofLayer: index)
            if rank <= preferred {
                if rank > best?.rank ?? -1 { best = (index, rank) }
            } else if rank < above?.rank ?? .max {
                above = (index, rank)
            }
        }
        return (best ?? above).map { UInt8($0.layer) }
    }

    private func preferredRank(in track: PublishedTrack) -> Int {
        let rank =
            switch preference {
            case .best: Int.max
            case .rid(let rid): track.rank(of: rid) ?? .max
            case .height(let height): track.rank(reaching: height) ?? .max
            case .spatial(let rank): rank
            }
        return bound.map { min(rank, Int($0)) } ?? rank
    }

    /// One stream with layers inside: the preference becomes a cap on spatial layers.
    private mutating func lookAtSpatialLayers(of track: PublishedTrack) {
        let rank = preferredRank(in: track)
        spatial.setTarget(rank >= Int(Int8.max) ? .max : UInt8(clamping: rank))
    }
}
