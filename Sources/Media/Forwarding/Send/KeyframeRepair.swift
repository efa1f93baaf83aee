/// When a keyframe repairs a subscriber's video better than retransmissions: if these cannot arrive any more, or would only delay the following frames.
///
/// libwebrtc's receivers wait three seconds for a missing frame before they request a keyframe themselves (`VideoReceiveStream2`'s longest wait;
/// measured: Chromium showed nothing for 3.2 s after 1.2 s without network).
struct KeyframeRepair {
    /// The output number of the last keyframe's first packet: a decoder needs nothing older. nil before the first.
    private var start: Int64?
    /// The same number of the last frame.
    private var frameStart: Int64?
    /// The output number after which spatial layers were dropped; nil after the next keyframe.
    private var droppedAfter: Int64?
    private var isWanted = false

    /// A frame begins with the output number `number`. With H.264 only its later packets may show that it is a keyframe: parameter sets and delimiters also
    /// precede other frames.
    @inline(__always)
    mutating func frameBegins(at number: Int64) { frameStart = number }

    /// The last frame is a keyframe.
    @inline(__always)
    mutating func keyframeHasCome() {
        start = frameStart
        droppedAfter = nil
    }

    /// Layers were dropped for lack of bandwidth; the packet `number` was the last one before that. If packets of the frames until then are missing, their
    /// retransmissions are large and the path is full (measured: VP9 L3T3_KEY froze for three seconds); a keyframe of only the lower layers is small.
    mutating func layersDropped(after number: Int64) { droppedAfter = number }

    /// The receiver lacks the packet `number`. `isGone`: it was sent, but is no longer stored.
    mutating func noteMissing(_ number: Int64, isGone: Bool) {
        if isGone, let start, number >= start { isWanted = true }
        if let last = droppedAfter, number <= last {
            droppedAfter = nil
            isWanted = true
        }
    }

    /// Whether a keyframe is needed, reported once.
    mutating func consume() -> Bool {
        defer { isWanted = false }
        return isWanted
    }
}
