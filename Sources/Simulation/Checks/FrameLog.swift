public import Primitives

/// Which frames a decoder could have shown: complete, and without a gap since a keyframe.
public struct FrameLog: Sendable {
    /// Frames shown so far.
    public private(set) var decoded = 0
    /// Of these, keyframes.
    public private(set) var keyframes = 0
    /// When the first and the last were shown.
    public private(set) var firstTime: MonotonicTime?
    public private(set) var lastTime: MonotonicTime?
    /// The longest time between two frames shown so far.
    private var longestPause = TimeSpan.zero
    /// When it was subscribed to.
    private let start: MonotonicTime
    /// The layer shown, by rank of the stream or in it, each time it changed.
    public private(set) var layers: [(time: MonotonicTime, layer: Int)] = []

    private struct Frame {
        var received = 0
        var count: Int
        var isKey = false
        var layer: Int?
        /// Its first packet.
        var first: PacketFacts?
    }

    /// Incomplete frames, by the number of their first packet.
    private var frames: [Int64: Frame] = [:]
    /// The number from which on nothing has been shown yet; nil before the first keyframe.
    private(set) var next: Int64?
    /// Checks what frames refer to against what was shown.
    var references = ReferenceChecker()

    init(at now: MonotonicTime) { start = now }

    /// The beginning of a keyframe has arrived, from which later frames can continue.
    private(set) var hasBegun = false

    /// The longest time without a new frame from the first one on, and until `now`: a freeze that has not ended counts. A view that never showed
    /// a frame has been frozen since it was subscribed to.
    public func longestFreeze(until now: MonotonicTime) -> TimeSpan { max(longestPause, now - (lastTime ?? start)) }

    /// Takes a new packet.
    mutating func add(_ packet: PacketFacts, number: Int64, at now: MonotonicTime) {
        hasBegun = hasBegun || packet.startsKeyframe
        let index = Int64(packet.trace?.index ?? 0)
        let begin = number - index
        if let next, begin < next { return }
        var frame = frames[begin] ?? Frame(count: Int(packet.trace?.count ?? 1))
        frame.received += 1
        frame.isKey = frame.isKey || packet.startsKeyframe
        if index == 0 { frame.first = packet }
        // A frame of several spatial layers is shown when the last one has arrived, in that layer's size.
        if packet.marker, let trace = packet.trace { frame.layer = max(trace.origin.layer, packet.spatialLayer) }
        frames[begin] = frame
        guard frame.received == frame.count else { return }
        // A complete keyframe starts anew, whatever is missing before it.
        if frame.isKey, next.map({ $0 < begin }) ?? true { next = begin }
        show(at: now)
        if frames.count > 512, let next { frames = frames.filter { $0.key >= next } }
    }

    private mutating func show(at now: MonotonicTime) {
        while let begin = next, let frame = frames[begin], frame.received == frame.count {
            frames[begin] = nil
            next = begin + Int64(frame.count)
            if let first = frame.first { references.check(first, endsPicture: frame.layer != nil) }
            guard let layer = frame.layer else { continue }
            decoded += 1
            if frame.isKey { keyframes += 1 }
            if let lastTime { longestPause = max(longestPause, now - lastTime) }
            firstTime = firstTime ?? now
            lastTime = now
            if layers.last?.layer != layer { layers.append((now, layer)) }
        }
    }
}
