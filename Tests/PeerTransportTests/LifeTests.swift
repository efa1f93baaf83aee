import MediaControl
import PeerTransport
import Primitives
import Simulation
import Testing

@Suite("Lifecycle of a peer")
struct LifeTests {
    private static func settings(consent: Int64) -> TransportSettings {
        var settings = TransportSettings()
        settings.consentTimeout = .seconds(consent)
        return settings
    }

    @Test("F4, B18: a killed client is disconnected within the consent timeout", arguments: [5, 15, 30] as [Int64])
    func killed(consent: Int64) throws {
        let pair = try TransportPair(settings: Self.settings(consent: consent))
        #expect(pair.connect())
        pair.run(for: .seconds(7))
        let death = pair.now
        pair.client.isKilled = true
        pair.run(for: .seconds(60)) { pair.serverEvents.contains(.ended(.consentExpired)) }
        #expect(pair.serverEvents.last == .ended(.consentExpired))
        #expect(pair.now - death <= .seconds(consent))
        #expect(pair.now - death >= .seconds(consent) - .seconds(3))
        #expect(pair.server.nextDeadline == .distantFuture)
    }

    @Test("A7: checks in one direction are enough to stay connected", arguments: [(true, false), (false, true)])
    func oneSided(keepsChecking: Bool, answers: Bool) throws {
        var behaviour = ClientBehaviour()
        behaviour.keepsChecking = keepsChecking
        behaviour.answersChecks = answers
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        #expect(!pair.run(for: .seconds(600)) { !pair.server.isConnected })
        #expect(pair.server.roundTripTime == (answers ? .milliseconds(20) : nil))
    }

    @Test("A client that neither checks nor answers loses consent although its socket is open")
    func silent() throws {
        var behaviour = ClientBehaviour()
        behaviour.keepsChecking = false
        behaviour.answersChecks = false
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        pair.run(for: .seconds(20))
        #expect(pair.serverEvents.last == .ended(.consentExpired))
    }

    @Test("The server checks every 4 to 6 seconds, at random intervals")
    func pace() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        let before = pair.client.serverChecks
        pair.run(for: .seconds(300))
        let checks = pair.client.serverChecks - before
        #expect((50...75).contains(checks), "\(checks)")
    }

    @Test("Without any check a peer is closed after 30 s")
    func setupTimeout() throws {
        let pair = try TransportPair()
        pair.client.isKilled = true
        pair.run(for: .seconds(60)) { !pair.serverEvents.isEmpty }
        #expect(pair.serverEvents == [.ended(.iceTimeout)])
        #expect(pair.now == MonotonicTime(milliseconds: 31_000))
    }

    @Test("With ICE but no DTLS a peer is closed after 30 s")
    func handshakeTimeout() throws {
        let pair = try TransportPair()
        pair.loses = { $0.toServer && (20...63).contains($0.bytes[0]) }
        pair.run(for: .seconds(60)) { pair.serverEvents.contains(.ended(.dtlsTimeout)) }
        #expect(pair.serverEvents.last == .ended(.dtlsTimeout))
    }

    @Test(
        "A peer that loses its only address during the handshake asks for no time until it has another, and connects from that"
    )
    func addressLostInHandshake() throws {
        let pair = try TransportPair()
        var isCut = false
        // The server's flight is the answer to the first ClientHello; nothing behind it arrives.
        pair.loses = { datagram in
            let isHandshake = (20...63).contains(datagram.bytes[0])
            if isHandshake, !datagram.toServer { isCut = true }
            return isCut && isHandshake
        }
        pair.run(for: .seconds(5)) { isCut }
        #expect(isCut && !pair.server.isConnected)
        pair.server.release(pair.clientAddress)
        pair.now = pair.now + .milliseconds(300)
        pair.withOutput({ pair.server.advance(to: pair.now, into: &$0) }, toServer: false)
        try #require(pair.server.nextDeadline > pair.now, "a flight that cannot leave is no reason to be woken")
        pair.loses = { _ in false }
        pair.clientAddress = SocketAddress(ipv4: 0xc000_0202, port: 50_001)
        #expect(pair.connect())
    }

    @Test("B17: the client's close_notify closes the peer at once")
    func clientCloses() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        pair.withOutput({ pair.client.close(into: &$0) }, toServer: true)
        pair.run(for: .milliseconds(50)) { pair.serverEvents.contains(.ended(.closedByPeer)) }
        #expect(pair.serverEvents.last == .ended(.closedByPeer))
    }

    @Test("The server's close_notify reaches the client and is reported once; later packets are refused")
    func serverCloses() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        let packet = pair.clientRTP(sequence: 1)
        pair.withOutput({ pair.server.close(at: pair.now, into: &$0) }, toServer: false)
        pair.withOutput({ pair.server.close(at: pair.now, into: &$0) }, toServer: false)
        pair.run(for: .milliseconds(50))
        #expect(pair.client.hasEnded)
        #expect(pair.serverEvents.filter { $0 == .ended(.removed) }.count == 1)
        #expect(pair.inject(packet, from: pair.clientAddress) == .dropped(.unknownSource))
        var slot = [UInt8](repeating: 0x80, count: 100)
        #expect(slot.withUnsafeMutableBytes { pair.server.protectRTP($0, length: 40) } == nil)
    }

    @Test("With 20 % loss each way a peer connects within ten seconds", arguments: 0..<20)
    func lossy(seed: Int) throws {
        let pair = try TransportPair()
        var random = RandomSource(seed: UInt64(seed))
        pair.loses = { _ in random.next() % 5 == 0 }
        #expect(pair.run(for: .seconds(10)) { pair.client.isConnected && pair.server.isConnected })
    }
}
