internal import MediaControl

/// Whether a track's packets come, and in which format.
struct TrackProgress {
    /// The format of current packets; nil before the first.
    private(set) var format: PayloadFormat?
    /// The payload type of `format`.
    private var payloadType: UInt8?
    /// No packets for longer than `TrackActivity.limit`.
    private(set) var isSilent = false

    var hasStarted: Bool { payloadType != nil }

    /// Whether a packet with this payload type changes nothing.
    @inline(__always) func continues(with payloadType: UInt8) -> Bool { self.payloadType == payloadType && !isSilent }

    /// A packet of `format` has come; whether it is the first one, and whether it is the first after silence.
    mutating func begin(_ format: PayloadFormat, payloadType: UInt8) -> (isFirst: Bool, isResumed: Bool) {
        let change = (isFirst: !hasStarted, isResumed: isSilent)
        self.format = format
        self.payloadType = payloadType
        isSilent = false
        return change
    }

    mutating func fallSilent() { isSilent = true }
}
