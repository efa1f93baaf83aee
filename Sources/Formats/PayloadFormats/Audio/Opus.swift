import Primitives

/// The first byte of an Opus packet (RFC 6716 section 3.1) and the values derived from it.
///
/// ```text
///  0 1 2 3 4 5 6 7
/// +-+-+-+-+-+-+-+-+
/// | config  |s| c |
/// +-+-+-+-+-+-+-+-+
/// ```
public struct Opus: Sendable, Hashable {
    /// Mode, bandwidth and frame size, 0 to 31.
    public let configuration: Int
    /// Whether the packet is coded in stereo.
    public let isStereo: Bool
    /// Frames in the packet, 1 to 48.
    public let frameCount: Int

    /// Reads the start of a packet; nil when it is empty or violates the rules R1 to R7 about counts.
    public init?(_ payload: RawSpan) {
        guard payload.byteCount > 0 else { return nil }
        let first = payload.readUInt8(0)
        configuration = Int(first >> 3)
        isStereo = first & 4 != 0
        switch first & 3 {
        case 0: frameCount = 1
        case 1, 2: frameCount = 2
        default:
            guard payload.byteCount > 1 else { return nil }
            frameCount = Int(payload.readUInt8(1) & 0x3f)
        }
        // At most 120 ms.
        guard frameCount > 0, sampleCount <= 5760 else { return nil }
    }

    /// Samples of one frame at 48 kHz.
    public var samplesPerFrame: Int {
        switch configuration {
        case 0..<12: configuration & 3 == 3 ? 2880 : 480 << (configuration & 3)  // SILK: 10, 20, 40, 60 ms.
        case 12..<16: 480 << (configuration & 1)  // Hybrid: 10, 20 ms.
        default: 120 << (configuration & 3)  // CELT: 2.5, 5, 10, 20 ms.
        }
    }

    /// Samples of the packet at 48 kHz: by how much timestamps advance (RFC 7587 section 4.1).
    public var sampleCount: Int { frameCount * samplesPerFrame }

    /// Summarises a payload; nil when it is empty. A payload that violates the rules may be encrypted end to end, and is accepted.
    public static func summary(of payload: RawSpan) -> PayloadSummary? {
        payload.byteCount > 0 ? .audio(samples: Opus(payload)?.sampleCount ?? 0) : nil
    }
}
