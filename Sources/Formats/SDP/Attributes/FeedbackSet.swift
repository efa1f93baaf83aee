/// RTCP feedback and reports that a section or a format negotiates (RFC 4585, 5104, 3611).
///
/// The raw values are those of `FeedbackKinds` in MediaControl, which SDP does not import.
public struct FeedbackSet: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Generic NACK.
    public static let nack = Self(rawValue: 1)
    /// Picture loss indication.
    public static let pli = Self(rawValue: 2)
    /// Full intra request.
    public static let fir = Self(rawValue: 4)
    /// Transport-wide congestion control feedback.
    public static let transportCC = Self(rawValue: 8)
    /// Receiver estimated maximum bitrate.
    public static let remb = Self(rawValue: 16)
    /// XR receiver reference time reports, `a=rtcp-xr:rcvr-rtt`.
    public static let receiverReferenceTime = Self(rawValue: 32)
    /// Everything above.
    public static let all = Self(rawValue: 63)

    /// Values of `a=rtcp-fb` in the order in which they are written.
    static let wireValues: [(FeedbackSet, String)] = [
        (.transportCC, "transport-cc"), (.remb, "goog-remb"), (.fir, "ccm fir"), (.nack, "nack"), (.pli, "nack pli"),
    ]

    /// The feedback that an `a=rtcp-fb` value after the payload type names; empty for an unknown one.
    init(wire value: String) {
        let lowercased = value.lowercased()
        self = Self.wireValues.first { $0.1 == lowercased }?.0 ?? []
    }
}
