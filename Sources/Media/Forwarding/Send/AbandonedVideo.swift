/// The larger video that a switch down leaves behind.
///
/// A switch down happens because the path is full. The smaller video begins with a keyframe, after which the receiver needs nothing older: further frames
/// of the larger video and retransmissions of it only delay the keyframe, or take its place in a full queue.
struct AbandonedVideo {
    /// Only its current frame is still sent, although the smaller video has not arrived yet.
    private(set) var isEnding = false
    /// The first output number after it, extended; nil before the first switch down.
    private var end: Int64?

    init() {}

    /// It ends with its current frame.
    mutating func beginEnding() { isEnding = true }

    /// It continues after all.
    mutating func cancelEnding() { isEnding = false }

    /// The smaller video begins with the output number `number`.
    mutating func abandon(at number: Int64) {
        end = number
        isEnding = false
    }

    /// Whether an output number is from before the last switch down.
    func contains(_ number: Int64) -> Bool { end.map { number < $0 } ?? false }
}
