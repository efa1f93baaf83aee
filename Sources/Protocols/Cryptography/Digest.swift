internal import COpenSSL

/// Digests and keyed digests over byte arrays.
public enum Digest {
    /// SHA-256 (FIPS 180-4); 32 bytes.
    public static func sha256(_ message: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 0
        let status = EVP_Digest(message, message.count, &digest, &length, EVP_sha256(), nil)
        precondition(status == 1 && length == 32, "OpenSSL has no SHA-256")
        return digest
    }

    /// MD5 (RFC 1321), 16 bytes, which object storage services use for entity tags: it proves nothing against an attacker. nil if OpenSSL does not permit it
    /// (FIPS).
    public static func md5(_ message: [UInt8]) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 16)
        var length: UInt32 = 0
        return EVP_Digest(message, message.count, &digest, &length, EVP_md5(), nil) == 1 ? digest : nil
    }

    /// HMAC-SHA1 (RFC 2104); 20 bytes. STUN and TURN credentials need it (RFC 8489 section 14.5).
    public static func hmacSHA1(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        hmac(EVP_sha1(), length: 20, key: key, message)
    }

    /// HMAC-SHA256 (RFC 2104, RFC 6234); 32 bytes.
    public static func hmacSHA256(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        hmac(EVP_sha256(), length: 32, key: key, message)
    }

    private static func hmac(_ kind: OpaquePointer?, length: Int, key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: length)
        var written: UInt32 = 0
        // An empty Swift array may hand OpenSSL a null key, which it reads as "keep the former key": lend it a byte.
        let lent = key.isEmpty ? [0] : key
        let result = HMAC(kind, lent, Int32(key.count), message, message.count, &digest, &written)
        precondition(result != nil && written == length, "OpenSSL has no such HMAC")
        return digest
    }
}
