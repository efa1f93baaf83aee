extension SessionDescription {
    /// The description's text, lines ended by CR LF.
    public var text: String {
        var lines = DescriptionText()
        lines.append("v", "0")
        lines.append("o", "\(origin.username) \(origin.sessionID) \(origin.version) \(origin.address)")
        lines.append("s", name)
        lines.append(headers, attributes)
        for section in sections {
            lines.append(
                "m", "\(section.media) \(section.port) \(section.proto) \(section.formats.joined(separator: " "))")
            lines.append(section.headers, section.attributes)
        }
        return lines.text
    }
}

/// Text under construction. No value can inject a line: control characters become underscores.
struct DescriptionText {
    private(set) var text = ""

    mutating func append(_ letter: Character, _ value: String) {
        text.append(letter)
        text.append("=")
        appendSafely(value)
        text.append("\r\n")
    }

    mutating func append(_ headers: [DescriptionLine], _ attributes: [DescriptionAttribute]) {
        for line in headers { append(Character(Unicode.Scalar(line.letter)), line.value) }
        append(attributes)
    }

    mutating func append(_ attributes: [DescriptionAttribute]) {
        for attribute in attributes {
            append("a", attribute.value.map { "\(attribute.name):\($0)" } ?? attribute.name)
        }
    }

    private mutating func appendSafely(_ value: String) {
        if value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 }) {
            text.append(String(decoding: value.utf8.map { $0 < 0x20 ? UInt8(ascii: "_") : $0 }, as: UTF8.self))
        } else {
            text.append(value)
        }
    }
}
