import Primitives
import SRTP
import Testing

/// Two ends of one association.
final class SessionPair {
    let sender: SRTPSession
    let receiver: SRTPSession

    init(_ profile: SRTPProfile) throws {
        try SRTPLibrary.start()
        let length = profile.keyLength + profile.saltLength
        let a = (0..<length).map { UInt8($0) }
        let b = (0..<length).map { UInt8(255 - $0) }
        sender = try #require(SRTPSession(profile: profile, sendingKey: a, receivingKey: b))
        receiver = try #require(SRTPSession(profile: profile, sendingKey: b, receivingKey: a))
    }

    func rtp(_ sequence: Int, ssrc: UInt32 = 7, payload: [UInt8] = [1, 2, 3]) -> [UInt8]? {
        let clear = Self.clear(sequence, ssrc, payload)
        var slot = clear + [UInt8](repeating: 0, count: 32)
        return slot.withUnsafeMutableBytes { sender.protectRTP($0, length: clear.count) }.map { Array(slot[..<$0]) }
    }

    static func clear(_ sequence: Int, _ ssrc: UInt32, _ payload: [UInt8]) -> [UInt8] {
        [0x80, 96, UInt8(sequence >> 8 & 255), UInt8(sequence & 255), 0, 0, 0, 9]
            + (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> (24 - 8 * $0)) } + payload
    }

    func receive(_ packet: [UInt8]) -> SRTPResult {
        var packet = packet
        return packet.withUnsafeMutableBytes { receiver.unprotectRTP($0) }
    }

    func receiveRTCP(_ packet: [UInt8]) -> SRTPResult {
        var packet = packet
        return packet.withUnsafeMutableBytes { receiver.unprotectRTCP($0) }
    }

    func rtcp(ssrc: UInt32 = 7) -> [UInt8]? {
        let clear: [UInt8] = [0x81, 201, 0, 1] + (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> (24 - 8 * $0)) }
        var slot = clear + [UInt8](repeating: 0, count: 32)
        return slot.withUnsafeMutableBytes { sender.protectRTCP($0, length: clear.count) }.map { Array(slot[..<$0]) }
    }
}

@Suite("SRTP sessions", .serialized)
struct SessionTests {
    @Test("F7: a packet is accepted once; forged packets are refused", arguments: SRTPProfile.allCases)
    func replayAndForgery(profile: SRTPProfile) throws {
        let pair = try SessionPair(profile)
        let packet = try #require(pair.rtp(100))
        for index in packet.indices {
            var forged = packet
            forged[index] ^= 0x04
            guard case .dropped = pair.receive(forged) else {
                Issue.record("byte \(index) may be changed")
                continue
            }
        }
        #expect(pair.receive(packet) == .clear(length: 15))
        #expect(pair.receive(packet) == .dropped(.srtpReplayed))
        #expect(pair.receive(Array(packet.dropLast())) != .clear(length: 14))
        #expect(pair.receive([0x80, 96]) == .dropped(.truncated))
    }

    @Test("F7: SRTCP is protected in the same way", arguments: SRTPProfile.allCases)
    func control(profile: SRTPProfile) throws {
        let pair = try SessionPair(profile)
        var packet = try #require(pair.rtcp())
        let copy = packet
        #expect(packet.withUnsafeMutableBytes { pair.receiver.unprotectRTCP($0) } == .clear(length: 8))
        packet = copy
        #expect(packet.withUnsafeMutableBytes { pair.receiver.unprotectRTCP($0) } == .dropped(.srtpReplayed))
        packet = try #require(pair.rtcp())
        packet[packet.count - 1] ^= 1
        #expect(packet.withUnsafeMutableBytes { pair.receiver.unprotectRTCP($0) } == .dropped(.srtpAuthentication))
        packet = try #require(pair.rtcp())
        #expect(Array(packet[..<packet.count].dropFirst(6)).withUnsafeBytes { $0.count } > 0)
        var short: [UInt8] = [0x81, 201, 0, 1, 0]
        #expect(short.withUnsafeMutableBytes { pair.receiver.unprotectRTCP($0) } == .dropped(.truncated))
    }

    @Test("The replay window holds 1,024 packets")
    func window() throws {
        let pair = try SessionPair(.aeadAES128GCM)
        let packets = try (0..<1_200).map { try #require(pair.rtp(5_000 + $0)) }
        #expect(pair.receive(packets[1_199]) == .clear(length: 15))
        #expect(pair.receive(packets[200]) == .clear(length: 15), "999 behind")
        #expect(pair.receive(packets[200]) == .dropped(.srtpReplayed))
        #expect(pair.receive(packets[10]) == .dropped(.srtpReplayed), "behind the window: looks like a replay")
    }

    @Test("F7, A6: the roll-over counter is right after a wrap, with a gap before it", arguments: SRTPProfile.allCases)
    func wrap(profile: SRTPProfile) throws {
        let pair = try SessionPair(profile)
        var accepted = 0
        // Four wraps. Around each, 30 packets are lost: their time may be 120 s, SRTP has no clock.
        for sequence in 65_000..<(65_000 + 4 * 65_536) where sequence % 7 == 0 || sequence % 65_536 > 65_000 {
            let packet = try #require(pair.rtp(sequence & 0xffff))
            if (65_520...65_535).contains(sequence & 0xffff) || (sequence & 0xffff) < 14 { continue }
            #expect(pair.receive(packet) == .clear(length: 15))
            accepted += 1
        }
        #expect(accepted > 30_000)
    }

    @Test("An earlier sequence number may be sent again under AES-CM; under GCM the first one is refused")
    func reusedSequence() throws {
        let counter = try SessionPair(.aes128CM80)
        let first = try #require(counter.rtp(9))
        #expect(counter.rtp(9) == first)
        let galois = try SessionPair(.aeadAES128GCM)
        _ = try #require(galois.rtp(9))
        #expect(galois.rtp(9) == nil)
        #expect(galois.rtp(10) != nil, "the session goes on")
    }

    @Test("The SSRCs of a peer are bounded; released ones make room, oldest first")
    func streams() throws {
        let pair = try SessionPair(.aeadAES128GCM)
        let limit = SRTPSession.maximumReceivingStreams
        for ssrc in 1...UInt32(limit) {
            let packet = try #require(pair.rtp(1, ssrc: ssrc))
            #expect(pair.receive(packet) == .clear(length: 15))
        }
        let late = try #require(pair.rtp(1, ssrc: 5_000))
        #expect(pair.receive(late) == .dropped(.tooManyStreams))
        let known = try #require(pair.rtp(2, ssrc: 3))
        #expect(pair.receive(known) == .clear(length: 15))
        pair.receiver.releaseReceivingStream(ssrc: 3)
        let replayed = try #require(pair.rtp(3, ssrc: 3))
        #expect(pair.receive(replayed) == .clear(length: 15), "a released stream lives until its place is needed")
        var forged = late
        forged[forged.count - 1] ^= 1
        #expect(pair.receive(forged) == .dropped(.srtpAuthentication), "and a forger does not take the place")
        #expect(pair.receive(late) == .clear(length: 15))
        let other = try #require(pair.rtp(1, ssrc: 5_001))
        #expect(pair.receive(other) == .dropped(.tooManyStreams))
    }

    @Test(
        "A thousand SSRCs that only report are all heard, and take no place from media",
        arguments: [.aeadAES128GCM, .aes128CM80] as [SRTPProfile])
    func reportingStreams(profile: SRTPProfile) throws {
        let pair = try SessionPair(profile)
        let limit = UInt32(SRTPSession.maximumReceivingStreams)
        for ssrc in 1...1_000 as ClosedRange<UInt32> {
            try #require(pair.receiveRTCP(try #require(pair.rtcp(ssrc: ssrc))) == .clear(length: 8), "\(ssrc)")
        }
        let report = try #require(pair.rtcp(ssrc: 1_000))
        #expect(pair.receiveRTCP(report) == .clear(length: 8))
        #expect(pair.receiveRTCP(report) == .dropped(.srtpReplayed), "the newest are remembered")
        for ssrc in 2_000..<(2_000 + limit) {
            try #require(pair.receive(try #require(pair.rtp(1, ssrc: ssrc))) == .clear(length: 15), "\(ssrc)")
        }
        #expect(pair.receive(try #require(pair.rtp(1, ssrc: 5_000))) == .dropped(.tooManyStreams))
        #expect(pair.receiveRTCP(try #require(pair.rtcp(ssrc: 5_000))) == .dropped(.tooManyStreams))
        #expect(pair.receive(try #require(pair.rtp(2, ssrc: 2_000))) == .clear(length: 15))
    }

    @Test("A thousand successive sources are accepted, and one that returned after its release stays")
    func replacedStreams() throws {
        let pair = try SessionPair(.aeadAES128GCM)
        #expect(pair.receive(try #require(pair.rtp(1, ssrc: 1))) == .clear(length: 15))
        pair.receiver.releaseReceivingStream(ssrc: 1)
        pair.receiver.retainReceivingStream(ssrc: 1)
        for ssrc in 2...1_000 as ClosedRange<UInt32> {
            #expect(pair.receive(try #require(pair.rtp(1, ssrc: ssrc))) == .clear(length: 15))
            pair.receiver.releaseReceivingStream(ssrc: ssrc)
        }
        let first = try #require(pair.rtp(2, ssrc: 1))
        #expect(pair.receive(first) == .clear(length: 15))
        #expect(pair.receive(first) == .dropped(.srtpReplayed), "its replay window was never lost")
    }

    @Test("Slots without room for the tag, and keys of the wrong length, are refused")
    func misuse() throws {
        let pair = try SessionPair(.aeadAES128GCM)
        var slot = SessionPair.clear(1, 7, [1]) + [UInt8](repeating: 0, count: 15)
        #expect(slot.withUnsafeMutableBytes { pair.sender.protectRTP($0, length: 13) } == nil)
        #expect(SRTPSession(profile: .aes128CM80, sendingKey: [1], receivingKey: [2]) == nil)
        pair.sender.releaseSendingStream(ssrc: 7)
    }
}
