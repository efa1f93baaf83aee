public import Primitives

/// Whether a track and its layers are being sent. Silence is not an error: cameras stop in the background, calls are
/// interrupted.
public enum TrackActivity {
    /// Without packets for this long, a track is silent. Two frame intervals of the slowest healthy sender, one frame in 2 s, and
    /// within the 2 to 5 s that a subscriber may wait for the notification. Audio with DTX is sent every 400 ms.
    public static let limit = TimeSpan.seconds(4)
    /// A simulcast layer counts as stopped earlier, when another layer of the track continues: after this long …
    static let layerLimit = TimeSpan.seconds(1)
    /// … and this many frames of the other. At 1 frame/s that takes 15 s, but then `limit` decides.
    static let layerFrames: UInt64 = 15
}

extension PublishedTrack {
    /// Whether the layer is being sent now.
    public func isActive(layer index: Int, at now: MonotonicTime) -> Bool {
        let layer = self.layer(index)
        guard layer.pointee.lastMedia != .zero, !layer.pointee.hasEnded else { return false }
        let quiet = now - layer.pointee.lastMedia
        if quiet < TrackActivity.layerLimit { return true }
        if quiet >= TrackActivity.limit { return false }
        for other in 0..<layerCount where other != index {
            if self.layer(other).pointee.framesSince(layer.pointee.lastMedia) >= TrackActivity.layerFrames {
                return false
            }
        }
        return true
    }

    /// Bitmap of the layers that are being sent now.
    func activeLayers(at now: MonotonicTime) -> UInt8 {
        var layers: UInt8 = 0
        for index in 0..<layerCount where isActive(layer: index, at: now) { layers |= 1 << UInt8(index) }
        return layers
    }

    /// The active layers whose rate is known.
    func measuredLayers(at now: MonotonicTime) -> UInt8 {
        let active = activeLayers(at: now)
        var layers: UInt8 = 0
        for index in 0..<layerCount
        where active & 1 << UInt8(index) != 0 && !isJoining(layer: index, among: active, at: now) {
            layers |= 1 << UInt8(index)
        }
        return layers
    }

    /// Whether the layer has just begun while another was sent before: its rate is still unknown.
    private func isJoining(layer index: Int, among active: UInt8, at now: MonotonicTime) -> Bool {
        guard let began = layer(index).pointee.rates.began, now - began < Self.measuringTime,
            announced.bitsPerSecond(stream: index, upTo: 0) == nil
        else { return false }
        for other in 0..<layerCount where active & 1 << UInt8(other) != 0 {
            if let start = layer(other).pointee.rates.began, began - start >= Self.measuringTime { return true }
        }
        return false
    }

    /// Minimum time to measure a rate. Short, because on most links the layer fits and a subscriber waits for it: its first keyframe makes it look
    /// larger, an encoder that ramps up makes it look smaller (Chromium's first second), and the next evaluation corrects either.
    public static var measuringTime: TimeSpan { .milliseconds(250) }

    /// Position of a layer by quality, 0 the smallest: by frame size where both are known, else by the rid's usual meaning, else
    /// by the order of the SDP, which is not reliable by itself (`h;q` and `f;h;q` were seen).
    public func rank(ofLayer index: Int) -> Int {
        var rank = 0
        for other in 0..<layerCount where other != index && isSmaller(other, than: index) { rank += 1 }
        return rank
    }

    /// The layer with the given rank.
    public func layer(ofRank rank: Int) -> Int {
        for index in 0..<layerCount where self.rank(ofLayer: index) == rank { return index }
        return 0
    }

    private func isSmaller(_ a: Int, than b: Int) -> Bool {
        let areaA = layer(a).pointee.size.width * layer(a).pointee.size.height
        let areaB = layer(b).pointee.size.width * layer(b).pointee.size.height
        if areaA != areaB, areaA > 0, areaB > 0 { return areaA < areaB }
        let hintA = ridHint(ofLayer: a) ?? a, hintB = ridHint(ofLayer: b) ?? b
        return hintA == hintB ? a < b : hintA < hintB
    }

    /// The rank that the common names of layers imply.
    private func ridHint(ofLayer index: Int) -> Int? {
        switch layer(index).pointee.sources.rid {
        case "q", "l", "lo", "low", "0": 0
        // Half the size next to q and f; high next to m and l.
        case "h": (0..<layerCount).contains { layer($0).pointee.sources.rid == "m" } ? 2 : 1
        case "m", "mid", "medium", "1": 1
        case "f", "hi", "high", "2": 2
        default: nil
        }
    }

    /// When the track becomes silent if nothing more arrives.
    var silenceDeadline: MonotonicTime {
        guard !isSilent, hasStarted else { return .distantFuture }
        var last: MonotonicTime?
        for index in 0..<layerCount where !layer(index).pointee.hasEnded {
            last = max(last ?? .zero, layer(index).pointee.lastMedia)
        }
        // All layers sent a BYE: at once.
        return last.map { $0 + TrackActivity.limit } ?? mayFallSilentAt
    }
}

extension ReceiveLayer {
    /// Frames that began after `moment`; an estimate from the rate, which is sufficient here.
    fileprivate func framesSince(_ moment: MonotonicTime) -> UInt64 {
        guard lastMedia > moment else { return 0 }
        return UInt64(max(0, frames.framesPerSecond(at: lastMedia) * (lastMedia - moment).seconds))
    }
}
