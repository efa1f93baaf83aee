internal import CSRTP
internal import Primitives

/// Whole packets whose protected form is known, checked at each start.
///
/// libsrtp2's self tests check only a cipher; these check the packets as they are sent: key derivation, nonce, order of fields, tag. The counter mode key is
/// that of RFC 3711 appendix B.3; the packets are the reference packets of libsrtp's test driver, those of AES-256 computed independently of it.
enum KnownAnswers {
    struct Case {
        let profile: SRTPProfile
        let key: String
        let rtp: String
        let rtcp: String
    }

    static let clearRTP = "800f1234decafbadcafebabe" + String(repeating: "ab", count: 16)
    static let clearRTCP = "81c8000bcafebabe" + String(repeating: "ab", count: 16)

    static let cases = [
        Case(
            profile: .aes128CM80,
            key: "e1f97a0d3e018be0d64fa32c06de41390ec675ad498afeebb6960b3aabe6",
            rtp: "800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb",
            rtcp: "81c8000bcafebabe7128035be487b9bdbef89041f977a5a880000001993e08cd54d6c1230798"),
        Case(
            profile: .aeadAES128GCM,
            key: "000102030405060708090a0b0c0d0e0fa0a1a2a3a4a5a6a7a8a9aaab",
            rtp: "800f1234decafbadcafebabec5002ede04cfdd2eb91159e0880aa06ed2976826f796b201df3131a127e8a392",
            rtcp: "81c8000bcafebabec98b8b5df0392a55852b6c21ac8e7025c52c6fbea2b3b446ea31123ba88ce61e80000001"),
        Case(
            profile: .aeadAES256GCM,
            key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fa0a1a2a3a4a5a6a7a8a9aaab",
            rtp: "800f1234decafbadcafebabe0af7f21e8a90bdad7a425c9c31ed4bb1d90238917e7390a2793500e1681acaea",
            rtcp: "81c8000bcafebabe8abfafa780070a90e80f9161cf4aac081ed93aaa53c15b0f3ed1a3b984167b0380000001"),
    ]

    /// The first case that fails, as an error.
    static func check() -> SRTPLibrary.StartError? {
        for known in cases where !holds(known) { return .knownAnswer(name: known.profile.name) }
        return nil
    }

    /// Whether two kernels produce the same bytes for texts of every length up to two blocks beyond a full packet's, each under its own IV, decrypt
    /// what the other encrypted, and refuse a wrong tag: errors of vector code depend on lengths.
    static func agree(_ one: UnsafePointer<csrtp_gcm_kernel>, _ other: UnsafePointer<csrtp_gcm_kernel>) -> Bool {
        let key = (0..<16).map { UInt8($0 * 17) }
        guard let first = KeyedKernel(one, key: key, seals: true),
            let second = KeyedKernel(other, key: key, seals: true),
            let opener = KeyedKernel(one, key: key, seals: false)
        else { return false }
        var random = RandomSource(seed: 0x5eed)
        for length in Array(0...320) + [1_050, 1_100, 1_171, 1_172, 1_173, 1_200, 1_452, 1_484] {
            let text = (0..<length).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let header = (0..<(12 + 4 * (length % 9))).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let iv = (0..<12).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            guard let sealed = second.seal(iv, header, text), sealed == first.seal(iv, header, text) else {
                return false
            }
            var forged = sealed
            forged[length + length % 16] ^= 0x10
            guard opener.open(iv, header, sealed) == text, opener.open(iv, header, forged) == nil else { return false }
        }
        return true
    }

    /// One keyed state of a kernel, for comparing.
    private struct KeyedKernel: ~Copyable {
        let kernel: UnsafePointer<csrtp_gcm_kernel>
        let state: UnsafeMutableRawPointer

        init?(_ kernel: UnsafePointer<csrtp_gcm_kernel>, key: [UInt8], seals: Bool) {
            let state = UnsafeMutableRawPointer.allocate(byteCount: max(64, kernel.pointee.state_size), alignment: 64)
            guard kernel.pointee.key(state, key, seals ? 1 : 0) == 1 else {
                state.deallocate()
                return nil
            }
            self.kernel = kernel
            self.state = state
        }

        deinit {
            kernel.pointee.wipe(state)
            state.deallocate()
        }

        /// Text and tag; nil on failure.
        func seal(_ iv: [UInt8], _ header: [UInt8], _ text: [UInt8]) -> [UInt8]? {
            var output = text + [UInt8](repeating: 0, count: 16)
            let done = output.withUnsafeMutableBufferPointer { buffer in
                kernel.pointee.seal(
                    state, iv, header, header.count, buffer.baseAddress!, text.count, buffer.baseAddress! + text.count)
            }
            return done == 1 ? output : nil
        }

        /// The text of text and tag; nil when the tag is wrong.
        func open(_ iv: [UInt8], _ header: [UInt8], _ sealed: [UInt8]) -> [UInt8]? {
            var output = sealed
            let length = sealed.count - 16
            let done = output.withUnsafeMutableBufferPointer { buffer in
                kernel.pointee.open(
                    state, iv, header, header.count, buffer.baseAddress!, length, buffer.baseAddress! + length)
            }
            return done == 1 ? Array(output[..<length]) : nil
        }
    }

    private static func holds(_ known: Case) -> Bool {
        let key = bytes(known.key)
        guard let session = SRTPSession(profile: known.profile, sendingKey: key, receivingKey: key) else {
            return false
        }
        return roundTrip(clearRTP, known.rtp, session.protectRTP, session.unprotectRTP)
            && roundTrip(clearRTCP, known.rtcp, session.protectRTCP, session.unprotectRTCP)
    }

    private static func roundTrip(
        _ clear: String, _ wanted: String,
        _ protect: (UnsafeMutableRawBufferPointer, Int) -> Int?,
        _ unprotect: (UnsafeMutableRawBufferPointer) -> SRTPResult
    ) -> Bool {
        let clear = bytes(clear)
        var slot = clear + [UInt8](repeating: 0, count: 64)
        guard let length = slot.withUnsafeMutableBytes({ protect($0, clear.count) }) else { return false }
        var packet = Array(slot[..<length])
        guard packet == bytes(wanted) else { return false }
        let result = packet.withUnsafeMutableBytes { unprotect($0) }
        return result == .clear(length: clear.count) && Array(packet[..<clear.count]) == clear
    }

    static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.utf8.map { $0 < 58 ? $0 - 48 : $0 - 87 }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
