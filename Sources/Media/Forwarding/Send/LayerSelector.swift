import MediaControl
import Primitives

/// Which layer a subscription forwards and which one it waits for.
///
/// The choice follows the subscriber's preference among the layers that are being sent, below what bandwidth allows; see `setBound`.
struct LayerSelector {
    private(set) var preference: LayerPreference
    /// The highest rank that may be chosen, by bandwidth.
    private var bound = Int8.max
    /// The layers that the last decision about bandwidth knew, bit by bit; no other is begun before the next one.
    private var known = UInt8.max
    /// Others that were sent at the last look.
    private var others: UInt8 = 0
    /// A layer is sent that no decision knew.
    private var seesMore = false
    private var temporal = TemporalFilter()
    private var spatial = SpatialFilter()
    /// The layer being forwarded; nil while none is.
    private(set) var active: UInt8?
    /// The layer that should be forwarded; nil while nothing is sent.
    private(set) var target: UInt8?
    /// The switch that is prepared; nil while none is.
    private(set) var pending: PendingSwitch?
    /// When the target was last looked at; `.zero` asks for a look at once.
    private var lastLook = MonotonicTime.zero
    /// Nothing else is begun before the next decision about bandwidth.
    private(set) var isAwaiting = false
    /// The history may be looked at once for a keyframe to begin with, before any packet comes.
    private var mayReplay = true
    /// The subscriber has received an announcement that some decode targets are not there, since the last keyframe.
    private var hasAnnouncedTargets = false

    /// A keyframe of the target has begun while the active layer was amid a frame.
    struct PendingSwitch {
        let layer: UInt8
        /// First sequence number of that keyframe.
        let start: Int64
        let since: MonotonicTime
    }

    /// A frame that is amid when another layer's keyframe comes gets this long to end before it is given up. Frames of all
    /// layers leave a simulcast sender within a few milliseconds.
    static let patience = TimeInterval.milliseconds(30)
    /// Layers come and go in seconds; looking ten times a second is soon enough.
    static let lookInterval = TimeInterval.milliseconds(100)
    /// Keyframe age up to which a newcomer is served from history instead of asking for another. Half a second of video is the most
    /// that is sent at once.
    static let replayAge = TimeInterval.milliseconds(500)
    /// The same where bandwidth is short: what has been missed would come on top of what is sent anyway.
    static let shortReplayAge = TimeInterval.milliseconds(100)
    /// What holds now.
    var replayLimit: TimeInterval { bound == .max ? Self.replayAge : Self.shortReplayAge }

    init(preference: LayerPreference) { self.preference = preference }

    // MARK: - What changes the choice

    mutating func setPreference(_ preference: LayerPreference) {
        self.preference = preference
        lastLook = .zero
        mayReplay = true
    }

    /// The most that bandwidth allows; nil for everything. Temporal layers follow at once, spatial ones at a keyframe.
    mutating func setBound(_ layer: LayerPoint?, known: UInt8 = .max) {
        self.known = known
        others = 0
        bound = layer.map { Int8(clamping: $0.spatial) } ?? .max
        temporal.target = layer.map { UInt8(clamping: $0.temporal) } ?? .max
        lastLook = .zero
        if isAwaiting { mayReplay = true }
        isAwaiting = false
    }

    /// What begins next waits for `setBound`; what is being forwarded goes on.
    mutating func awaitBound() {
        isAwaiting = true
        target = active
        pending = nil
    }

    /// Another track is bound: nothing of the old choice holds.
    mutating func reset() {
        stop()
        target = nil
        isAwaiting = false
        spatial = SpatialFilter()
        hasAnnouncedTargets = false
    }

    /// Forgets the active layer: the next packet comes from a keyframe.
    mutating func stop() {
        active = nil
        pending = nil
        lastLook = .zero
        mayReplay = true
    }

    // MARK: - Switching

    /// A keyframe of the target to go over to is there, from `start` on.
    mutating func prepare(_ start: Int64, at now: MonotonicTime) {
        pending = target.map { PendingSwitch(layer: $0, start: start, since: now) }
    }

    /// The prepared switch, which is prepared no more.
    mutating func takePending() -> PendingSwitch? {
        defer { pending = nil }
        return pending
    }

    /// Forwards `layer` from now on, from a keyframe whose first frame has `timestamp`.
    mutating func begin(_ layer: Int, at timestamp: Int64) {
        active = UInt8(layer)
        spatial.begin(at: timestamp)
        temporal.begin(at: timestamp)
    }

    /// The target, where the history may be looked at for its keyframe; once.
    @inline(__always)
    mutating func takeReplay() -> UInt8? {
        guard mayReplay, let target else { return nil }
        mayReplay = false
        return target != active && pending == nil ? target : nil
    }

    /// Whether a keyframe must come before the preference can be followed.
    @inline(__always) var needsKeyframe: Bool {
        (target != active && pending?.layer != target) || (active != nil && spatial.needsKeyframe)
    }

    // MARK: - Layers inside a stream

    /// What becomes of a packet of the active layer.
    enum Verdict {
        case forwarded
        /// Of a spatial layer that the subscriber does not get.
        case aboveSpatialCap
        /// Of a temporal layer that the subscriber does not get; `isFirst` of its frame.
        case aboveTemporalCap(isFirst: Bool)
    }

    /// Judges a packet. `isNewFrame`: its timestamp is not that of the last forwarded packet; `highest` is the highest output number.
    @inline(__always)
    mutating func judge(_ record: UnsafePointer<PacketRecord>, isNewFrame: Bool, highest: Int64) -> Verdict {
        if spatial.drops(record, isNewFrame: isNewFrame, highest: highest) { return .aboveSpatialCap }
        guard temporal.drops(record, isNewPicture: isNewFrame) else { return .forwarded }
        return .aboveTemporalCap(isFirst: temporal.omit(record))
    }

    /// The layers that hold now.
    @inline(__always) var caps: LayerCaps { LayerCaps(spatial: spatial.cap, temporal: temporal.cap) }

    /// The layers that hold for the frame of `timestamp`, where those of its time are `caps`.
    func caps(at timestamp: Int64, else caps: LayerCaps) -> LayerCaps {
        LayerCaps(
            spatial: timestamp >= spatial.since ? spatial.cap : caps.spatial,
            temporal: timestamp >= temporal.since ? temporal.cap : caps.temporal)
    }

    /// What the first packet of a frame of the lowest layers announces; nil for nothing.
    mutating func announcement(atKeyframe isKeyframe: Bool) -> LayerMark? {
        let mark = LayerMark(targets: caps)
        if !mark.announcesAll {
            hasAnnouncedTargets = true
            return mark
        }
        guard hasAnnouncedTargets else { return nil }
        // A keyframe's structure says the same.
        if isKeyframe { hasAnnouncedTargets = false }
        return isKeyframe ? nil : mark
    }

    /// The receiver lacks the packet with the number `wire`.
    mutating func noteMissing(_ wire: UInt16) { spatial.noteMissing(wire) }

    /// Whether a keyframe repairs better than repeats, reported once; see `SpatialFilter`.
    mutating func takeRefresh() -> Bool { spatial.takeRefresh() }

    // MARK: - Choosing

    /// Whether a layer is sent that no decision knew, reported once.
    @inline(__always)
    mutating func takeSeesMore() -> Bool {
        guard seesMore else { return false }
        seesMore = false
        return true
    }

    /// Looks at the layers, if it is time to, and sets `target`.
    @inline(__always) mutating func look(at track: PublishedTrack, now: MonotonicTime) {
        guard lastLook == .zero || now - lastLook >= Self.lookInterval, !isAwaiting else { return }
        lastLook = now
        if track.layerCount == 1 {
            target = 0
            lookAtSpatialLayers(of: track)
        } else {
            target = choose(among: track, now: now)
        }
        if pending?.layer != target { pending = nil }
    }

    /// The layer that fits the preference best among those being sent; the active one while nothing is.
    private mutating func choose(among track: PublishedTrack, now: MonotonicTime) -> UInt8? {
        var best: (layer: Int, rank: Int)?
        var above: (layer: Int, rank: Int)?
        let preferred = preferredRank(in: track)
        let sent = track.activeLayers(at: now)
        noteOthers(sent & ~known)
        // Where nothing that is known is sent any more, whatever there is.
        let allowed = sent & known != 0 ? sent & known : sent
        for index in 0..<track.layerCount where allowed & 1 << UInt8(index) != 0 {
            let rank = track.rank(ofLayer: index)
            if rank <= preferred {
                if best == nil || rank > best!.rank { best = (index, rank) }
            } else if above == nil || rank < above!.rank {
                above = (index, rank)
            }
        }
        return (best ?? above).map { UInt8($0.layer) } ?? active
    }

    private mutating func noteOthers(_ layers: UInt8) {
        if layers & ~others != 0 { seesMore = true }
        others = layers
    }

    private func preferredRank(in track: PublishedTrack) -> Int {
        let rank =
            switch preference {
            case .best: Int.max
            case .rid(let rid): track.rank(of: rid) ?? .max
            case .height(let height): track.rank(reaching: height) ?? .max
            case .spatial(let rank): rank
            }
        return min(rank, Int(bound))
    }

    /// One stream with layers inside: the preference becomes a cap on spatial layers.
    private mutating func lookAtSpatialLayers(of track: PublishedTrack) {
        let rank = preferredRank(in: track)
        spatial.setTarget(rank >= Int(Int8.max) ? .max : UInt8(clamping: rank))
    }
}
