import Movies
import Primitives

/// The description of audio or video in a `TrackEntry` (RFC 9559 section 5.1.4.1).
struct TrackEntry: Sendable {
    /// The number by which blocks refer to it.
    let number: UInt32
    let isVideo: Bool
    let format: MovieFormat
    /// The time decoded before anything is heard, in nanoseconds: the file's times are later by it.
    let delay: UInt64
    /// The usual time from one sample to the next, in nanoseconds; 0: unknown.
    let duration: UInt64

    /// Whether its samples contain their own duration.
    var isOpus: Bool {
        if case .opus = format { return true }
        return false
    }

    private static let videoType: UInt64 = 1
    private static let audioType: UInt64 = 2
    /// Opus has 6.5 or 80 ms; no codec has a delay of more than a second.
    private static let longestDelay: UInt64 = 1_000_000_000
    private static let longestDuration: UInt64 = 3_600_000_000_000
    private static let longestName = 40

    /// The values of an entry, before its kind is known.
    private struct Fields {
        var number: UInt64 = 0
        var type: UInt64 = 0
        var codec = ""
        var configuration: Range<Int>?
        var delay: UInt64 = 0
        var duration: UInt64 = 0
        var width: UInt64 = 0
        var height: UInt64 = 0
        var channels: UInt64 = 1
        var isEncoded = false
    }

    /// The whole content of `Tracks`; tracks that are neither audio nor video are left out.
    static func all(in bytes: RawSpan, _ content: Range<Int>) throws(MovieFault) -> [TrackEntry] {
        var entries: [TrackEntry] = []
        var walk = ElementWalk(content)
        while let (id, range) = try walk.next(in: bytes) {
            guard id == .trackEntry else { continue }
            guard let entry = try TrackEntry(bytes, range) else { continue }
            guard entries.count < MovieFile.maximumTracks else { throw .tooLarge }
            guard !entries.contains(where: { $0.number == entry.number }) else { throw .malformed }
            entries.append(entry)
        }
        return entries
    }

    private init?(_ bytes: RawSpan, _ content: Range<Int>) throws(MovieFault) {
        let fields = try Self.fields(bytes, content)
        guard fields.type == Self.videoType || fields.type == Self.audioType else { return nil }
        guard let number = UInt32(exactly: fields.number), number > 0 else { throw .malformed }
        guard !fields.isEncoded else { throw .encoded }
        guard let format = Self.format(fields, bytes) else { throw .malformed }
        self.number = number
        self.format = format
        isVideo = fields.type == Self.videoType
        delay = min(fields.delay, Self.longestDelay)
        duration = min(fields.duration, Self.longestDuration)
    }

    private static func fields(_ bytes: RawSpan, _ content: Range<Int>) throws(MovieFault) -> Fields {
        var fields = Fields()
        var walk = ElementWalk(content)
        while let (id, range) = try walk.next(in: bytes) {
            switch id {
            case .trackNumber: fields.number = try number(bytes, range)
            case .trackType: fields.type = try number(bytes, range)
            case .codec: fields.codec = name(bytes, range)
            case .codecPrivate: fields.configuration = range
            case .codecDelay: fields.delay = try number(bytes, range)
            case .defaultDuration: fields.duration = try number(bytes, range)
            case .contentEncodings: fields.isEncoded = true
            case .video, .audio:
                var inner = ElementWalk(range)
                while let (id, range) = try inner.next(in: bytes) {
                    switch id {
                    case .pixelWidth: fields.width = try number(bytes, range)
                    case .pixelHeight: fields.height = try number(bytes, range)
                    case .channels: fields.channels = try number(bytes, range)
                    default: break
                    }
                }
            default: break
            }
        }
        return fields
    }

    private static func number(_ bytes: RawSpan, _ content: Range<Int>) throws(MovieFault) -> UInt64 {
        guard let value = bytes.unsignedInteger(content) else { throw .malformed }
        return value
    }

    /// The codec's name, which appears in the reason why a file is not played.
    private static func name(_ bytes: RawSpan, _ content: Range<Int>) -> String {
        var letters: [UInt8] = []
        for position in content.prefix(longestName) { letters.append(bytes.readUInt8(position)) }
        return String(decoding: letters.filter { (0x21..<0x7f).contains($0) }, as: UTF8.self)
    }

    /// nil if the codec's description violates its format.
    private static func format(_ fields: Fields, _ bytes: RawSpan) -> MovieFormat? {
        switch fields.codec {
        case "A_OPUS":
            // "OpusHead", version, channels (RFC 7845 section 5.1).
            guard let head = fields.configuration, head.count > 9 else {
                return .opus(channels: Int(clamping: fields.channels))
            }
            return .opus(channels: Int(bytes.readUInt8(head.lowerBound + 9)))
        case "V_VP8", "V_VP9", "V_AV1", "V_MPEG4/ISO/AVC":
            guard (1...65_535).contains(fields.width), (1...65_535).contains(fields.height) else { return nil }
            let size = VideoSize(width: Int(fields.width), height: Int(fields.height))
            return video(fields.codec, fields.configuration, bytes, size)
        default: return .other(fields.codec)
        }
    }

    private static func video(
        _ codec: String, _ configuration: Range<Int>?, _ bytes: RawSpan, _ size: VideoSize
    ) -> MovieFormat? {
        switch codec {
        case "V_VP8": return .vp8(size)
        // Its frames contain the profile: most files have no configuration.
        case "V_VP9": return .vp9(profile: 0, size)
        case "V_AV1":
            guard let configuration else { return .av1(profile: 0, configuration: [], size) }
            return MovieFormat(av1: bytes.extracting(configuration), size: size)
        default:
            // Then samples have no length prefixes, as some browsers record.
            guard let configuration else { return .other("\(codec) without CodecPrivate") }
            return MovieFormat(avc: bytes.extracting(configuration), size: size)
        }
    }
}

/// Walks the elements in a range of bytes.
struct ElementWalk {
    private var position: Int
    private let end: Int

    /// A walk over `content`.
    init(_ content: Range<Int>) {
        position = content.lowerBound
        end = content.upperBound
    }

    /// The next element, and where its content is; nil at the end. Throws for an element that does not fit.
    mutating func next(in bytes: RawSpan) throws(MovieFault) -> (ElementID, Range<Int>)? {
        guard position < end else { return nil }
        guard let element = Element(at: position, in: bytes.extracting(0..<end)),
            let content = element.content(from: position, end: end)
        else { throw .malformed }
        position = content.upperBound
        return (element.id, content)
    }
}
