/// Percent-encoding of paths and queries (RFC 3986 section 2.1). Hostile input: nil for anything invalid.
public enum PercentCoding {
    /// Our longest path has six parts, our longest query five: more only cost time.
    private static let maximumSegments = 32
    private static let maximumParameters = 64

    /// The decoded parts between the slashes of an absolute path.
    static func segments(ofPath path: Substring) -> [String]? {
        var segments: [String] = []
        let parts = path.dropFirst().split(
            separator: "/", maxSplits: maximumSegments, omittingEmptySubsequences: false)
        guard parts.count <= maximumSegments else { return nil }
        for part in parts {
            guard let segment = decode(part, plusIsSpace: false) else { return nil }
            segments.append(segment)
        }
        return segments == [""] ? [] : segments
    }

    /// `a=b&c=d`, decoded; if a name appears twice, the first value counts.
    static func query(_ text: Substring) -> [String: String]? {
        var result: [String: String] = [:]
        let pairs = text.split(separator: "&", maxSplits: maximumParameters)
        guard pairs.count <= maximumParameters else { return nil }
        for pair in pairs {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(sides[0], plusIsSpace: true),
                let value = decode(sides.count > 1 ? sides[1] : "", plusIsSpace: true)
            else { return nil }
            if result[name] == nil { result[name] = value }
        }
        return result
    }

    /// Decoded text; nil for an invalid escape, a NUL, or bytes that are not UTF-8.
    static func decode(_ text: Substring, plusIsSpace: Bool) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.next().flatMap(digit), let low = rest.next().flatMap(digit) else { return nil }
                guard high << 4 | low != 0 else { return nil }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
            case 0: return nil
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    /// A name as one part of a path (RFC 3986 section 3.3): unreserved characters are not encoded.
    public static func encode(_ name: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        let bytes = name.utf8.flatMap { byte -> [UInt8] in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: [byte]
            default: [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xf)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
