internal import COpenSSL

/// The records of an association after its handshake (RFC 6347 section 4.1): it sends only close_notify, and receives only that and repeats of the
/// peer's last flight.
///
/// OpenSSL could handle them, but its object takes 39 kB per peer: buffers that `SSL_MODE_RELEASE_BUFFERS` does not release for DTLS, the handshake's
/// messages, the peer's certificate. Under AES-128-GCM (RFC 5288), which nearly every client negotiates, 40 bytes of keys are enough.
///
/// ```text
/// |type| version | epoch |  sequence number  | length | explicit nonce |encrypted | tag |
///   1       2        2              6             2            8                     16
/// ```
struct EstablishedRecords {
    /// What a relevant record means.
    enum Word: Hashable {
        /// close_notify or a fatal alert.
        case end
        /// The peer's Finished: it has not received our last flight.
        case finished
        case nothing
    }

    private static let headerLength = 13, nonceLength = 8, tagLength = 16
    /// An alert has 2 bytes, Finished 24 with its header; longer records are ignored.
    private static let longestText = 32
    private static let alert: UInt8 = 21, handshake: UInt8 = 22
    /// Far above the number of any record that OpenSSL wrote under the same keys.
    private static let closingNumber: [UInt8] = [0, 1, 0, 0, 0, 1, 0, 0]

    /// Key and salt of each direction.
    private let local: (key: [UInt8], salt: [UInt8]), remote: (key: [UInt8], salt: [UInt8])

    /// Takes over the keys of a finished handshake; nil under other ciphers.
    init?(_ ssl: OpaquePointer?, isClient: Bool) {
        guard let ssl, let cipher = SSL_get_current_cipher(ssl), let session = SSL_get_session(ssl) else { return nil }
        switch SSL_CIPHER_get_protocol_id(cipher) {
        case 0xc02b, 0xc02f: break  // ECDHE with ECDSA or RSA, AES-128-GCM, SHA-256
        default: return nil
        }
        var secret = [UInt8](repeating: 0, count: 48), randoms = [UInt8](repeating: 0, count: 64)
        defer { for index in secret.indices { secret[index] = 0 } }
        let length = SSL_SESSION_get_master_key(session, &secret, secret.count)
        let isWhole = randoms.withUnsafeMutableBufferPointer { randoms in
            SSL_get_server_random(ssl, randoms.baseAddress, 32) == 32
                && SSL_get_client_random(ssl, randoms.baseAddress! + 32, 32) == 32
        }
        guard length == secret.count, isWhole,
            let block = Self.expand(secret, Array("key expansion".utf8) + randoms, length: 40)
        else { return nil }
        // RFC 5246 section 6.3: client's key, server's key, client's salt, server's salt.
        let client = (key: Array(block[..<16]), salt: Array(block[32..<36]))
        let server = (key: Array(block[16..<32]), salt: Array(block[36..<40]))
        (local, remote) = isClient ? (client, server) : (server, client)
    }

    /// P_SHA256 (RFC 5246 section 5).
    private static func expand(_ secret: [UInt8], _ seed: [UInt8], length: Int) -> [UInt8]? {
        var output: [UInt8] = [], link = seed
        while output.count < length {
            guard let next = authenticate(secret, link), let part = authenticate(secret, next + seed) else {
                return nil
            }
            link = next
            output += part
        }
        return Array(output[..<length])
    }

    private static func authenticate(_ key: [UInt8], _ text: [UInt8]) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 32)
        return HMAC(EVP_sha256(), key, Int32(key.count), text, text.count, &digest, nil) == nil ? nil : digest
    }

    // MARK: - Receiving

    /// What the authentic records of a datagram mean; `end` if one of them does.
    func read(_ datagram: UnsafeRawBufferPointer) -> Word {
        var rest = datagram[...], word = Word.nothing
        while rest.count >= Self.headerLength {
            let start = rest.startIndex
            let length = Int(rest[start + 11]) << 8 | Int(rest[start + 12])
            guard rest.count >= Self.headerLength + length else { break }
            let end = start + Self.headerLength + length
            switch read(record: UnsafeRawBufferPointer(rebasing: rest[start..<end])) {
            case .end: return .end
            case .finished: word = .finished
            case .nothing: break
            }
            rest = rest[end...]
        }
        return word
    }

    private func read(record: UnsafeRawBufferPointer) -> Word {
        let length = record.count - Self.headerLength - Self.nonceLength - Self.tagLength
        // DTLS 1.2, epoch 1.
        guard record[0] == Self.alert || record[0] == Self.handshake, record[1] == 0xfe, record[2] == 0xfd,
            record[3] == 0, record[4] == 1, (2...Self.longestText).contains(length), let text = open(record, length)
        else { return .nothing }
        if record[0] == Self.handshake { return text[0] == UInt8(SSL3_MT_FINISHED) ? .finished : .nothing }
        // Level and description (RFC 5246 section 7.2).
        return text[0] == UInt8(SSL3_AL_FATAL) || text[1] == UInt8(SSL_AD_CLOSE_NOTIFY) ? .end : .nothing
    }

    private func open(_ record: UnsafeRawBufferPointer, _ length: Int) -> [UInt8]? {
        guard let context = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }
        let nonce = Array(record[Self.headerLength..<(Self.headerLength + Self.nonceLength)])
        let sealed = Array(record[(Self.headerLength + Self.nonceLength)...][..<(record.count - Self.tagLength)])
        var tag = Array(record[(record.count - Self.tagLength)...])
        var text = [UInt8](repeating: 0, count: length), written: Int32 = 0
        let header = Self.additional(number: Array(record[3..<11]), type: record[0], length)
        guard EVP_DecryptInit_ex(context, EVP_aes_128_gcm(), nil, remote.key, remote.salt + nonce) == 1,
            EVP_DecryptUpdate(context, nil, &written, header, Int32(header.count)) == 1,
            EVP_DecryptUpdate(context, &text, &written, sealed, Int32(sealed.count)) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagLength), &tag) == 1
        else { return nil }
        var end: UInt8 = 0
        return EVP_DecryptFinal_ex(context, &end, &written) == 1 ? text : nil
    }

    /// Epoch and number, type, version, and the length of the text (RFC 5246 section 6.2.3.3).
    private static func additional(number: [UInt8], type: UInt8, _ length: Int) -> [UInt8] {
        number + [type, 0xfe, 0xfd, 0, UInt8(length)]
    }

    // MARK: - Sending

    /// The record of close_notify. It is the only one written here, so no nonce is used twice; nil when a library call fails.
    func closeNotify() -> [UInt8]? {
        guard let context = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }
        let text: [UInt8] = [UInt8(SSL3_AL_WARNING), UInt8(SSL_AD_CLOSE_NOTIFY)]
        // OpenSSL counts its nonces up from a random start.
        var nonce = [UInt8](repeating: 0, count: Self.nonceLength), written: Int32 = 0
        var sealed = [UInt8](repeating: 0, count: text.count), tag = [UInt8](repeating: 0, count: Self.tagLength)
        let header = Self.additional(number: Self.closingNumber, type: Self.alert, text.count)
        var end: UInt8 = 0
        guard RAND_bytes(&nonce, Int32(nonce.count)) == 1,
            EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nil, local.key, local.salt + nonce) == 1,
            EVP_EncryptUpdate(context, nil, &written, header, Int32(header.count)) == 1,
            EVP_EncryptUpdate(context, &sealed, &written, text, Int32(text.count)) == 1,
            EVP_EncryptFinal_ex(context, &end, &written) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagLength), &tag) == 1
        else { return nil }
        let length = UInt8(nonce.count + sealed.count + tag.count)
        return [Self.alert, 0xfe, 0xfd] + Self.closingNumber + [0, length] + nonce + sealed + tag
    }
}
