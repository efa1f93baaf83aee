import MediaControl
import Primitives

/// Which layer a subscription forwards and which one it waits for.
///
/// The choice follows the subscriber's preference among the layers that are being sent, below what bandwidth allows; see `setBound`.
struct LayerSelector {
    var preference: LayerPreference
    /// The highest rank that may be chosen, by bandwidth.
    private(set) var bound = Int8.max
    /// The layers that the last decision about bandwidth knew, bit by bit; no other is begun before the next one.
    private(set) var known = UInt8.max
    /// Others that were sent at the last look.
    private var others: UInt8 = 0
    /// A layer is sent that no decision knew.
    var seesMore = false
    /// Temporal layers, thinned by bandwidth.
    var temporal = TemporalFilter()
    /// The layer being forwarded; -1 while none is.
    var active: Int8 = -1
    /// The layer that should be forwarded; -1 while nothing is sent.
    var target: Int8 = -1
    /// A keyframe of this layer has begun while the active one was amid a frame; -1 when none has.
    var pending: Int8 = -1
    /// First sequence number of that keyframe.
    var pendingStart: Int64 = 0
    var pendingSince = MonotonicTime.zero
    /// When the target was last looked at; `.zero` asks for a look at once.
    var lastLook = MonotonicTime.zero
    /// Nothing else is begun before the next decision about bandwidth.
    private(set) var isAwaiting = false
    /// The history may be looked at once for a keyframe to begin with, before any packet comes.
    var mayReplay = true
    /// Spatial layers above this are not forwarded (SVC); 0 is the lowest.
    var spatialCap: UInt8 = .max
    /// The cap that holds from the next picture (down) or keyframe (up) on.
    var spatialTarget: UInt8 = .max
    /// The picture from which on `spatialCap` holds, by its timestamp.
    var spatialSince: Int64 = .min
    /// The highest spatial layer that was forwarded since the cap came down last.
    var topSpatial: UInt8 = 0
    /// The output number at which spatial layers were given up; nil when the next keyframe has come.
    var refreshBefore: Int64?
    /// Packets from before that are missing at the receiver.
    var wantsRefresh = false

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

    mutating func setPreference(_ preference: LayerPreference) {
        self.preference = preference
        lastLook = .zero
        mayReplay = true
    }

    /// The most that bandwidth allows; nil for everything. Temporal layers follow at once, spatial ones at a keyframe.
    mutating func setBound(spatial: Int?, temporal layers: Int?, known: UInt8 = .max) {
        self.known = known
        others = 0
        bound = spatial.map { Int8(clamping: $0) } ?? .max
        temporal.target = layers.map { UInt8(clamping: $0) } ?? .max
        lastLook = .zero
        if isAwaiting { mayReplay = true }
        isAwaiting = false
    }

    /// What begins next waits for `setBound`; what is being forwarded goes on.
    mutating func awaitBound() {
        isAwaiting = true
        target = active
        pending = -1
    }

    /// Another track is bound: nothing of the old choice holds.
    mutating func reset() {
        active = -1
        target = -1
        pending = -1
        lastLook = .zero
        mayReplay = true
        isAwaiting = false
        spatialCap = .max
        spatialTarget = .max
        topSpatial = 0
        refreshBefore = nil
        wantsRefresh = false
        hasAnnouncedTargets = false
    }

    /// Forgets the active layer: the next packet comes from a keyframe.
    mutating func stop() {
        active = -1
        pending = -1
        lastLook = .zero
        mayReplay = true
    }

    /// The layers that hold now.
    @inline(__always) var caps: LayerCaps { LayerCaps(spatial: spatialCap, temporal: temporal.cap) }

    /// The subscriber has received an announcement that some decode targets are not there, since the last keyframe.
    var hasAnnouncedTargets = false

    /// Whether a keyframe must come before the preference can be followed.
    var needsKeyframe: Bool {
        (target != active && pending != target) || (active >= 0 && spatialTarget > spatialCap)
    }

    /// Looks at the layers, if it is time to, and sets `target`.
    @inline(__always) mutating func look(at track: PublishedTrack, now: MonotonicTime) {
        guard lastLook == .zero || now - lastLook >= Self.lookInterval, !isAwaiting else { return }
        lastLook = now
        if track.layerCount == 1 {
            target = 0
            lookAtSpatialLayers(of: track)
        } else {
            target = Int8(choose(among: track, now: now) ?? -1)
        }
        if pending != target { pending = -1 }
    }

    /// The layer that fits the preference best among those being sent; the active one while nothing is.
    private mutating func choose(among track: PublishedTrack, now: MonotonicTime) -> Int? {
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
        return (best ?? above)?.layer ?? (active >= 0 ? Int(active) : nil)
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
        spatialTarget = rank >= Int(Int8.max) ? .max : UInt8(clamping: rank)
    }
}
