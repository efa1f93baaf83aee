import MP4
import Primitives

/// One coded frame as stored in a file.
struct EncodedFrame {
    var bytes: [UInt8]
    var timestamp: UInt32
    /// When its first packet arrived.
    var arrival: MonotonicTime
    /// The format from this keyframe on; nil for frames that are not keyframes.
    var entry: SampleEntry?

    var isKeyframe: Bool { entry != nil }
}
