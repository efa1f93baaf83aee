/// H.264 profiles as `profile-level-id` signals them (RFC 6184 section 8.1, table 5).
public enum H264Profile: String, Sendable, Hashable, CaseIterable {
    case constrainedBaseline = "constrained-baseline"
    case baseline
    case main
    case constrainedHigh = "constrained-high"
    case high

    /// The profile of three bytes in hexadecimal: profile_idc, constraint flags, level_idc.
    ///
    ///     profile_idc  constraint_set0…5, 2 zero bits   profile
    ///     42           x1xx0000                         constrained baseline
    ///     4D           1xxx0000                         constrained baseline
    ///     58           11xx0000                         constrained baseline
    ///     42           x0xx0000                         baseline
    ///     58           10xx0000                         baseline
    ///     4D           0x0x0000                         main
    ///     64           00000000                         high
    ///     64           00001100                         constrained high
    ///
    /// nil if the text is malformed or names none of these (extended, 4:2:2, 4:4:4, intra profiles).
    public init?(profileLevelID text: String) {
        guard text.utf8.count == 6, let value = UInt32(text, radix: 16), !text.hasPrefix("+") else { return nil }
        let flags = UInt8(truncatingIfNeeded: value >> 8)
        func matches(_ mask: UInt8, _ bits: UInt8) -> Bool { flags & mask == bits }
        switch value >> 16 {
        case 0x42 where matches(0b0100_1111, 0b0100_0000): self = .constrainedBaseline
        case 0x4d where matches(0b1000_1111, 0b1000_0000): self = .constrainedBaseline
        case 0x58 where matches(0b1100_1111, 0b1100_0000): self = .constrainedBaseline
        case 0x42 where matches(0b0100_1111, 0): self = .baseline
        case 0x58 where matches(0b1100_1111, 0b1000_0000): self = .baseline
        case 0x4d where matches(0b1010_1111, 0): self = .main
        case 0x64 where matches(0b1111_1111, 0): self = .high
        case 0x64 where matches(0b1111_1111, 0b0000_1100): self = .constrainedHigh
        default: return nil
        }
    }

    /// Profiles whose streams every decoder of the other can show. Baseline without constraints has three tools that
    /// constrained baseline lacks (FMO, ASO, redundant slices); no encoder of real-time video uses them, so the two
    /// are one class. Otherwise ffmpeg, which signals baseline, would be invisible to GStreamer, which signals constrained baseline.
    public enum Class: Int, Sendable, Hashable, CaseIterable, Comparable {
        case baseline, main, constrainedHigh, high

        /// Whether `a` has fewer tools.
        public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

        /// The word used in variants.
        var word: String {
            switch self {
            case .baseline: "baseline"
            case .main: "main"
            case .constrainedHigh: "constrained-high"
            case .high: "high"
            }
        }
    }

    /// The class of the profile. A decoder of a class decodes that class and all below it.
    public var decodingClass: Class {
        switch self {
        case .constrainedBaseline, .baseline: .baseline
        case .main: .main
        case .constrainedHigh: .constrainedHigh
        case .high: .high
        }
    }
}

extension FormatParameters {
    /// FFmpeg's WHIP muxer writes its own flag of constrained profiles (0x200) where the byte of constraint flags belongs: the seven digits `42200` and a level
    /// mean constrained baseline, for example of a stream that it copies from a camera.
    mutating func correctProfileLevelID() {
        guard let text = self["profile-level-id"], text.utf8.count == 7, text.hasPrefix("42200") else { return }
        self["profile-level-id"] = "4240" + text.suffix(2)
    }
}

/// The parameters of an H.264 format that determine which decoders can decode it.
struct H264Format: Hashable {
    var profile: H264Profile
    /// 0: single NAL units only; 1: also aggregation and fragments. 2 (interleaved) is refused.
    var packetizationMode: Int

    init(profile: H264Profile, packetizationMode: Int) {
        self.profile = profile
        self.packetizationMode = packetizationMode
    }

    /// nil for a profile or mode that is not supported. Without `profile-level-id` it is baseline (RFC 6184 section 8.1).
    init?(_ parameters: FormatParameters) {
        guard let profile = H264Profile(profileLevelID: parameters["profile-level-id"] ?? "42000a"),
            let mode = Int(parameters["packetization-mode"] ?? "0"), (0...1).contains(mode)
        else { return nil }
        self.profile = profile
        packetizationMode = mode
    }

    /// Equal for formats that may be mixed.
    var variant: String { "\(profile.decodingClass.word)/\(packetizationMode)" }

    /// All variants that a receiver of this format can decode, its own first, then simpler and simpler ones.
    var decodableVariants: [String] {
        let classes = H264Profile.Class.allCases.filter { $0 <= profile.decodingClass }.reversed()
        return classes.flatMap { level in
            (0...packetizationMode).reversed().map { "\(level.word)/\($0)" }
        }
    }
}
