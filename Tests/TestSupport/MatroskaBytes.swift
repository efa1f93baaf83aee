/// Composes WebM and Matroska files element by element (RFC 8794, RFC 9559).
public enum MatroskaBytes {
    /// The header of a file of type `docType`.
    public static func header(docType: String = "webm") -> [UInt8] {
        element(0x1a45_dfa3, element(0x4282, Array(docType.utf8)))
    }

    /// A segment with `content`; without a size, as live encoders write it, unless `isKnown`.
    public static func segment(isKnown: Bool = true, _ content: [UInt8]...) -> [UInt8] {
        element(0x1853_8067, content.flatMap { $0 }, isKnown: isKnown)
    }

    /// `Info` with a length of ticks in nanoseconds.
    public static func info(scale: UInt64 = 1_000_000) -> [UInt8] {
        element(0x1549_a966, number(0x2a_d7b1, scale))
    }

    /// `Tracks` with these entries.
    public static func tracks(_ entries: [UInt8]...) -> [UInt8] { element(0x1654_ae6b, entries.flatMap { $0 }) }

    /// The entry of a video.
    public static func video(
        _ codec: String, number track: UInt64 = 1, configuration: [UInt8]? = nil, width: UInt64 = 64,
        height: UInt64 = 48,
        more: [UInt8] = []
    ) -> [UInt8] {
        let size = element(0xe0, number(0xb0, width) + number(0xba, height))
        return entry(track, type: 1, codec, configuration, size + more)
    }

    /// The entry of audio.
    public static func audio(
        _ codec: String = "A_OPUS", number track: UInt64 = 2, configuration: [UInt8]? = nil, channels: UInt64 = 2,
        more: [UInt8] = []
    ) -> [UInt8] {
        entry(track, type: 2, codec, configuration, element(0xe1, number(0x9f, channels)) + more)
    }

    /// An entry of any type.
    public static func entry(
        _ track: UInt64, type: UInt64, _ codec: String, _ configuration: [UInt8]?, _ more: [UInt8]
    ) -> [UInt8] {
        let codecPrivate = configuration.map { element(0x63a2, $0) } ?? []
        return element(
            0xae, number(0xd7, track) + number(0x83, type) + element(0x86, Array(codec.utf8)) + codecPrivate + more)
    }

    /// A cluster whose blocks count from `time` on.
    public static func cluster(at time: UInt64, isKnown: Bool = true, _ blocks: [UInt8]...) -> [UInt8] {
        element(0x1f43_b675, number(0xe7, time) + blocks.flatMap { $0 }, isKnown: isKnown)
    }

    /// A `SimpleBlock`.
    public static func block(
        _ track: UInt8, at time: Int16, isKey: Bool = true, lacing: UInt8 = 0, _ content: [UInt8]
    ) -> [UInt8] { element(0xa3, body(track, time, (isKey ? 0x80 : 0) | lacing << 1, content)) }

    /// A `BlockGroup`, with the duration of its block, and whether it refers to another one.
    public static func group(
        _ track: UInt8, at time: Int16, duration: UInt64? = nil, refersTo reference: Int8? = nil, _ content: [UInt8]
    ) -> [UInt8] {
        let block = element(0xa1, body(track, time, 0, content))
        let length = duration.map { number(0x9b, $0) } ?? []
        return element(0xa0, block + length + (reference.map { element(0xfb, [UInt8(bitPattern: $0)]) } ?? []))
    }

    private static func body(_ track: UInt8, _ time: Int16, _ flags: UInt8, _ content: [UInt8]) -> [UInt8] {
        let moment = UInt16(bitPattern: time)
        return [0x80 | track, UInt8(moment >> 8), UInt8(moment & 0xff), flags] + content
    }

    /// An element that is a number.
    public static func number(_ id: UInt32, _ value: UInt64) -> [UInt8] {
        element(id, Array(bytes(of: value)))
    }

    /// An element with `content`.
    public static func element(_ id: UInt32, _ content: [UInt8], isKnown: Bool = true) -> [UInt8] {
        let size: [UInt8]
        switch content.count {
        case _ where !isKnown: size = [0xff]
        case 0..<127: size = [0x80 | UInt8(content.count)]
        default: size = [0x10 | UInt8(content.count >> 24)] + [16, 8, 0].map { UInt8(content.count >> $0 & 0xff) }
        }
        return Array(bytes(of: UInt64(id))) + size + content
    }

    /// Without leading zeros.
    private static func bytes(of value: UInt64) -> ArraySlice<UInt8> {
        let all = (0..<8).map { UInt8(truncatingIfNeeded: value >> UInt64(56 - 8 * $0)) }
        return all[(all.firstIndex { $0 != 0 } ?? 7)...]
    }
}
