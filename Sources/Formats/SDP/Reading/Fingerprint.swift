/// `a=fingerprint` (RFC 8122 section 5).
public enum Fingerprint {
    /// The 32 bytes of the first SHA-256 fingerprint among `values`; nil where there is none.
    static func sha256(in values: [String], at place: NegotiationError.Place) throws(NegotiationError) -> [UInt8] {
        for value in values {
            let words = value.words
            guard words.count >= 2, words[0].lowercased() == "sha-256" else { continue }
            guard let bytes = parse(words[1]) else { throw NegotiationError(.malformedFingerprint, place) }
            return bytes
        }
        throw NegotiationError(values.isEmpty ? .missingFingerprint : .weakFingerprint, place)
    }

    private static func parse(_ text: Substring) -> [UInt8]? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 32 else { return nil }
        let bytes = parts.compactMap { $0.utf8.count == 2 && $0.first != "+" ? UInt8($0, radix: 16) : nil }
        return bytes.count == 32 ? bytes : nil
    }

    /// As written after `fingerprint:`.
    public static func text(sha256 bytes: [UInt8]) -> String {
        let digits = Array("0123456789ABCDEF")
        return "sha-256 "
            + bytes.map { "\(digits[Int($0 >> 4)])\(digits[Int($0 & 15)])" }.joined(separator: ":")
    }
}
