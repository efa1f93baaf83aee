// Small text helpers; SDP's structure is ASCII, so everything works only on spaces and tabs.

extension Substring {
    /// Without leading and trailing spaces and tabs.
    var trimmed: Substring {
        var slice = self
        while let first = slice.utf8.first, first == 0x20 || first == 0x09 { slice = slice.dropFirst() }
        while let last = slice.utf8.last, last == 0x20 || last == 0x09 { slice = slice.dropLast() }
        return slice
    }
}

extension String {
    /// The words of a line.
    var words: [Substring] { split(whereSeparator: { $0 == " " || $0 == "\t" }) }
}

extension UInt8 {
    /// ALPHA / DIGIT / "+" / "/" (RFC 8839's ice-char).
    var isICECharacter: Bool { isAlphanumeric || self == UInt8(ascii: "+") || self == UInt8(ascii: "/") }

    /// ALPHA / DIGIT.
    var isAlphanumeric: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }

    /// A character of RFC 8866's token.
    var isTokenCharacter: Bool {
        switch self {
        case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x30...0x39, 0x41...0x5a, 0x5e...0x7e: true
        default: false
        }
    }
}
