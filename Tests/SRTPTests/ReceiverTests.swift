import CSRTP
import Primitives
import Testing

@testable import SRTP

@Suite("SRTP receivers: AES-128 GCM without libsrtp2", .serialized)
struct ReceiverTests {
    /// libsrtp2 on one side, a kernel on the other, with each other's keys.
    private func pair(_ kernel: String) throws -> (library: SRTPSession, own: SRTPSession) {
        try SRTPLibrary.start()
        let one = SenderTests.key, other = (0..<28).map { UInt8(200 - $0) }
        return (
            try #require(SRTPSession(profile: .aeadAES128GCM, sendingKey: one, receivingKey: other, kernel: nil)),
            try #require(
                SRTPSession(
                    profile: .aeadAES128GCM, sendingKey: other, receivingKey: one,
                    kernel: SenderTests.kernel(kernel)))
        )
    }

    private func seal(_ session: SRTPSession, _ packet: [UInt8], isRTCP: Bool) throws -> [UInt8] {
        var slot = packet + [UInt8](repeating: 0, count: 32)
        let length = slot.withUnsafeMutableBytes {
            isRTCP
                ? session.protectRTCP($0, length: packet.count) : session.protectRTP($0, length: packet.count)
        }
        return Array(slot[..<(try #require(length))])
    }

    private func open(_ session: SRTPSession, _ packet: [UInt8], isRTCP: Bool) -> ([UInt8], SRTPResult) {
        var packet = packet
        let result = packet.withUnsafeMutableBytes {
            isRTCP ? session.unprotectRTCP($0) : session.unprotectRTP($0)
        }
        guard case .clear(let length) = result else { return ([], result) }
        return (Array(packet[..<length]), result)
    }

    private func report(_ length: Int, ssrc: UInt32) -> [UInt8] {
        [0x8f, 205, UInt8((length / 4 - 1) >> 8), UInt8((length / 4 - 1) & 255)]
            + (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> (24 - 8 * $0)) }
            + (8..<max(8, length)).map { UInt8(truncatingIfNeeded: $0 * 7) }
    }

    @Test(
        "Packets protected by libsrtp2 are decrypted: headers of every kind, sources of every kind",
        arguments: SenderTests.kernels)
    func opensPackets(kernel: String) throws {
        let (library, own) = try pair(kernel)
        for length in Array(0...100) + [1_100, 1_200] {
            var packet = SessionPair.clear(length, UInt32(length % 3), (0..<length).map { UInt8($0 & 255) })
            if length % 3 == 1 {
                packet[0] |= 0x10
                packet.insert(contentsOf: [0xbe, 0xde, 0, 1, 0x10, 1, 0x20, 2], at: 12)
            }
            if length % 5 == 2 {
                packet[0] |= 1
                packet.insert(contentsOf: [1, 2, 3, 4], at: 12)
            }
            let sealed = try seal(library, packet, isRTCP: false)
            #expect(open(own, sealed, isRTCP: false).0 == packet, "\(length)")
            #expect(open(own, sealed, isRTCP: false).1 == .dropped(.srtpReplayed))
        }
    }

    @Test(
        "SRTCP is accepted both ways, each packet once; a flipped bit anywhere makes it fail",
        arguments: SenderTests.kernels)
    func reports(kernel: String) throws {
        let (library, own) = try pair(kernel)
        for length in stride(from: 8, through: 1_200, by: 36) {
            let packet = report(length, ssrc: 77)
            let sealed = try seal(library, packet, isRTCP: true)
            for index in stride(from: 0, to: sealed.count, by: 5) {
                var forged = sealed
                forged[index] ^= 0x20
                guard case .dropped = open(own, forged, isRTCP: true).1 else {
                    Issue.record("byte \(index) of \(length) may be changed")
                    continue
                }
            }
            #expect(open(own, sealed, isRTCP: true).0 == packet, "\(length)")
            #expect(open(own, sealed, isRTCP: true).1 == .dropped(.srtpReplayed))
            let answer = report(length, ssrc: 78)
            #expect(open(library, try seal(own, answer, isRTCP: true), isRTCP: true).0 == answer)
        }
    }

    @Test("SRTCP may arrive late, up to 63 behind the newest, and once", arguments: SenderTests.kernels)
    func lateReports(kernel: String) throws {
        let (library, own) = try pair(kernel)
        let sealed = try (0..<200).map { _ in try seal(library, report(40, ssrc: 5), isRTCP: true) }
        #expect(open(own, sealed[100], isRTCP: true).1 == .clear(length: 40))
        #expect(open(own, sealed[37], isRTCP: true).1 == .clear(length: 40), "63 behind")
        #expect(open(own, sealed[36], isRTCP: true).1 == .dropped(.srtpReplayed), "looks like a replay")
        #expect(open(own, sealed[37], isRTCP: true).1 == .dropped(.srtpReplayed))
        #expect(open(own, sealed[199], isRTCP: true).1 == .clear(length: 40))
        #expect(open(own, sealed[136], isRTCP: true).1 == .clear(length: 40))
        #expect(open(own, sealed[100], isRTCP: true).1 == .dropped(.srtpReplayed))
    }

    @Test(
        "Packets that are too short, or only authenticated, are refused with a reason", arguments: SenderTests.kernels)
    func refused(kernel: String) throws {
        let (library, own) = try pair(kernel)
        var sealed = try seal(library, report(40, ssrc: 5), isRTCP: true)
        #expect(open(own, Array(sealed.prefix(27)), isRTCP: true).1 == .dropped(.truncated))
        sealed[sealed.count - 4] &= 0x7f
        #expect(open(own, sealed, isRTCP: true).1 == .dropped(.srtpError), "E = 0")
        #expect(open(own, [0x80] + [UInt8](repeating: 0, count: 26), isRTCP: false).1 == .dropped(.truncated))
        #expect(
            open(own, [0x90] + [UInt8](repeating: 0xff, count: 40), isRTCP: false).1 == .dropped(.truncated),
            "extensions longer than the packet")
    }
}
