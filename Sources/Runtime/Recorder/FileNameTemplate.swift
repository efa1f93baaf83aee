import Glibc

/// How files of a recording are named: text with fields in braces, without `.mp4`.
///
/// A name never leads out of the recording's folder: text has letters, digits, `_`, `-` and `.` only, no name begins with a dot, and whatever else stands in the
/// value of a field (a participant chooses its identity) becomes `_`.
public struct FileNameTemplate: Sendable, Hashable {
    /// What can stand in braces.
    public enum Field: String, Sendable, Hashable, CaseIterable {
        /// The room's name.
        case room
        /// The sid of the recording.
        case recording
        /// The participant's identity; `all` where a file has those of several.
        case participant
        /// The sid of the track; of the participant or room whose tracks are joined.
        case track
        /// The track's source; `all` where a file has several tracks.
        case source
        /// When the file begins, in UTC: `20261125T171500Z`.
        case time
        /// The number of the file, in three digits or more.
        case segment
    }

    private enum Part: Sendable, Hashable {
        case text(String)
        case field(Field)
    }

    /// As it was written.
    public let text: String
    private let parts: [Part]

    /// What files are called where nothing else is said.
    public static let usual = FileNameTemplate(
        text: "{track}.{segment}", parts: [.field(.track), .text("."), .field(.segment)])
    private static let longestTemplate = 128
    private static let longestValue = 48
    /// With what is added to a name (a number where it is taken, `.mp4`, `.new`), file systems take 255.
    private static let longestName = 200

    private init(text: String, parts: [Part]) {
        self.text = text
        self.parts = parts
    }

    /// The template that `text` is; nil where it is none.
    public init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.longestTemplate, !text.hasPrefix(".") else { return nil }
        var parts: [Part] = []
        var rest = text[...]
        while let first = rest.first {
            if first == "{" {
                guard let end = rest.firstIndex(of: "}"),
                    let field = Field(rawValue: String(rest.dropFirst().prefix(upTo: end)))
                else { return nil }
                parts.append(.field(field))
                rest = rest[rest.index(after: end)...]
            } else {
                let plain = rest.prefix { $0 != "{" }
                guard plain.utf8.allSatisfy({ Self.isPlain($0) || $0 == UInt8(ascii: ".") }) else { return nil }
                parts.append(.text(String(plain)))
                rest = rest[plain.endIndex...]
            }
        }
        self.init(text: text, parts: parts)
    }

    /// The name for these values, without `.mp4`.
    func name(_ value: (Field) -> String) -> String {
        var name = ""
        for part in parts {
            switch part {
            case .text(let text): name += text
            case .field(let field): name += Self.cleaned(value(field))
            }
        }
        name = String(name.prefix(Self.longestName))
        // A leading dash is an option to the programs that read files.
        return name.hasPrefix("-") || name.hasPrefix(".") ? "_" + name.dropFirst() : name
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
            || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
    }

    private static func cleaned(_ value: String) -> String {
        let kept = value.utf8.prefix(longestValue).map { isPlain($0) ? $0 : UInt8(ascii: "_") }
        return kept.isEmpty ? "_" : String(decoding: kept, as: UTF8.self)
    }

    /// The number of a file as names have it.
    static func digits(_ segment: Int) -> String {
        let number = String(segment)
        return String(repeating: "0", count: max(0, 3 - number.count)) + number
    }

    /// A moment as names have it; `milliseconds` count since 1970.
    static func moment(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 32)
        let count = strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
        return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
