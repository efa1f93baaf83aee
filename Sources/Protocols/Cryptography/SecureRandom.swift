/// The system's generator for secrets: keys, passwords, session ids.
///
/// Also a `RandomNumberGenerator`, so that standard library algorithms can draw from it.
public struct SecureRandom: RandomNumberGenerator, Sendable {
    public init() {}

    /// 64 bits that nobody can foretell.
    public mutating func next() -> UInt64 {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }

    /// `count` unpredictable bytes.
    public static func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// `length` characters of the alphabet that ICE allows (RFC 8839 section 5.4: ALPHA / DIGIT / "+" / "/").
    ///
    /// Six bits a character: a ufrag of 8 has 48 bits, a password of 24 has 144 (RFC 8445 section 5.3 asks for 24 and
    /// 128).
    public static func iceString(length: Int) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        return String(decoding: bytes(length).map { alphabet[Int($0 & 63)] }, as: UTF8.self)
    }
}
