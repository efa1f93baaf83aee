extension SessionDescription {
    /// Parses a description. Lines may end with CR LF or LF; unknown letters are kept, unknown attributes too.
    public init(parsing text: String, limits: SDPLimits = SDPLimits()) throws(NegotiationError) {
        guard text.utf8.count <= limits.maximumBytes else { throw NegotiationError(.tooLong) }
        var reader = LineReader(bytes: Array(text.utf8), limits: limits)
        guard let version = try reader.next(), version.letter == UInt8(ascii: "v"), version.value == "0" else {
            throw NegotiationError(.unsupportedVersion, .line(1))
        }
        self.init(origin: Origin(sessionID: "", version: ""))
        while let line = try reader.next() {
            switch line.letter {
            case UInt8(ascii: "m"):
                guard sections.count < limits.maximumSections else {
                    throw NegotiationError(.tooManySections, .line(reader.number))
                }
                guard let section = DescriptionSection(parsing: line.value) else {
                    throw NegotiationError(.malformedSection, .line(reader.number))
                }
                sections.append(section)
            case UInt8(ascii: "o") where sections.isEmpty:
                guard let parsed = Origin(parsing: line.value) else {
                    throw NegotiationError(.malformedLine, .line(reader.number))
                }
                origin = parsed
            case UInt8(ascii: "s") where sections.isEmpty: name = line.value
            default:
                append(line)
                guard attributes.count <= limits.maximumSessionAttributes else {
                    throw NegotiationError(.tooManyLines, .line(reader.number))
                }
            }
        }
        guard !origin.sessionID.isEmpty else { throw NegotiationError(.malformedLine, .line(2)) }
    }

    private mutating func append(_ line: DescriptionLine) {
        let last = sections.count - 1
        if line.letter == UInt8(ascii: "a") {
            let attribute = DescriptionAttribute(parsing: line.value)
            if last < 0 { attributes.append(attribute) } else { sections[last].attributes.append(attribute) }
        } else if last < 0 {
            headers.append(line)
        } else {
            sections[last].headers.append(line)
        }
    }
}

extension SessionDescription.Origin {
    init?(parsing value: String) {
        let words = value.words
        guard words.count >= 3 else { return nil }
        self.init(
            username: String(words[0]), sessionID: String(words[1]), version: String(words[2]),
            address: words.dropFirst(3).joined(separator: " "))
    }
}

extension DescriptionAttribute {
    init(parsing line: String) {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else {
            self.init(line)
            return
        }
        self.init(String(line[..<colon]), String(line[line.utf8.index(after: colon)...]))
    }
}

extension DescriptionSection {
    /// `m=<media> <port>[/<count>] <proto> <fmt> …`
    init?(parsing value: String) {
        let words = value.words
        guard words.count >= 4, let port = UInt16(words[1].prefix { $0 != "/" }) else { return nil }
        self.init(
            media: String(words[0]), port: port, proto: String(words[2]), formats: words.dropFirst(3).map(String.init))
    }
}

/// Splits a text into lines, within the limits.
struct LineReader {
    let bytes: [UInt8]
    let limits: SDPLimits
    /// Number of the line read last, from 1.
    private(set) var number = 0
    private var position = 0

    init(bytes: [UInt8], limits: SDPLimits) {
        self.bytes = bytes
        self.limits = limits
    }

    /// The next line that is not empty; nil at the end.
    mutating func next() throws(NegotiationError) -> DescriptionLine? {
        while position < bytes.count {
            let start = position
            var end = start
            while end < bytes.count, bytes[end] != 0x0a { end += 1 }
            position = end + 1
            number += 1
            if end > start, bytes[end - 1] == 0x0d { end -= 1 }
            guard number <= limits.maximumLines else { throw NegotiationError(.tooManyLines, .line(number)) }
            guard end - start <= limits.maximumLineBytes else { throw NegotiationError(.lineTooLong, .line(number)) }
            if end == start { continue }
            return try line(bytes[start..<end])
        }
        return nil
    }

    private func line(_ line: ArraySlice<UInt8>) throws(NegotiationError) -> DescriptionLine {
        let letter = line[line.startIndex]
        guard line.count >= 2, (0x61...0x7a).contains(letter), line[line.startIndex + 1] == UInt8(ascii: "="),
            !line.contains(where: { $0 < 0x20 && $0 != 0x09 })
        else { throw NegotiationError(.malformedLine, .line(number)) }
        return DescriptionLine(letter: letter, value: String(decoding: line.dropFirst(2), as: UTF8.self))
    }
}
