/// The rule for texts that name something or are displayed to people, the same for every edge.
///
/// It refuses characters that change how the text around them reads, or that end a line where names are displayed and logged: control characters (general
/// category Cc), line and paragraph separators (Zl, Zp) and the bidirectional controls of Unicode Standard Annex 9, which let "gpj.exe" read as "exe.jpg".
/// Other format characters stay: scripts and emoji need the joiners. So do private use and unassigned code points, which change nothing around
/// them, and today's unassigned code point is tomorrow's emoji. Surrogates cannot be in a Swift string.
public enum TextRule: Sendable, Hashable, CaseIterable {
    /// Names a room or a participant: it is part of paths, so it can be neither a dot segment nor only white space.
    case identifier
    /// A text about a participant or a track that others see; may be empty.
    case label
    /// An application's own text, with any number of lines, and tabs.
    case metadata

    /// What is wrong with a text.
    public enum Fault: Sendable, Hashable {
        /// Empty, or only white space.
        case blank
        /// `.` or `..`: a path cannot carry it (RFC 3986 section 5.2.4), percent-encoded or not (the URL standard).
        case dotSegment
        /// More than this many characters.
        case tooLong(Int)
        /// A refused code point, and its place among the text's characters, from 1.
        case refused(Unicode.Scalar, position: Int)
    }

    /// The maximum length, in characters as JSON Schema counts them: Unicode code points. Names fit a line; 8,192 of metadata fit a token.
    public var maximumLength: Int { self == .metadata ? 8_192 : 256 }

    /// The first thing that is wrong with `text`.
    public func fault(in text: String) -> Fault? {
        var length = 0
        var isBlank = true
        for scalar in text.unicodeScalars {
            length += 1
            guard length <= maximumLength else { return .tooLong(maximumLength) }
            if refuses(scalar) { return .refused(scalar, position: length) }
            isBlank = isBlank && scalar.properties.isWhitespace
        }
        guard self == .identifier else { return nil }
        if isBlank { return .blank }
        return text == "." || text == ".." ? .dotSegment : nil
    }

    /// Throws the first fault of `text`, which is the value of `field`: "the identity".
    public func check(_ text: String, _ field: String, tooLong: RoomError.Code = .tooLarge) throws(RoomError) {
        guard let fault = fault(in: text) else { return }
        if case .tooLong = fault { throw RoomError(tooLong, "\(field) \(fault)") }
        throw RoomError(.invalidRequest, "\(field) \(fault)")
    }

    private func refuses(_ scalar: Unicode.Scalar) -> Bool {
        let properties = scalar.properties
        switch properties.generalCategory {
        case .control: return self != .metadata || !["\t", "\n", "\r"].contains(scalar)
        case .lineSeparator, .paragraphSeparator: return true
        default: return properties.isBidiControl
        }
    }
}

extension TextRule.Fault: CustomStringConvertible {
    /// The fault, as the end of a sentence that begins with the field.
    public var description: String {
        switch self {
        case .blank: "is empty or only white space"
        case .dotSegment: "is \".\" or \"..\", which cannot be part of a URL path"
        case .tooLong(let most): "has more than \(most) characters"
        case .refused(let scalar, let position):
            "contains \(Self.name(of: scalar)) as character \(position): control characters, line separators and "
                + "bidirectional controls are not allowed"
        }
    }

    /// `U+202E`: at least four digits.
    private static func name(of scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
