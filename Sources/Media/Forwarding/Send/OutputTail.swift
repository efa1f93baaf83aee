import MediaControl
import Primitives

/// The subscriber's view of the last packet, from which the next source goes on without a jump.
struct OutputTail {
    var timestamp: UInt32 = 0
    /// Extended source timestamp and sequence number, and the layer and format they are of.
    var sourceTimestamp: Int64 = 0
    var sourceSequence: Int64 = 0
    var layer = 0
    var format: UInt8 = 0
    /// The binding of the subscription it belongs to.
    var epoch: UInt8 = 0
    var arrival = MonotonicTime.zero
    var clock: SenderClock?
    var codec = Codec.otherAudio
    /// Numbers of the last frame; nil where the codec or the source had none.
    var picture: UInt16?
    var temporalZero: UInt8?
    var keyIndex: UInt8?
    var frame: UInt16?
    /// The last packet ended its frame.
    var isFrameComplete = true
    /// Nothing was sent yet.
    var isEmpty = true
}
