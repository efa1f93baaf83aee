/// A session description as written in the text (RFC 8866): lines in their order, not interpreted yet.
///
/// Parsing and writing a description of the usual form gives the same bytes again. `SectionReading` interprets the lines, and `Negotiation` draws the
/// conclusions.
public struct SessionDescription: Sendable, Hashable {
    /// The `o=` line.
    public var origin: Origin
    /// The `s=` line; "-" if it is empty.
    public var name: String
    /// The session's other lines before its attributes: `c=`, `b=`, `t=` and the like.
    public var headers: [DescriptionLine]
    /// The session's `a=` lines.
    public var attributes: [DescriptionAttribute]
    /// The m-sections.
    public var sections: [DescriptionSection]

    /// A description to be written.
    public init(
        origin: Origin, name: String = "-", headers: [DescriptionLine] = [], attributes: [DescriptionAttribute] = [],
        sections: [DescriptionSection] = []
    ) {
        self.origin = origin
        self.name = name
        self.headers = headers
        self.attributes = attributes
        self.sections = sections
    }

    /// The `o=` line (RFC 8866 section 5.2).
    public struct Origin: Sendable, Hashable {
        /// "-" mostly.
        public var username: String
        /// A number; kept as text because clients send arbitrary values.
        public var sessionID: String
        /// Grows with each description of a session.
        public var version: String
        /// Network type, address type and address, for example `IN IP4 127.0.0.1`.
        public var address: String

        /// An origin.
        public init(
            username: String = "-", sessionID: String, version: String, address: String = "IN IP4 127.0.0.1"
        ) {
            self.username = username
            self.sessionID = sessionID
            self.version = version
            self.address = address
        }
    }
}

/// A line other than `a=`: its letter and the text after the "=".
public struct DescriptionLine: Sendable, Hashable {
    /// The ASCII letter, for example of `c`.
    public var letter: UInt8
    /// The rest of the line.
    public var value: String

    /// A line.
    public init(_ letter: Character, _ value: String) {
        self.letter = letter.asciiValue ?? UInt8(ascii: "x")
        self.value = value
    }

    init(letter: UInt8, value: String) {
        self.letter = letter
        self.value = value
    }
}

/// An `a=` line (RFC 8866 section 5.13).
public struct DescriptionAttribute: Sendable, Hashable {
    /// The part before the first ":".
    public var name: String
    /// The part after it; nil if there is no ":".
    public var value: String?

    /// An attribute.
    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }
}

/// An m-section (RFC 8866 section 5.14).
public struct DescriptionSection: Sendable, Hashable {
    /// `audio`, `video`, `application` or any other word.
    public var media: String
    /// 0 usually means rejected.
    public var port: UInt16
    /// For example `UDP/TLS/RTP/SAVPF`.
    public var proto: String
    /// Payload types, or `webrtc-datachannel`.
    public var formats: [String]
    /// Lines before the attributes: `c=`, `b=` and the like.
    public var headers: [DescriptionLine]
    /// The section's `a=` lines.
    public var attributes: [DescriptionAttribute]

    /// A section.
    public init(
        media: String, port: UInt16, proto: String, formats: [String], headers: [DescriptionLine] = [],
        attributes: [DescriptionAttribute] = []
    ) {
        self.media = media
        self.port = port
        self.proto = proto
        self.formats = formats
        self.headers = headers
        self.attributes = attributes
    }
}

extension [DescriptionAttribute] {
    /// The value of the first attribute called `name`; the empty string for a flag.
    public func first(_ name: String) -> String? { first { $0.name == name }.map { $0.value ?? "" } }

    /// The values of all attributes called `name`.
    public func all(_ name: String) -> [String] { compactMap { $0.name == name ? $0.value ?? "" : nil } }

    /// Whether there is an attribute called `name`.
    public func has(_ name: String) -> Bool { contains { $0.name == name } }
}
