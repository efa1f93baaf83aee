import Cryptography
import MediaControl
import PeerTransport
import Primitives
import Simulation
import Testing

@Suite("Address changes and ICE restarts")
struct MovementTests {
    static let newAddress = SocketAddress(ipv4: 0xc633_6401, port: 61_000)

    @Test("After a NAT rebinding the next check moves the peer, nominated or not", arguments: [true, false])
    func rebinding(nominates: Bool) throws {
        var behaviour = ClientBehaviour()
        behaviour.nominatesAlways = nominates
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        pair.run(for: .seconds(4))
        pair.clientAddress = Self.newAddress
        let packet = pair.clientRTP(sequence: 1)
        #expect(pair.inject(packet, from: Self.newAddress) == .dropped(.srtpUnvalidatedTuple))
        #expect(pair.run(for: .seconds(5)) { pair.server.remoteAddress == Self.newAddress })
        #expect(pair.serverEvents.contains(.addressValidated(Self.newAddress)))
        #expect(pair.serverEvents.contains(.moved(Self.newAddress)))
        #expect(pair.inject(pair.clientRTP(sequence: 2), from: Self.newAddress) == .rtp(length: 16))
        // Life goes on at the new address only.
        #expect(!pair.run(for: .seconds(120)) { !pair.server.isConnected })
        #expect(pair.serverEvents.contains { if case .addressReleased = $0 { true } else { false } })
    }

    /// A peer that has been connected for a while, does not check by itself, and is behind another port of its NAT now.
    private func remapped() throws -> (pair: TransportPair, old: SocketAddress) {
        var behaviour = ClientBehaviour()
        behaviour.keepsChecking = false
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        // The server's next own check is due after four seconds at the earliest, and the handshake's last flight is not repeated any more.
        pair.run(for: .milliseconds(3_500))
        let checks = pair.client.serverChecks
        #expect(pair.run(for: .seconds(8)) { pair.client.serverChecks > checks })
        pair.run(for: .seconds(1))
        let old = pair.clientAddress
        pair.clientAddress.port += 1
        return (pair, old)
    }

    @Test("B21: after a NAT rebinding a packet of media has the server check the new port; the answer moves the peer")
    func remappedMedia() throws {
        let (pair, old) = try remapped()
        #expect(pair.server.mayBeRemapped(from: old, at: pair.now))
        let packet = pair.clientRTP(sequence: 1, payload: [UInt8](repeating: 1, count: 40))
        let before = pair.sent.count
        #expect(pair.injectRemapped(packet, from: pair.clientAddress) == .rtp(length: 52))
        #expect(pair.serverEvents.contains(.addressValidated(pair.clientAddress)))
        let sent = pair.sent.dropFirst(before)
        #expect(sent.count == 1 && sent.allSatisfy { $0.bytes[0] == 0 && $0.bytes.count <= 3 * packet.count })
        #expect(pair.server.remoteAddress == old, "no media goes there before the answer")
        #expect(pair.run(for: .milliseconds(30)) { pair.server.remoteAddress == pair.clientAddress })
        #expect(pair.serverEvents.contains(.moved(pair.clientAddress)))
        #expect(pair.sendMedia(1))
    }

    @Test("Media from another port that was received before, or is damaged, validates nothing")
    func remappedReplay() throws {
        let (pair, old) = try remapped()
        let packet = pair.clientRTP(sequence: 1)
        #expect(pair.inject(packet, from: old) == .rtp(length: 16))
        #expect(!pair.server.mayBeRemapped(from: old, at: pair.now), "it has just sent from where it was")
        #expect(pair.injectRemapped(packet, from: pair.clientAddress) == nil)
        var damaged = pair.clientRTP(sequence: 2)
        damaged[14] ^= 1
        #expect(pair.injectRemapped(damaged, from: pair.clientAddress) == nil)
        #expect(!pair.server.isValidated(pair.clientAddress))
    }

    @Test("While media comes from the selected address, too, media from another port moves nobody")
    func remappedBesideOld() throws {
        let (pair, old) = try remapped()
        #expect(pair.inject(pair.clientRTP(sequence: 1), from: old) == .rtp(length: 16))
        #expect(pair.injectRemapped(pair.clientRTP(sequence: 2), from: pair.clientAddress) == .rtp(length: 16))
        for sequence in stride(from: UInt16(3), to: 100, by: 2) {
            pair.run(for: .milliseconds(20))
            #expect(pair.inject(pair.clientRTP(sequence: sequence), from: old) == .rtp(length: 16))
            #expect(pair.inject(pair.clientRTP(sequence: sequence + 1), from: pair.clientAddress) == .rtp(length: 16))
        }
        #expect(pair.server.remoteAddress == old)
        for sequence in 101..<130 as Range<UInt16> {
            pair.run(for: .milliseconds(20))
            _ = pair.inject(pair.clientRTP(sequence: sequence), from: pair.clientAddress)
        }
        #expect(pair.server.remoteAddress == pair.clientAddress, "half a second after the last packet from the other")
    }

    @Test(
        "A peer that nominates a better candidate right after it connected has not moved; media goes to that candidate")
    func settling() throws {
        var behaviour = ClientBehaviour()
        behaviour.nominatesAlways = true
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        pair.run(for: .milliseconds(300))
        pair.clientAddress = Self.newAddress
        pair.client.checkNow(at: pair.now)
        #expect(pair.run(for: .seconds(1)) { pair.server.remoteAddress == Self.newAddress })
        #expect(!pair.serverEvents.contains(.moved(Self.newAddress)))
        // Once it is settled, another address is another network.
        pair.run(for: .seconds(3))
        let later = SocketAddress(ipv4: 0xc633_6403, port: 62_000)
        pair.clientAddress = later
        pair.client.checkNow(at: pair.now)
        #expect(pair.run(for: .seconds(1)) { pair.server.remoteAddress == later })
        #expect(pair.serverEvents.filter { if case .moved = $0 { true } else { false } } == [.moved(later)])
    }

    @Test(
        "An address change during the handshake costs round trips, however often the server's flight was lost before",
        arguments: [DTLSRole.client, .server])
    func movedDuringHandshake(role: DTLSRole) throws {
        var behaviour = ClientBehaviour()
        behaviour.role = role
        let pair = try TransportPair(behaviour: behaviour)
        // The old network carries nothing of the server's DTLS, so that its timer has doubled to seconds.
        let old = pair.clientAddress
        pair.loses = { [unowned pair] in !$0.toServer && (20...63).contains($0.bytes[0]) && pair.clientAddress == old }
        #expect(!pair.run(for: .milliseconds(4_500)) { pair.server.isConnected })
        let moved = pair.now
        pair.clientAddress = Self.newAddress
        pair.client.checkNow(at: pair.now)
        #expect(pair.connect())
        // One way for the check, one for the flight, two round trips at most for the rest, 10 ms each way.
        #expect(pair.now - moved <= .milliseconds(80), "\((pair.now - moved).milliseconds) ms")
    }

    @Test("A peer that sends nothing does not move to the pair that its browser only keeps alive")
    func idleBackup() throws {
        var behaviour = ClientBehaviour()
        behaviour.nominatesAlways = false
        behaviour.keepsChecking = false
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        let main = pair.clientAddress
        for _ in 0..<8 {
            // libwebrtc checks the pair that it uses each 2.5 to 2.9 s.
            pair.client.checkNow(at: pair.now)
            pair.run(for: .milliseconds(2_400))
            pair.clientAddress = Self.newAddress
            pair.client.checkNow(at: pair.now)
            pair.run(for: .milliseconds(45))
            pair.clientAddress = main
            pair.run(for: .milliseconds(435))
            #expect(pair.server.remoteAddress == main)
        }
        #expect(!pair.serverEvents.contains { if case .moved = $0 { true } else { false } })
    }

    @Test("Checks of a backup path beside a live one do not change the selected address")
    func backup() throws {
        var behaviour = ClientBehaviour()
        behaviour.nominatesAlways = false
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        let main = pair.clientAddress
        for sequence in 1..<100 as Range<UInt16> {
            pair.clientAddress = sequence % 2 == 0 ? main : Self.newAddress
            #expect(pair.inject(pair.clientRTP(sequence: sequence), from: main) == .rtp(length: 16))
            pair.client.checkNow(at: pair.now)
            pair.run(for: .milliseconds(500))
        }
        #expect(pair.server.remoteAddress == main)
        #expect(!pair.serverEvents.contains { if case .moved = $0 { true } else { false } })
    }

    @Test(
        "B21: an ICE restart from a new address keeps keys and media; the old credentials expire with the first new check"
    )
    func restart() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        let fresh = (
            client: ICECredentials(ufrag: "cli2", password: "clientPasswordNumberTwo22"),
            server: ICECredentials(ufrag: "srvUfrag2", password: "serverPasswordNumberTwo22")
        )
        let remote = RemoteTransport(
            ice: fresh.client, fingerprintSHA256: Shared.clientCertificate.fingerprintSHA256, localRole: .server)
        pair.withOutput(
            {
                pair.server.restartICE(local: fresh.server, at: pair.now)
                pair.server.setRemote(remote, at: pair.now, into: &$0)
            }, toServer: false)
        // The client has not heard of it yet: old checks and media go on.
        let answers = pair.client.answers
        pair.run(for: .seconds(6))
        #expect(pair.client.answers > answers)
        #expect(pair.inject(pair.clientRTP(sequence: 1), from: pair.clientAddress) == .rtp(length: 16))
        #expect(!pair.serverEvents.contains(.ufragReleased("srvUfrag")))
        let switched = pair.now
        pair.clientAddress = Self.newAddress
        pair.client.restart(local: fresh.client, server: fresh.server, at: pair.now)
        #expect(pair.run(for: .seconds(2)) { pair.server.remoteAddress == Self.newAddress })
        #expect(pair.now - switched <= .milliseconds(1_500))
        #expect(pair.serverEvents.contains(.ufragReleased("srvUfrag")))
        #expect(pair.inject(pair.clientRTP(sequence: 2), from: Self.newAddress) == .rtp(length: 16))
        #expect(pair.server.isConnected && pair.client.isConnected)
        // Somebody with the old credentials is refused from now on.
        pair.client.restart(local: TransportPair.clientICE, server: TransportPair.serverICE, at: pair.now)
        pair.serverReceived = []
        pair.run(for: .milliseconds(200))
        #expect(pair.serverReceived.contains(.dropped(.stunUnknownUfrag)))
        pair.client.restart(local: fresh.client, server: fresh.server, at: pair.now)
        #expect(!pair.run(for: .seconds(60)) { !pair.server.isConnected })
    }

    @Test("A check that overtakes the answer to the server's restart: the new address is asked when that is here")
    func checkBeforeAnswer() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        pair.run(for: .seconds(6))
        let client = ICECredentials(ufrag: "cli2", password: "clientPasswordNumberTwo22")
        let server = ICECredentials(ufrag: "srvUfrag2", password: "serverPasswordNumberTwo22")
        pair.server.restartICE(local: server, at: pair.now)
        pair.clientAddress = Self.newAddress
        pair.client.restart(local: client, server: server, at: pair.now)
        pair.run(for: .milliseconds(60))
        #expect(pair.serverEvents.contains(.addressValidated(Self.newAddress)))
        #expect(pair.server.remoteAddress != Self.newAddress)
        let remote = RemoteTransport(
            ice: client, fingerprintSHA256: Shared.clientCertificate.fingerprintSHA256, localRole: .server)
        pair.withOutput({ pair.server.setRemote(remote, at: pair.now, into: &$0) }, toServer: false)
        // A round trip of 20 ms; the client checks again after 2.5 s only.
        #expect(pair.run(for: .milliseconds(50)) { pair.server.remoteAddress == Self.newAddress })
        #expect(pair.sendMedia(1))
    }

    @Test("A restart with another fingerprint is refused")
    func otherFingerprint() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        let remote = RemoteTransport(
            ice: TransportPair.clientICE, fingerprintSHA256: [UInt8](repeating: 1, count: 32), localRole: .server)
        pair.withOutput({ pair.server.setRemote(remote, at: pair.now, into: &$0) }, toServer: false)
        #expect(pair.serverEvents.last == .ended(.fingerprintMismatch))
    }

    @Test("The addresses of a peer are bounded; the selected one is never evicted")
    func boundedAddresses() throws {
        var behaviour = ClientBehaviour()
        behaviour.nominatesAlways = false
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        let main = pair.clientAddress
        for port in 0..<40 as Range<UInt16> {
            #expect(pair.inject(pair.clientRTP(sequence: port + 1), from: main) == .rtp(length: 16))
            pair.clientAddress = SocketAddress(ipv4: 0xc633_6402, port: 10_000 + port)
            pair.client.checkNow(at: pair.now)
            pair.run(for: .milliseconds(100))
        }
        var known = Set<SocketAddress>()
        for event in pair.serverEvents {
            if case .addressValidated(let address) = event { known.insert(address) }
            if case .addressReleased(let address) = event { known.remove(address) }
        }
        #expect(known.count == 8)
        #expect(known.contains(main))
        #expect(pair.server.remoteAddress == main)
    }
}
