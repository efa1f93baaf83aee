import Cryptography
import MediaControl
import PeerTransport
import Primitives
import Simulation
import Testing

@Suite("Consent: media is sent only to addresses that answer the server's checks (RFC 7675)")
struct ConsentTests {
    static let elsewhere = SocketAddress(ipv4: 0xcb00_7107, port: 7_777)

    /// The client's next check, as it leaves.
    private func nextCheck(of pair: TransportPair) throws -> [UInt8] {
        let count = pair.sent.count
        pair.client.checkNow(at: pair.now)
        pair.run(for: .zero)
        return try #require(pair.sent[count...].first { $0.toServer && $0.bytes[0] == 0 && $0.bytes[1] == 1 }).bytes
    }

    @Test("A client's check from an address that answers nothing elicits at most three times its bytes")
    func amplification() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        pair.run(for: .seconds(4))
        var brought = 0
        for second in 0..<30 as Range<UInt16> {
            pair.loses = { $0.toServer && $0.bytes[0] < 4 }
            let check = try nextCheck(of: pair)
            pair.loses = { _ in false }
            brought += check.count
            #expect(pair.inject(check, from: Self.elsewhere) == .nothing)
            for packet in 0..<100 as Range<UInt16> {
                pair.sendMedia(second * 100 + packet)
                pair.run(for: .milliseconds(10))
            }
        }
        #expect(pair.server.media.pointee.destination == pair.clientAddress)
        #expect(pair.strayed[Self.elsewhere, default: 0] > 0, "the checks were answered")
        #expect(pair.strayed[Self.elsewhere, default: 0] <= 3 * brought)
        #expect(pair.serverEvents.contains(.addressValidated(Self.elsewhere)))
        #expect(!pair.serverEvents.contains(.addressConsented(Self.elsewhere)))
        #expect(!pair.serverEvents.contains(.moved(Self.elsewhere)))
    }

    @Test("Many such ports in a row elicit at most three times their bytes, too")
    func manyAddresses() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        var brought = 0
        for port in 0..<200 as Range<UInt16> {
            pair.loses = { $0.toServer && $0.bytes[0] < 4 }
            let check = try nextCheck(of: pair)
            pair.loses = { _ in false }
            brought += check.count
            _ = pair.inject(check, from: SocketAddress(ipv4: 0xcb00_7107, port: 10_000 + port))
            pair.run(for: .milliseconds(500))
        }
        #expect(pair.strayed.values.reduce(0, +) <= 3 * brought)
        #expect(pair.server.remoteAddress == pair.clientAddress)
    }

    @Test(
        "A captured check sent from another address is a replay: counted, not answered, and the selected address does not change"
    )
    func replayedCheck() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        pair.run(for: .seconds(5))
        let captured = try #require(pair.sent.last { $0.toServer && $0.bytes[0] == 0 && $0.bytes[1] == 1 }).bytes
        let events = pair.serverEvents
        for _ in 0..<100 {
            #expect(pair.inject(captured, from: Self.elsewhere) == .dropped(.stunReplayed))
            #expect(pair.sendMedia(1))
            pair.run(for: .milliseconds(100))
        }
        #expect(pair.strayed.isEmpty)
        #expect(pair.serverEvents == events)
        #expect(!pair.server.isValidated(Self.elsewhere))
    }

    @Test(
        "A check older than the replay memory does not change the selected address either, because that address answers no check"
    )
    func forgottenCheck() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        let captured = try #require(pair.sent.first { $0.toServer && $0.bytes[0] == 0 && $0.bytes[1] == 1 }).bytes
        pair.run(for: .seconds(300))
        #expect(pair.inject(captured, from: Self.elsewhere) == .nothing)
        for sequence in 0..<100 as Range<UInt16> {
            #expect(pair.sendMedia(sequence))
            pair.run(for: .milliseconds(100))
        }
        #expect(pair.server.media.pointee.destination == pair.clientAddress)
        #expect(pair.strayed[Self.elsewhere, default: 0] <= 3 * captured.count)
    }

    @Test("A check retransmitted from the same address is answered again, and counts once")
    func retransmittedCheck() throws {
        var behaviour = ClientBehaviour()
        behaviour.keepsChecking = false
        behaviour.answersChecks = false
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        let captured = try #require(pair.sent.last { $0.toServer && $0.bytes[0] == 0 && $0.bytes[1] == 1 }).bytes
        let last = pair.now
        // Whoever forges the peer's address as well keeps no ghost alive with what he recorded.
        while !pair.serverEvents.contains(.ended(.consentExpired)), pair.now - last < .seconds(60) {
            let count = pair.sent.count
            #expect(pair.inject(captured, from: pair.clientAddress) == .nothing)
            #expect(pair.sent[count...].contains { !$0.toServer && $0.bytes[0] == 1 && $0.bytes[1] == 1 })
            pair.run(for: .seconds(1)) { pair.serverEvents.contains(.ended(.consentExpired)) }
        }
        #expect(pair.now - last <= .seconds(15))
    }

    @Test("A client that answers no check is received and gets reports but no media; it stays connected while it sends")
    func silentClient() throws {
        var behaviour = ClientBehaviour()
        behaviour.answersChecks = false
        behaviour.keepsChecking = false
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        #expect(!pair.server.mayReceive && !pair.sendMedia(1))
        #expect(!pair.serverEvents.contains(.sendingAllowed))
        var reported = 0, brought = pair.sent.filter(\.toServer).reduce(0) { $0 + $1.bytes.count }
        let start = pair.sent.count
        for sequence in 0..<1_200 as Range<UInt16> {
            let packet = pair.clientRTP(sequence: sequence, payload: [UInt8](repeating: 1, count: 200))
            brought += packet.count
            #expect(pair.inject(packet, from: pair.clientAddress) == .rtp(length: 212))
            if sequence % 10 == 0, pair.server.destination(ofReport: 100) == pair.clientAddress { reported += 1 }
            pair.run(for: .milliseconds(50))
        }
        #expect(reported == 120, "a report for ten packets is far within what they allow")
        let drawn = pair.sent[start...].filter { !$0.toServer }.reduce(0) { $0 + $1.bytes.count } + reported * 100
        #expect(drawn <= 3 * brought + 1_200)
        // It falls silent: reports end with its credit, and the peer with its life.
        while pair.server.destination(ofReport: 1_000) != nil { reported += 10 }
        #expect(reported * 100 <= 3 * brought + 1_200)
        pair.run(for: .seconds(16))
        #expect(pair.serverEvents.last == .ended(.consentExpired))
    }

    @Test("Media stops when the answers stop, although the client continues to send, and resumes with the next answer")
    func expiry() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        #expect(pair.serverEvents.contains(.sendingAllowed))
        pair.run(for: .seconds(7))
        // Its answers are lost from now on; its own checks and its media arrive.
        pair.loses = { $0.toServer && $0.bytes[0] == 1 && $0.bytes[1] == 1 }
        let start = pair.now
        var sequence: UInt16 = 0
        while pair.server.mayReceive, pair.now - start < .seconds(60) {
            sequence += 1
            #expect(pair.inject(pair.clientRTP(sequence: sequence), from: pair.clientAddress) == .rtp(length: 16))
            pair.run(for: .milliseconds(100))
        }
        #expect(pair.now - start <= .seconds(15) && pair.now - start >= .seconds(9))
        #expect(pair.serverEvents.last == .sendingForbidden && !pair.sendMedia(1))
        #expect(pair.server.isConnected)
        #expect(pair.inject(pair.clientRTP(sequence: sequence + 1), from: pair.clientAddress) == .rtp(length: 16))
        pair.loses = { _ in false }
        #expect(pair.run(for: .seconds(6)) { pair.server.mayReceive })
        #expect(pair.sendMedia(2))
    }

    @Test("Consent survives a link that loses 20 % each way", arguments: 0..<10)
    func lossy(seed: Int) throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        var random = RandomSource(seed: UInt64(seed))
        pair.loses = { _ in random.next() % 5 == 0 }
        pair.run(for: .seconds(600))
        #expect(pair.server.mayReceive && !pair.serverEvents.contains(.sendingForbidden))
    }

    @Test("A change of address costs one round trip, and media continues to the old address until then")
    func move() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        pair.run(for: .seconds(4))
        let old = pair.clientAddress, start = pair.now
        pair.clientAddress = MovementTests.newAddress
        pair.client.checkNow(at: pair.now)
        #expect(pair.run(for: .milliseconds(10)) { pair.server.isValidated(MovementTests.newAddress) })
        #expect(pair.server.media.pointee.destination == old)
        #expect(pair.run(for: .seconds(1)) { pair.server.media.pointee.destination == MovementTests.newAddress })
        // Ten milliseconds each way: the check, the server's own, its answer.
        #expect(pair.now - start == .milliseconds(30))
        #expect(!pair.serverEvents.contains(.sendingForbidden))
    }

    @Test(
        "The server is controlled, never nominates, and sends its check in the turn of the first check, ahead of the answer"
    )
    func ownCheck() throws {
        let pair = try TransportPair()
        pair.run(for: .milliseconds(10))
        let fromServer = pair.sent.filter { !$0.toServer }
        let check = try #require(fromServer.first).bytes
        #expect(check[0] == 0 && check[1] == 1 && fromServer.count >= 2)
        #expect(fromServer[1].bytes[0] == 1 && fromServer[1].bytes[1] == 1)
        var types: [UInt16] = [], offset = 20
        while offset + 4 <= check.count {
            types.append(UInt16(check[offset]) << 8 | UInt16(check[offset + 1]))
            offset += 4 + (Int(check[offset + 2]) << 8 | Int(check[offset + 3]) + 3) & ~3
        }
        #expect(types.contains(0x8029), "ICE-CONTROLLED")
        #expect(!types.contains(0x0025) && !types.contains(0x802a), "neither USE-CANDIDATE nor ICE-CONTROLLING")
    }

    @Test("After a restart an earlier check is a replay, before and after the new credentials are used")
    func replayAfterRestart() throws {
        let pair = try TransportPair()
        #expect(pair.connect())
        let captured = try #require(pair.sent.last { $0.toServer && $0.bytes[0] == 0 && $0.bytes[1] == 1 }).bytes
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
        #expect(pair.inject(captured, from: Self.elsewhere) == .dropped(.stunReplayed))
        pair.client.restart(local: fresh.client, server: fresh.server, at: pair.now)
        #expect(pair.run(for: .seconds(1)) { pair.serverEvents.contains(.ufragReleased("srvUfrag")) })
        #expect(pair.inject(captured, from: Self.elsewhere) == .dropped(.stunUnknownUfrag))
        #expect(pair.server.media.pointee.destination == pair.clientAddress)
    }
}
