public import Primitives

/// An operator's request for a capture.
public struct CaptureRequest: Sendable, Hashable {
    /// How long a capture may last.
    public static let durations = 1...300
    /// How large its file may be, in bytes.
    public static let sizes = 10_000...64_000_000

    public var duration: TimeSpan
    public var maxBytes: Int
    /// RTP payloads too; otherwise RTP headers and whole RTCP packets.
    public var keepsPayload: Bool
    /// Who requests it, for the event log.
    public var by: String

    /// A request of an operator.
    public init(duration: TimeSpan, maxBytes: Int, keepsPayload: Bool, by: String) {
        self.duration = duration
        self.maxBytes = maxBytes
        self.keepsPayload = keepsPayload
        self.by = by
    }
}
