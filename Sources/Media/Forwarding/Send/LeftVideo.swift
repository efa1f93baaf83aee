/// The larger video that a switch down leaves behind.
///
/// A switch down happens because the path is full. The smaller video begins with a keyframe, and with that the receiver needs nothing from before: frames
/// of the larger video that are sent meanwhile, and repeats of it, only delay the keyframe, or take its place in a queue that drops what it cannot hold.
struct LeftVideo {
    /// Nothing but the frame on its way is sent of it, although the smaller video has not come yet.
    private(set) var isEnding = false
    /// The first output number behind it, extended; nil before the first switch down.
    private var end: Int64?

    init() {}

    /// It ends with the frame on its way.
    mutating func beginEnding() { isEnding = true }

    /// It goes on after all.
    mutating func goOn() { isEnding = false }

    /// The smaller video begins with the output number `number`.
    mutating func leave(at number: Int64) {
        end = number
        isEnding = false
    }

    /// Whether an output number is from before the last switch down.
    func contains(_ number: Int64) -> Bool { end.map { number < $0 } ?? false }
}
