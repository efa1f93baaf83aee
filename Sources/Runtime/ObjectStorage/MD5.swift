internal import COpenSSL

/// MD5 (RFC 1321), of which storages make their entity tags.
enum MD5 {
    /// 16 bytes; nil where OpenSSL is built or told not to have it.
    static func digest(of message: [UInt8]) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 16)
        var length: UInt32 = 0
        return EVP_Digest(message, message.count, &digest, &length, EVP_md5(), nil) == 1 ? digest : nil
    }
}
