import PayloadFormats
import Primitives

/// Which temporal layers a subscription forwards: fewer from the next frame on, more where the encoder allows switching up.
///
/// ```text
/// temporal layer   0  2  1  2  0  2  1  2  0      target 2 -> 0 here: only 0 follows, at once
/// may switch up    *        *  *                  target 0 -> 2: first 1, at a frame of it that needs no earlier 1; then 2
/// ```
/// A frame, with all its spatial layers, is judged once, by its timestamp, so that it is never cut.
struct TemporalFilter {
    /// The highest temporal layer being forwarded.
    private(set) var cap: UInt8 = .max
    /// The desired highest temporal layer.
    var target: UInt8 = .max
    /// The timestamp of the frame from which `cap` is in force.
    private(set) var since: Int64 = .min
    /// Timestamp of the newest dropped frame; its packets count as one.
    private(set) var omitted: Int64 = .min

    /// A keyframe begins the stream, or another layer of it: everything is decodable from here.
    mutating func begin(at timestamp: Int64) {
        cap = target
        since = timestamp
    }

    /// Whether the packet belongs to a dropped frame. `isNewFrame`: its timestamp is not that of the last forwarded packet.
    @inline(__always)
    mutating func drops(_ record: UnsafePointer<PacketRecord>, isNewFrame: Bool) -> Bool {
        let layer = UInt8(truncatingIfNeeded: record.pointee.summary.temporalLayer)
        if cap != target, isNewFrame, record.pointee.timestamp != omitted { adjust(layer, record) }
        return layer > cap
    }

    private mutating func adjust(_ layer: UInt8, _ record: UnsafePointer<PacketRecord>) {
        if target < cap || record.pointee.summary.isKeyframe {
            cap = target
        } else if layer == cap &+ 1, record.pointee.summary.isSwitchingPoint {
            cap = layer
        } else {
            return
        }
        since = record.pointee.timestamp
    }

    /// Records that a packet is dropped; true for the first of its frame.
    @inline(__always)
    mutating func omit(_ record: UnsafePointer<PacketRecord>) -> Bool {
        guard record.pointee.timestamp != omitted else { return false }
        omitted = record.pointee.timestamp
        return true
    }
}
