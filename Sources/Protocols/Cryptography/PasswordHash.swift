internal import COpenSSL

/// The stored form of a password: a salted hash that takes time and memory to compute (scrypt, RFC 7914), so that an attacker who reads it can guess only
/// slowly.
public struct PasswordHash: Sendable {
    private let salt: [UInt8]
    private let key: [UInt8]

    /// The hash of `password` with a salt of its own; nil if there is no memory for it. Takes some 40 ms of processor time and 16 MiB (measured with N = 2^14,
    /// r = 8, p = 1, which RFC 7914 section 2 recommends for interactive logins): call it where nothing else waits.
    public init?(_ password: String) {
        var random = SystemRandomNumberGenerator()
        let salt = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        guard let key = Self.derive(password, salt) else { return nil }
        self.salt = salt
        self.key = key
    }

    /// Whether `password` is the right one; as slow as making the hash, and equally slow for a wrong password.
    public func matches(_ password: String) -> Bool {
        guard let other = Self.derive(password, salt) else { return false }
        return CRYPTO_memcmp(key, other, key.count) == 0
    }

    /// A key of 32 bytes (RFC 7914 section 6).
    static func derive(
        _ password: String, _ salt: [UInt8], cost: UInt64 = 1 << 14, blockSize: UInt64 = 8, parallelism: UInt64 = 1,
        length: Int = 32
    ) -> [UInt8]? {
        let password = Array(password.utf8)
        var key = [UInt8](repeating: 0, count: length)
        let status = password.withUnsafeBytes { bytes in
            // An empty array may have no address, which OpenSSL would silently take for "no password".
            EVP_PBE_scrypt(
                bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, salt, salt.count, cost, blockSize,
                parallelism, 64 << 20, &key, key.count)
        }
        return status == 1 ? key : nil
    }
}
