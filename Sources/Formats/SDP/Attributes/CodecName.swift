/// A codec that Martlet can negotiate. Names in SDP are compared without regard to case (RFC 4855 section 3).
public enum CodecName: String, Sendable, Hashable, CaseIterable {
    case opus
    /// RFC 2198 over Opus. `red` over video (ULPFEC) is something else and is never negotiated.
    case red
    case vp8 = "VP8"
    case vp9 = "VP9"
    case h264 = "H264"
    case av1 = "AV1"
    case g722 = "G722"
    case pcmu = "PCMU"
    case pcma = "PCMA"

    /// The codec called `name` in an `a=rtpmap`, in any case; nil for one that is never negotiated.
    public init?(name: some StringProtocol) {
        let lowercased = name.lowercased()
        guard let codec = Self.allCases.first(where: { $0.rawValue.lowercased() == lowercased }) else { return nil }
        self = codec
    }

    /// What it carries.
    public var kind: SectionKind {
        switch self {
        case .opus, .red, .g722, .pcmu, .pcma: .audio
        case .vp8, .vp9, .h264, .av1: .video
        }
    }
}
