internal import COpenSSL
internal import Primitives

/// The records of an association after its handshake (RFC 6347 section 4.1): it sends and receives application data and alerts, and receives repeats
/// of the peer's last flight.
///
/// OpenSSL could handle them, but its object takes 39 kB per peer: buffers that `SSL_MODE_RELEASE_BUFFERS` does not release for DTLS, the handshake's
/// messages, the peer's certificate. Under AES-128-GCM (RFC 5288), which nearly every client negotiates, 40 bytes of keys, a number and a replay
/// window are enough.
///
/// ```text
/// |type| version | epoch |  sequence number  | length | explicit nonce |encrypted | tag |
///   1       2        2              6             2            8                     16
/// ```
struct EstablishedRecords {
    /// The meaning of a relevant record.
    enum Word: Hashable {
        /// close_notify or a fatal alert.
        case end
        /// The peer's Finished: it has not received our last flight.
        case finished
        case nothing
    }

    /// The parts of a record other than its text.
    static let overhead = headerLength + RecordCipher.nonceLength + RecordCipher.tagLength

    private static let headerLength = 13
    private static let alert: UInt8 = 21, handshake: UInt8 = 22, applicationData: UInt8 = 23
    /// Above the number of any record that OpenSSL wrote under the same keys: Finished and perhaps an alert.
    private static let firstNumber: UInt64 = 16

    private let local: RecordCipher.Key, remote: RecordCipher.Key
    /// Epoch 1 and the number of the next record; also its explicit nonce, so no nonce is used twice.
    private var nextNumber = 1 << 48 | EstablishedRecords.firstNumber
    private var replays = ReplayWindow()

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
        let client = RecordCipher.Key(key: block[..<16], salt: block[32..<36])
        let server = RecordCipher.Key(key: block[16..<32], salt: block[36..<40])
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

    /// The meaning of the authentic records of a datagram, `end` if one of them ends the association; application data is appended to `data`.
    mutating func read(
        _ datagram: UnsafeRawBufferPointer, _ cipher: RecordCipher, into data: inout ApplicationData
    ) -> Word {
        var rest = datagram[...], word = Word.nothing
        while rest.count >= Self.headerLength {
            let start = rest.startIndex
            let length = Int(rest[start + 11]) << 8 | Int(rest[start + 12])
            guard rest.count >= Self.headerLength + length else { break }
            let end = start + Self.headerLength + length
            switch read(record: UnsafeRawBufferPointer(rebasing: rest[start..<end]), cipher, into: &data) {
            case .end: return .end
            case .finished: word = .finished
            case .nothing: break
            }
            rest = rest[end...]
        }
        return word
    }

    private mutating func read(
        record: UnsafeRawBufferPointer, _ cipher: RecordCipher, into data: inout ApplicationData
    ) -> Word {
        let length = record.count - Self.overhead, type = record[0]
        // DTLS 1.2, epoch 1.
        guard (Self.alert...Self.applicationData).contains(type), record[1] == 0xfe, record[2] == 0xfd, record[3] == 0,
            record[4] == 1, (1...ApplicationData.longestPacket).contains(length), let room = data.reserve(length),
            let text = room.baseAddress
        else { return .nothing }
        let number = record.bytes.readUInt64(3)
        // A repeated Finished has the number of a lost one, or its own: it is answered at most twelve times.
        guard type == Self.handshake || replays.isNew(number), open(record, length, into: text, cipher) else {
            return .nothing
        }
        replays.accept(number)
        switch type {
        case Self.applicationData:
            data.commit(length)
            return .nothing
        case Self.handshake: return room[0] == UInt8(SSL3_MT_FINISHED) ? .finished : .nothing
        default:
            // Level and description (RFC 5246 section 7.2).
            guard length >= 2 else { return .nothing }
            return room[0] == UInt8(SSL3_AL_FATAL) || room[1] == UInt8(SSL_AD_CLOSE_NOTIFY) ? .end : .nothing
        }
    }

    private func open(
        _ record: UnsafeRawBufferPointer, _ length: Int, into text: UnsafeMutableRawPointer, _ cipher: RecordCipher
    ) -> Bool {
        guard let start = record.baseAddress else { return false }
        var additional = Self.additional(number: record.bytes.readUInt64(3), type: record[0], length)
        let sealed = UnsafeRawBufferPointer(rebasing: record[(Self.headerLength + RecordCipher.nonceLength)...])
        return withUnsafeBytes(of: &additional) { additional in
            guard let additional = additional.baseAddress else { return false }
            return cipher.open(
                sealed, into: text, key: remote, explicit: start + Self.headerLength, additional: additional)
        }
    }

    /// Epoch and number, type, version, and the length of the text (RFC 5246 section 6.2.3.3): 13 bytes.
    private static func additional(number: UInt64, type: UInt8, _ length: Int) -> (UInt64, UInt64) {
        let rest = UInt64(type) << 56 | 0xfefd << 40 | UInt64(length) << 24
        return (number.bigEndian, rest.bigEndian)
    }

    // MARK: - Sending

    /// Writes a record of application data into `room`; nil when it does not fit, or a library call fails.
    mutating func seal(
        _ packet: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer, _ cipher: RecordCipher
    ) -> Int? {
        seal(packet, type: Self.applicationData, into: room, cipher)
    }

    /// Writes the record of close_notify.
    mutating func closeNotify(into room: UnsafeMutableRawBufferPointer, _ cipher: RecordCipher) -> Int? {
        let text: [UInt8] = [UInt8(SSL3_AL_WARNING), UInt8(SSL_AD_CLOSE_NOTIFY)]
        return text.withUnsafeBytes { seal($0, type: Self.alert, into: room, cipher) }
    }

    private mutating func seal(
        _ text: UnsafeRawBufferPointer, type: UInt8, into room: UnsafeMutableRawBufferPointer, _ cipher: RecordCipher
    ) -> Int? {
        let length = text.count + Self.overhead
        guard room.count >= length, let start = room.baseAddress else { return nil }
        let number = nextNumber
        nextNumber += 1
        room.write(type, at: 0)
        room.write(UInt16(0xfefd), at: 1)
        room.write(number, at: 3)
        room.write(UInt16(length - Self.headerLength), at: 11)
        room.write(number, at: Self.headerLength)
        var additional = Self.additional(number: number, type: type, text.count)
        let isSealed = withUnsafeBytes(of: &additional) { additional in
            guard let additional = additional.baseAddress else { return false }
            return cipher.seal(
                text, into: start + Self.headerLength + RecordCipher.nonceLength, key: local,
                explicit: start + Self.headerLength, additional: additional)
        }
        return isSealed ? length : nil
    }
}
