extension NegotiatedFormat {
    /// The H.264 parameter sets of the remote's stream (`sprop-parameter-sets`, RFC 6184 section 8.1), each a NAL unit. Some encoders do not send them in
    /// packets. Empty if there are none, or the text is not base64.
    public var parameterSets: [[UInt8]] {
        guard codec == .h264, let text = parameters["sprop-parameter-sets"] else { return [] }
        let sets = text.split(separator: ",").map { Self.bytes(base64: $0.trimmed) }
        return sets.contains(nil) ? [] : sets.compactMap { $0 }
    }

    /// Bytes from base64 (RFC 4648 section 4), with or without padding; nil for anything else.
    private static func bytes(base64 text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for character in text.utf8 where character != UInt8(ascii: "=") {
            guard let digit = base64Digit(character) else { return nil }
            bits = bits << 6 | digit
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        }
        return bytes
    }

    private static func base64Digit(_ character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
