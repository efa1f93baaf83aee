internal import MediaControl
internal import Primitives

/// Whether a track's packets arrive, and in which format.
struct TrackProgress {
    /// The format of current packets; nil before the first.
    private(set) var format: PayloadFormat?
    /// The payload type of `format`.
    private var payloadType: UInt8?
    /// No packets for longer than `TrackActivity.limit`.
    private(set) var isSilent = false
    /// When packets arrived again after the last silence.
    private var resumed: MonotonicTime?
    /// A sender that repeats BYE counts as silent at most once in this time, because all members are notified.
    private static let shortest = TimeSpan.seconds(1)

    /// When it may count as silent at once, because its sender sent a BYE.
    var mayFallSilentAt: MonotonicTime { resumed.map { $0 + Self.shortest } ?? .zero }

    var hasStarted: Bool { payloadType != nil }

    /// Whether a packet with this payload type changes nothing.
    @inline(__always) func continues(with payloadType: UInt8) -> Bool { self.payloadType == payloadType && !isSilent }

    /// A packet of `format` has arrived; returns whether it is the first one, and whether it is the first after silence.
    mutating func begin(
        _ format: PayloadFormat, payloadType: UInt8, at now: MonotonicTime
    ) -> (isFirst: Bool, isResumed: Bool) {
        let change = (isFirst: !hasStarted, isResumed: isSilent)
        if isSilent { resumed = now }
        self.format = format
        self.payloadType = payloadType
        isSilent = false
        return change
    }

    mutating func fallSilent() { isSilent = true }
}
