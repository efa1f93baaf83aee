import MediaControl
import Primitives

/// The last packet as the subscriber saw it; the next source continues from it without a jump.
struct OutputTail {
    var timestamp: UInt32 = 0
    /// Extended source timestamp and sequence number, with their layer and format.
    var sourceTimestamp: Int64 = 0
    var sourceSequence: Int64 = 0
    var layer = 0
    var format: UInt8 = 0
    /// The binding of the subscription it belongs to.
    var epoch: UInt8 = 0
    var arrival = MonotonicTime.zero
    var clock: SenderClock?
    var codec = Codec.otherAudio
    /// Numbers of the last frame; nil if the codec or the source had none.
    var picture: UInt16?
    var temporalZero: UInt8?
    var keyIndex: UInt8?
    var frame: UInt16?
    /// The last packet ended its frame.
    var isFrameComplete = true
    /// No packet was sent yet.
    var isEmpty = true
}
