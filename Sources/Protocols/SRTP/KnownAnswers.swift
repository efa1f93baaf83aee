internal import Primitives

/// Whole packets whose protected form is known, run at each start.
///
/// libsrtp2's self tests try a cipher alone; these try what goes on the wire: key derivation, nonce, order of fields,
/// tag. The counter mode key is the one of RFC 3711 appendix B.3; the packets are the reference packets of libsrtp's
/// test driver, those of AES-256 computed apart from it.
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

    /// The first case that comes out wrong, as an error.
    static func check() -> SRTPLibrary.StartError? {
        for known in cases where !holds(known) { return .knownAnswer(name: known.profile.name) }
        return nil
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
