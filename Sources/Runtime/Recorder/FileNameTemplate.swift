import Glibc

/// A template for the names of a recording's files: text with fields in braces, without `.mp4`.
///
/// A name never leads out of the recording's folder: its text has only letters, digits, `_`, `-` and `.`, no name begins with a dot, and every other character
/// in the value of a field (a participant chooses its identity) becomes `_`.
public struct FileNameTemplate: Sendable, Hashable {
    /// The fields.
    public enum Field: String, Sendable, Hashable, CaseIterable {
        /// The room's name.
        case room
        /// The sid of the recording.
        case recording
        /// The participant's identity; `all` if a file has tracks of several.
        case participant
        /// The sid of the track; or of the participant or room whose tracks are joined.
        case track
        /// The track's source; `all` if a file has several tracks.
        case source
        /// When the file begins, in UTC: `20261125T171500Z`.
        case time
        /// The number of the file, with three digits or more.
        case segment
    }

    private enum Part: Sendable, Hashable {
        case text(String)
        case field(Field)
    }

    /// The template as it was written.
    public let text: String
    private let parts: [Part]

    /// The default template.
    public static let usual = FileNameTemplate(
        text: "{track}.{segment}", parts: [.field(.track), .text("."), .field(.segment)])
    private static let longestTemplate = 128
    private static let longestValue = 48
    /// With the additions to a name (a number if it is taken, `.mp4`, `.new`), this stays below the 255 that file systems permit.
    private static let longestName = 200

    private init(text: String, parts: [Part]) {
        self.text = text
        self.parts = parts
    }

    /// The template in `text`; nil if it is invalid.
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
        // Programs that read files would take a leading dash for an option.
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

    /// The number of a file in the form for names.
    static func digits(_ segment: Int) -> String {
        let number = String(segment)
        return String(repeating: "0", count: max(0, 3 - number.count)) + number
    }

    /// A time in the form for names; `milliseconds` count since 1970.
    static func moment(_ milliseconds: Int64) -> String {
        var seconds = time_t(milliseconds / 1_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 32)
        let count = strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
        return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
