internal import COpenSSL
internal import Primitives

/// AES-128-GCM for the records of all associations of a worker: one OpenSSL context for each direction, given the association's key for each record:
/// peers keep no context, and none is allocated for a record.
final class RecordCipher {
    static let nonceLength = 8, tagLength = 16

    private let sealing: OpaquePointer, opening: OpaquePointer

    /// nil when OpenSSL has no memory.
    init?() {
        guard let sealing = EVP_CIPHER_CTX_new() else { return nil }
        guard let opening = EVP_CIPHER_CTX_new() else {
            EVP_CIPHER_CTX_free(sealing)
            return nil
        }
        self.sealing = sealing
        self.opening = opening
        EVP_EncryptInit_ex(sealing, EVP_aes_128_gcm(), nil, nil, nil)
        EVP_DecryptInit_ex(opening, EVP_aes_128_gcm(), nil, nil, nil)
    }

    deinit {
        EVP_CIPHER_CTX_free(sealing)
        EVP_CIPHER_CTX_free(opening)
    }

    /// Key and salt of one direction.
    struct Key {
        var key: (UInt64, UInt64) = (0, 0)
        var salt: UInt32 = 0

        /// 16 bytes of key and 4 of salt.
        init(key: ArraySlice<UInt8>, salt: ArraySlice<UInt8>) {
            withUnsafeMutableBytes(of: &self.key) { $0.copyBytes(from: key) }
            withUnsafeMutableBytes(of: &self.salt) { $0.copyBytes(from: salt) }
        }
    }

    /// Initialises a context with the key and the nonce: salt and the 8 explicit bytes (RFC 5288 section 3).
    private static func prepare(
        _ context: OpaquePointer, _ key: Key, _ explicit: UnsafeRawPointer,
        _ start: (OpaquePointer?, OpaquePointer?, OpaquePointer?, UnsafePointer<UInt8>?, UnsafePointer<UInt8>?) -> Int32
    ) -> Bool {
        var nonce = (key.salt, UInt32(0), UInt32(0))
        withUnsafeMutableBytes(of: &nonce) {
            $0[4...].copyBytes(from: UnsafeRawBufferPointer(start: explicit, count: 8))
        }
        return withUnsafeBytes(of: key.key) { key in
            withUnsafeBytes(of: &nonce) { nonce in
                start(
                    context, nil, nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self),
                    nonce.baseAddress?.assumingMemoryBound(to: UInt8.self)) == 1
            }
        }
    }

    /// Encrypts `text` into `output`, followed by the tag; `additional` has 13 bytes. False when a library call fails.
    func seal(
        _ text: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer, key: Key, explicit: UnsafeRawPointer,
        additional: UnsafeRawPointer
    ) -> Bool {
        var written: Int32 = 0
        let bytes = output.assumingMemoryBound(to: UInt8.self)
        return Self.prepare(sealing, key, explicit, EVP_EncryptInit_ex)
            && EVP_EncryptUpdate(sealing, nil, &written, additional.assumingMemoryBound(to: UInt8.self), 13) == 1
            && EVP_EncryptUpdate(
                sealing, bytes, &written, text.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(text.count)) == 1
            && EVP_EncryptFinal_ex(sealing, bytes + text.count, &written) == 1
            && EVP_CIPHER_CTX_ctrl(
                sealing, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagLength), bytes + text.count) == 1
    }

    /// Decrypts `sealed` (text and tag) into `output`, which has room for the text; false when the record is not authentic.
    func open(
        _ sealed: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer, key: Key, explicit: UnsafeRawPointer,
        additional: UnsafeRawPointer
    ) -> Bool {
        guard let start = sealed.baseAddress else { return false }
        var written: Int32 = 0
        let length = sealed.count - Self.tagLength, bytes = output.assumingMemoryBound(to: UInt8.self)
        return Self.prepare(opening, key, explicit, EVP_DecryptInit_ex)
            && EVP_DecryptUpdate(opening, nil, &written, additional.assumingMemoryBound(to: UInt8.self), 13) == 1
            && EVP_DecryptUpdate(
                opening, bytes, &written, start.assumingMemoryBound(to: UInt8.self), Int32(length)) == 1
            && EVP_CIPHER_CTX_ctrl(
                opening, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagLength), UnsafeMutableRawPointer(mutating: start + length)
            )
                == 1
            && EVP_DecryptFinal_ex(opening, bytes + length, &written) == 1
    }
}
