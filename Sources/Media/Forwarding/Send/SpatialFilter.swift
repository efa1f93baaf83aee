import PayloadFormats
import Primitives

/// Which spatial layers of the only stream a subscription forwards (SVC): fewer from the next frame on, more from the next keyframe on, at which every layer
/// becomes decodable. If nothing was left out since the last keyframe, as in a stream without layers, more may follow at once.
struct SpatialFilter {
    /// Layers above this are not forwarded; 0 is the lowest.
    private(set) var cap: UInt8 = .max
    /// The desired cap.
    private(set) var target: UInt8 = .max
    /// The timestamp of the frame from which `cap` is in force.
    private(set) var since: Int64 = .min
    /// The highest spatial layer forwarded since the cap was last lowered.
    private var top: UInt8 = 0
    /// Packets above the cap were left out since the last keyframe, and later packets may refer to them.
    private var leavesOut = false

    /// The target needs a keyframe first.
    var needsKeyframe: Bool { target > cap && leavesOut }

    mutating func setTarget(_ target: UInt8) { self.target = target }

    /// A keyframe begins the stream, or another one: every layer is decodable from here.
    mutating func begin(at timestamp: Int64) {
        cap = target
        since = timestamp
        leavesOut = false
    }

    /// Whether the packet belongs to a layer that is not forwarded. `isNewFrame`: its timestamp is not that of the last forwarded packet; `highest`
    /// is the highest output number. `repair` is notified of keyframes and dropped layers.
    @inline(__always)
    mutating func drops(
        _ record: UnsafePointer<PacketRecord>, isNewFrame: Bool, highest: Int64, repair: inout KeyframeRepair
    ) -> Bool {
        let isKeyframe = record.pointee.summary.isKeyframe
        // H.264 keyframes may begin with parameter sets or a delimiter in separate packets, which do not belong to an IDR picture.
        let begins = record.pointee.summary.startsKeyframe && record.pointee.summary.spatialLayer == 0
        if begins || isNewFrame && isKeyframe { leavesOut = false }
        if cap != target, target < cap ? isNewFrame : begins || isNewFrame && !leavesOut {
            // Layers are dropped with the next frame, if there are any.
            if target < top {
                top = target
                repair.layersDropped(after: highest)
            }
            cap = target
            since = record.pointee.timestamp
        }
        let layer = record.pointee.summary.spatialLayer
        if layer > Int(cap) {
            leavesOut = true
            return true
        }
        if layer > Int(top) { top = UInt8(clamping: layer) }
        if isNewFrame { repair.frameBegins(at: highest + 1) }
        if isKeyframe { repair.keyframeHasCome() }
        return false
    }
}
