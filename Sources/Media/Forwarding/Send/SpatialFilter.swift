import PayloadFormats
import Primitives

/// Which spatial layers of the only stream a subscription forwards (SVC): fewer from the next frame on, more from the next keyframe on, where every
/// layer can be decoded from.
struct SpatialFilter {
    /// Layers above this are not forwarded; 0 is the lowest.
    private(set) var cap: UInt8 = .max
    /// The cap that should hold.
    private(set) var target: UInt8 = .max
    /// The frame from which on `cap` holds, by its timestamp.
    private(set) var since: Int64 = .min
    /// The highest spatial layer that was forwarded since the cap came down last.
    private var top: UInt8 = 0
    /// The output number at which layers were given up; nil when the next keyframe has come.
    private var refreshBefore: Int64?
    /// Packets from before that are missing at the receiver.
    private var wantsRefresh = false

    /// A keyframe is needed before the target holds.
    var needsKeyframe: Bool { target > cap }

    mutating func setTarget(_ target: UInt8) { self.target = target }

    /// A keyframe begins the stream, or another one: everything may be decoded from here.
    mutating func begin(at timestamp: Int64) {
        cap = target
        since = timestamp
    }

    /// Whether the packet belongs to a layer that is not forwarded. `isNewFrame`: its timestamp is not that of the last forwarded packet; `highest`
    /// is the highest output number.
    @inline(__always)
    mutating func drops(_ record: UnsafePointer<PacketRecord>, isNewFrame: Bool, highest: Int64) -> Bool {
        let isKeyframe = record.pointee.summary.isKeyframe
        if cap != target, isNewFrame, target < cap || isKeyframe {
            // Layers are given up with the next frame, if there are any.
            if target < top {
                top = target
                refreshBefore = highest
            }
            cap = target
            since = record.pointee.timestamp
        }
        let layer = record.pointee.summary.spatialLayer
        if layer > Int(cap) { return true }
        if layer > Int(top) { top = UInt8(clamping: layer) }
        if refreshBefore != nil, isNewFrame, isKeyframe { refreshBefore = nil }
        return false
    }

    /// The receiver lacks the packet with the number `wire`.
    mutating func noteMissing(_ wire: UInt16) {
        guard let last = refreshBefore, UInt16(truncatingIfNeeded: last) &- wire < 0x8000 else { return }
        refreshBefore = nil
        wantsRefresh = true
    }

    /// Whether a keyframe repairs better than repeats, reported once: layers were given up for want of bandwidth, and of the frames
    /// before that packets are missing. Their repeats are large, the path is full, and libwebrtc waits three seconds for them before it asks
    /// for a keyframe itself (measured: VP9 L3T3_KEY froze for so long); that of the lower layers alone is small.
    mutating func takeRefresh() -> Bool {
        defer { wantsRefresh = false }
        return wantsRefresh
    }
}
