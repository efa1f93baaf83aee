import Cryptography

/// STUN messages whose attributes anybody may choose, with MESSAGE-INTEGRITY and FINGERPRINT that are right (RFC 8489 sections
/// 14.5 and 14.7): what a hostile but authorised client can send.
enum SignedSTUN {
    /// A message of `type` with `attributes` between USERNAME (where there is one) and the digests.
    static func message(
        type: UInt16, transaction: [UInt8], username: String?, attributes: some Collection<UInt8>, password: String
    ) -> [UInt8] {
        var bytes = [UInt8(type >> 8), UInt8(type & 0xff), 0, 0, 0x21, 0x12, 0xa4, 0x42]
        bytes += (transaction + [UInt8](repeating: 0, count: 12)).prefix(12)
        if let username { append(0x0006, Array(username.utf8), to: &bytes) }
        bytes += attributes
        while bytes.count % 4 != 0 { bytes.append(0) }
        setLength(bytes.count - 20 + 24, &bytes)
        append(0x0008, Digest.hmacSHA1(key: Array(password.utf8), bytes), to: &bytes)
        setLength(bytes.count - 20 + 8, &bytes)
        let check = crc32(bytes) ^ 0x5354_554e
        append(0x8028, (0..<4).map { UInt8(truncatingIfNeeded: check >> (24 - 8 * $0)) }, to: &bytes)
        return bytes
    }

    private static func append(_ type: UInt16, _ value: [UInt8], to bytes: inout [UInt8]) {
        bytes += [UInt8(type >> 8), UInt8(type & 0xff), UInt8(value.count >> 8), UInt8(value.count & 0xff)] + value
        while bytes.count % 4 != 0 { bytes.append(0) }
    }

    private static func setLength(_ length: Int, _ bytes: inout [UInt8]) {
        bytes[2] = UInt8(length >> 8 & 0xff)
        bytes[3] = UInt8(length & 0xff)
    }

    /// CRC-32 of ISO 3309.
    private static func crc32(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~UInt32(0)) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { value, _ in value >> 1 ^ (value & 1 == 1 ? 0xedb8_8320 : 0) }
        }
    }
}
