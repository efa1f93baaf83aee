import MediaControl
import PeerTransport
import Primitives
import Simulation
import TestSupport
import Testing

@Suite("Hostile datagrams")
struct HostileTests {
    static let unknownSource = SocketAddress(ipv4: 0xcb00_7101, port: 6_666)

    @Test("F5: DTLS and RTP from an unvalidated address are dropped unread; the handshake completes")
    func flood() throws {
        let pair = try TransportPair()
        let hello = try #require(try WireCapture.load("chromium156_nopqc").clientHello.first)
        var random = RandomSource(seed: 5)
        pair.loses = { [unowned pair] _ in
            for _ in 0..<20 {
                let port = UInt16(truncatingIfNeeded: random.next())
                let source = SocketAddress(ipv4: 0xcb00_7101, port: port)
                #expect(pair.server.inject(hello, from: source, at: pair.now) == .dropped(.dtlsUnvalidatedTuple))
                let rtp = TransportPair.rtp(1, 1, [1, 2, 3])
                #expect(pair.server.inject(rtp, from: source, at: pair.now) == .dropped(.srtpUnvalidatedTuple))
            }
            return false
        }
        #expect(pair.connect())
        #expect(pair.now < MonotonicTime(milliseconds: 1_300), "no retransmission was needed")
    }

    @Test("F8: a malformed ClientHello from the peer's own address is dropped; the handshake completes")
    func brokenHello() throws {
        let pair = try TransportPair()
        var broken = try #require(try WireCapture.load("chromium156_nopqc").clientHello.first)
        broken[59] = 0xff  // Its session id is longer than any.
        #expect(pair.run(for: .seconds(1)) { pair.server.remoteAddress != nil })
        for _ in 0..<3 {
            #expect(pair.inject(broken, from: pair.clientAddress) == .dropped(.dtlsMalformed))
        }
        #expect(pair.connect())
        #expect(pair.now < MonotonicTime(milliseconds: 1_300), "no retransmission was needed")
    }

    @Test("F7: replayed, forged and early SRTP is never decrypted")
    func replay() throws {
        let pair = try TransportPair()
        let early = TransportPair.rtp(1, 1, [1])
        pair.run(for: .milliseconds(30))
        #expect(pair.inject(early, from: pair.clientAddress) == .dropped(.srtpNotReady))
        #expect(pair.connect())
        let packet = pair.clientRTP(sequence: 5)
        #expect(pair.inject(packet, from: pair.clientAddress) == .rtp(length: 16))
        #expect(pair.inject(packet, from: pair.clientAddress) == .dropped(.srtpReplayed))
        var forged = pair.clientRTP(sequence: 6)
        forged[13] ^= 1
        #expect(pair.inject(forged, from: pair.clientAddress) == .dropped(.srtpAuthentication))
        #expect(pair.inject(TransportPair.rtp(7, 1, [1, 2]), from: pair.clientAddress) != .rtp(length: 14))
    }

    @Test("Checks with a wrong password, a wrong user name or a flipped bit validate no address")
    func unauthorised() throws {
        let pair = try TransportPair()
        pair.loses = { $0.toServer }
        pair.run(for: .milliseconds(10))
        let check = try #require(pair.sent.first).bytes
        var damaged = check
        damaged[30] ^= 1
        guard case .dropped = pair.inject(damaged, from: Self.unknownSource) else {
            Issue.record("a damaged check was used")
            return
        }
        #expect(!pair.server.isValidated(Self.unknownSource))
        #expect(pair.inject(Array(check.dropLast(4)), from: Self.unknownSource) == .dropped(.stunMalformed))
        #expect(pair.inject(check, from: Self.unknownSource) == .nothing)
        #expect(pair.server.isValidated(Self.unknownSource), "the whole check does")
    }

    @Test("L1: 60,000 datagrams of noise do not trap, validate no address, and do not disturb the call")
    func noise() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        var random = RandomSource(seed: 99)
        let check = try #require(pair.sent.first { $0.toServer }).bytes
        let record = try #require(pair.sent.first { $0.toServer && $0.bytes[0] == 22 }).bytes
        for round in 0..<60_000 {
            var bytes: [UInt8]
            switch round % 4 {
            case 0: bytes = (0..<Int(random.next() % 80)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            case 1: bytes = check
            case 2: bytes = Array(record.prefix(Int(random.next() % UInt64(record.count))))
            default: bytes = TransportPair.rtp(UInt16(truncatingIfNeeded: round), 3, [1, 2, 3, 4, 5, 6])
            }
            for _ in 0..<3 where !bytes.isEmpty {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            let source = round % 8 < 4 ? pair.clientAddress : Self.unknownSource
            switch pair.server.inject(bytes, from: source, at: pair.now) {
            case .rtp, .rtcp: Issue.record("noise became media")
            case .nothing, .dropped: break
            }
        }
        #expect(!pair.server.isValidated(Self.unknownSource))
        #expect(pair.server.isConnected)
        #expect(pair.inject(pair.clientRTP(sequence: 1), from: pair.clientAddress) == .rtp(length: 16))
    }

    @Test("Media flows both ways, RTP and RTCP, with unchanged bytes")
    func media() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        var packet = pair.clientRTP(sequence: 77, payload: [9, 8, 7, 6, 5])
        packet.withUnsafeMutableBytes { bytes in
            pair.withOutput(
                {
                    #expect(
                        pair.server.receive(bytes, from: pair.clientAddress, at: pair.now, into: &$0)
                            == .rtp(length: 17))
                },
                toServer: false)
        }
        #expect(Array(packet[..<17]) == TransportPair.rtp(77, 0x1111_1111, [9, 8, 7, 6, 5]))
        var report: [UInt8] =
            [0x81, 201, 0, 1, 0, 0, 0, 1] + [UInt8](repeating: 0, count: WebRTCTransport.protectionOverhead)
        let length = try #require(report.withUnsafeMutableBytes { pair.server.protectRTCP($0, length: 8) })
        var received = Array(report[..<length])
        received.withUnsafeMutableBytes { bytes in
            pair.withOutput(
                {
                    let result = pair.client.receive(bytes, from: TransportPair.serverAddress, at: pair.now, into: &$0)
                    #expect(result == .rtcp(length: 8))
                }, toServer: true)
        }
    }
}

extension WebRTCTransport {
    /// For floods: whatever the server answers goes nowhere.
    fileprivate func inject(_ bytes: [UInt8], from source: SocketAddress, at now: MonotonicTime) -> Received {
        var bytes = bytes
        var output = OutboundBatch(datagrams: 8, bytes: 16_384)
        return bytes.withUnsafeMutableBytes { receive($0, from: source, at: now, into: &output) }
    }
}
