import Cryptography
import MediaControl
import Primitives
import Simulation
import Testing

@testable import MediaEngine

@Suite("F8: floods of checks for an existing user name")
struct UnknownSourceTests {
    /// Checks that name the fragment of `peer` under a wrong password.
    private func forged(for peer: PeerID, _ harness: EngineHarness) -> [UInt8] {
        let transport = ClientTransport(
            context: harness.clientContext,
            local: ICECredentials(ufrag: "cli\(peer.rawValue)", password: "clientpasswordclientpass"),
            server: ICECredentials(ufrag: "srv\(peer.rawValue)", password: "not the server's password"),
            serverFingerprint: harness.certificate.fingerprintSHA256, destination: EngineDriver.onlyAddress)
        var batch = OutboundBatch(datagrams: 1, bytes: 1_024)
        transport.advance(to: harness.now, into: &batch)
        return Array(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(batch.arena)[..<batch.used]))
    }

    @Test(
        "40,000 per second delay no other peer; from one address they do not keep their victim out either",
        arguments: [true, false])
    func knownFragment(fromOneAddress: Bool) throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let victim = harness.addClient(room: Session.room, connect: false)
        harness.clients.removeAll()
        let check = forged(for: victim.id, harness)
        var random = RandomSource(seed: 8)
        var newcomers: [TestClient] = []
        for millisecond in 0..<3_000 {
            harness.inOneTurn {
                for _ in 0..<40 {
                    let bits = random.next()
                    let host = fromOneAddress ? 0xcb00_7109 : UInt32(truncatingIfNeeded: bits)
                    harness.sendRaw(
                        check, from: SocketAddress(ipv4: host, port: UInt16(truncatingIfNeeded: bits >> 40)))
                }
            }
            if millisecond % 100 == 50 { newcomers.append(harness.addClient(room: Session.room, connect: false)) }
            if millisecond == 1_000, fromOneAddress { harness.clients.append(victim) }
            harness.run(for: .milliseconds(1))
        }
        harness.run(for: .milliseconds(50))
        #expect(newcomers.count == 30)
        #expect(newcomers.allSatisfy { harness.events.contains(.peerConnected($0.id)) })
        #expect(harness.events.contains(.peerConnected(victim.id)) == fromOneAddress)
        let drops = harness.engine.statistics.drops
        #expect(drops[.stunUnauthorized] + drops[.stunThrottled] == 120_000)
        // What is looked at costs 1.3 us: at most the shared budget and the peer's own, or what one address may fail.
        #expect(drops[.stunUnauthorized] <= (fromOneAddress ? 4 * 20 : 3 * 20_000 + 2_000 + 100))
    }

    @Test("A peer that shares an address with an attacker is not blocked with it")
    func sharedAddress() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let victim = harness.addClient(room: Session.room, connect: false)
        harness.clients.removeAll()
        let check = forged(for: victim.id, harness)
        let neighbour = harness.addClient(room: Session.room, connect: false)
        let host = SocketAddress(ipv4: neighbour.address.ipv4, port: 1)
        harness.inOneTurn { for _ in 0..<50_000 { harness.sendRaw(check, from: host) } }
        harness.run(for: .milliseconds(50))
        #expect(harness.events.contains(.peerConnected(neighbour.id)))
    }
}
