import CSRTP
import Primitives
import Testing

@testable import SRTP

@Suite("SRTP senders: AES-128 GCM without libsrtp2", .serialized)
struct SenderTests {
    static let key = (0..<28).map { UInt8($0 * 3) }

    /// Every kernel that is here, by name.
    static var kernels: [String] {
        ["OpenSSL"] + (csrtp_gcm_ipsec_mb().map { [String(cString: $0.pointee.name)] } ?? [])
    }

    static func kernel(_ name: String) -> UnsafePointer<csrtp_gcm_kernel> {
        name == "OpenSSL" ? csrtp_gcm_openssl() : csrtp_gcm_ipsec_mb()
    }

    /// A sender on `kernel`, and libsrtp2 with the same key on the other side.
    private func pair(_ kernel: String) throws -> (sender: SRTPSession, receiver: SRTPSession) {
        try SRTPLibrary.start()
        let other = (0..<28).map { UInt8(200 - $0) }
        return (
            try #require(
                SRTPSession(
                    profile: .aeadAES128GCM, sendingKey: Self.key, receivingKey: other, kernel: Self.kernel(kernel))),
            try #require(
                SRTPSession(profile: .aeadAES128GCM, sendingKey: other, receivingKey: Self.key, kernel: nil))
        )
    }

    private func protect(_ session: SRTPSession, _ packet: [UInt8]) -> [UInt8]? {
        var slot = packet + [UInt8](repeating: 0, count: 32)
        return slot.withUnsafeMutableBytes { session.protectRTP($0, length: packet.count) }.map { Array(slot[..<$0]) }
    }

    private func open(_ session: SRTPSession, _ packet: [UInt8]) -> [UInt8]? {
        var packet = packet
        guard case .clear(let length) = packet.withUnsafeMutableBytes({ session.unprotectRTP($0) }) else { return nil }
        return Array(packet[..<length])
    }

    @Test(
        "libsrtp2 decrypts what the sender protected: every length, contributing sources, header extensions",
        arguments: kernels
    )
    func opensEverywhere(kernel: String) throws {
        let (sender, receiver) = try pair(kernel)
        var random = RandomSource(seed: 4)
        for length in Array(0...200) + [1_100, 1_200, 1_400] {
            var packet = SessionPair.clear(
                length, 0xdead_beef, (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) })
            if length % 3 == 1 {
                packet[0] |= 0x10
                packet.insert(contentsOf: [0xbe, 0xde, 0, 2, 0x10, 1, 0x20, 2, 0, 0, 0, 0], at: 12)
            }
            if length % 5 == 2 {
                packet[0] |= 2
                packet.insert(contentsOf: [1, 2, 3, 4, 5, 6, 7, 8], at: 12)
            }
            let sealed = try #require(protect(sender, packet))
            #expect(sealed.count == packet.count + 16)
            #expect(open(receiver, sealed) == packet)
        }
    }

    @Test(
        "F7: the roll-over counter follows sequence numbers across the wrap, also for late packets",
        arguments: kernels)
    func rollOver(kernel: String) throws {
        let (sender, receiver) = try pair(kernel)
        // A receiver can only guess the counter of what is less than half a turn away.
        for sequence in stride(from: 100, to: 3 * 65_536, by: 997) where sequence % 10 != 0 {
            let packet = SessionPair.clear(sequence, 7, [1, 2, 3])
            #expect(open(receiver, try #require(protect(sender, packet))) == packet, "\(sequence)")
            let late = SessionPair.clear(sequence - 500, 7, [4])
            #expect(open(receiver, try #require(protect(sender, late))) == late, "late \(sequence)")
        }
    }

    @Test("No packet index is used for two packets: RFC 7714 section 8.4", arguments: kernels)
    func neverTwice(kernel: String) throws {
        let (sender, _) = try pair(kernel)
        for sequence in [5_000, 5_001, 5_003, 6_500, 5_500, 5_477] {
            #expect(protect(sender, SessionPair.clear(sequence, 7, [1])) != nil, "\(sequence)")
            #expect(protect(sender, SessionPair.clear(sequence, 7, [2])) == nil, "\(sequence) again")
        }
        #expect(protect(sender, SessionPair.clear(6_500 - 1_024, 7, [1])) == nil, "too old to tell")
        #expect(protect(sender, SessionPair.clear(5_001, 7, [2])) == nil)
        // A jump past the window forgets what was before, and does not take it again.
        #expect(protect(sender, SessionPair.clear(20_000, 7, [1])) != nil)
        #expect(protect(sender, SessionPair.clear(6_500, 7, [2])) == nil)
        #expect(protect(sender, SessionPair.clear(19_999, 7, [1])) != nil)
        // Another stream has numbers of its own; numbers below the first packet's are not those before a roll-over.
        #expect(protect(sender, SessionPair.clear(2, 8, [1])) != nil)
        #expect(protect(sender, SessionPair.clear(65_535, 8, [1])) == nil)
    }

    @Test(
        "Once a packet was to be sent again, those that follow may be: with the same bytes, while their tags are kept",
        arguments: kernels)
    func sameBytes(kernel: String) throws {
        let (sender, receiver) = try pair(kernel)
        let early = SessionPair.clear(1, 7, [1])
        #expect(protect(sender, early) != nil)
        for _ in 0..<2 { #expect(protect(sender, early) == nil, "no tag was kept until then") }
        for sequence in 2..<20 {
            let packet = SessionPair.clear(sequence, 7, [1, 2, 3])
            let first = try #require(protect(sender, packet))
            // In the payload, the payload type, the timestamp and the length.
            for changed in [14, 1, 7] {
                var other = packet
                other[changed] ^= 1
                #expect(protect(sender, other) == nil)
            }
            #expect(protect(sender, Array(packet.dropLast())) == nil)
            #expect(protect(sender, packet) == first)
            #expect(open(receiver, first) == packet)
        }
        for sequence in 20..<300 { #expect(protect(sender, SessionPair.clear(sequence, 7, [1])) != nil) }
        #expect(protect(sender, SessionPair.clear(3, 7, [1, 2, 3])) == nil, "256 packets later")
        #expect(protect(sender, SessionPair.clear(200, 7, [1])) != nil)
        // A released stream takes its tags with it.
        sender.releaseSendingStream(ssrc: 7)
        #expect(protect(sender, SessionPair.clear(1, 8, [1])) != nil)
    }

    @Test(
        "Across a roll-over a packet is sent again with its own index, and its number is free for another packet in the next round",
        arguments: kernels)
    func sameBytesAcrossRollOver(kernel: String) throws {
        let (sender, receiver) = try pair(kernel)
        func clear(_ sequence: Int, _ byte: UInt8 = 1) -> [UInt8] { SessionPair.clear(sequence & 0xffff, 7, [byte]) }
        #expect(protect(sender, clear(65_000)) != nil)
        #expect(protect(sender, clear(65_000)) == nil)
        let last = try #require(protect(sender, clear(65_535)))
        let first = try #require(protect(sender, clear(65_536)))
        for byte in [2, 1] as [UInt8] {
            #expect(protect(sender, clear(65_535, byte)) == (byte == 1 ? last : nil))
            #expect(protect(sender, clear(65_536, byte)) == (byte == 1 ? first : nil))
        }
        #expect(open(receiver, last) == clear(65_535) && open(receiver, first) == clear(65_536))
        for sequence in stride(from: 66_000, through: 131_000, by: 500) {
            #expect(protect(sender, clear(sequence)) != nil)
        }
        // The numbers of before, with other bytes: their indices are others.
        #expect(protect(sender, clear(131_071, 2)) != nil)
        #expect(protect(sender, clear(131_072, 2)) != nil)
        #expect(protect(sender, clear(131_072, 1)) == nil)
    }

    @Test("A sender keeps hundreds of streams apart, and removes released ones")
    func manyStreams() throws {
        let (sender, receiver) = try pair("OpenSSL")
        for round in 1...3 {
            for ssrc in UInt32(1)...600 {
                let packet = SessionPair.clear(round, ssrc &* 0x0101_0101, [9])
                let sealed = try #require(protect(sender, packet))
                if ssrc <= 100 { #expect(open(receiver, sealed) == packet) }
            }
        }
        for ssrc in UInt32(1)...600 where ssrc % 2 == 0 { sender.releaseSendingStream(ssrc: ssrc &* 0x0101_0101) }
        for ssrc in UInt32(1)...600 {
            let again = protect(sender, SessionPair.clear(3, ssrc &* 0x0101_0101, [9]))
            #expect((again == nil) == (ssrc % 2 == 1))
        }
    }

    @Test("A packet whose header does not fit it is refused", arguments: kernels)
    func malformed(kernel: String) throws {
        let (sender, _) = try pair(kernel)
        #expect(protect(sender, [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0]) == nil)
        #expect(protect(sender, [0x8f] + [UInt8](repeating: 0, count: 20)) == nil)
        #expect(protect(sender, [0x90] + [UInt8](repeating: 0, count: 12)) == nil)
        #expect(protect(sender, [0x90] + [UInt8](repeating: 0, count: 11) + [0xbe, 0xde, 0, 9, 1, 2, 3, 4]) == nil)
    }

    @Test("Key derivation: RFC 3711 appendix B.3")
    func derivation() {
        let key = KnownAnswers.bytes("e1f97a0d3e018be0d64fa32c06de4139")
        let salt = KnownAnswers.bytes("0ec675ad498afeebb6960b3aabe6")
        for (label, answer) in [
            (UInt8(0), "c61e7a93744f39ee10734afe3ff7a087"), (2, "30cbbc08863d8c85d49db34a9ae1"),
        ] {
            var output = [UInt8](repeating: 0, count: answer.utf8.count / 2)
            #expect(csrtp_derive(key, salt, label, &output, output.count) == 1)
            #expect(output == KnownAnswers.bytes(answer))
        }
    }

    @Test("A kernel whose output differs in one bit at one length is not used")
    func wrongKernel() throws {
        for name in Self.kernels { #expect(KnownAnswers.agree(Self.kernel(name), csrtp_gcm_openssl())) }
        var wrong = csrtp_gcm_openssl().pointee
        wrong.seal = { state, iv, additional, additionalLength, text, length, tag in
            let done = csrtp_gcm_openssl().pointee.seal(state, iv, additional, additionalLength, text, length, tag)
            if length == 257 { tag![3] ^= 1 }
            return done
        }
        #expect(!KnownAnswers.agree(&wrong, csrtp_gcm_openssl()))
    }
}
