/// Texts of random letters and digits, for ids.
public enum RandomText {
    /// 62 characters, which every protocol permits in an id.
    public static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

    /// `count` random characters; each carries 5.95 bits.
    public static func text(_ count: Int, using random: inout some RandomNumberGenerator) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        for _ in 0..<count { bytes.append(alphabet[Int.random(in: 0..<alphabet.count, using: &random)]) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
