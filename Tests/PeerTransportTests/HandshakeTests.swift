import Cryptography
import MediaControl
import PeerTransport
import Primitives
import Simulation
import Testing

@Suite("Handshakes between server and client")
struct HandshakeTests {
    @Test("Both setup roles end with keys on both sides", arguments: [DTLSRole.client, .server])
    func connects(role: DTLSRole) throws {
        var behaviour = ClientBehaviour()
        behaviour.role = role
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.connect())
        #expect(pair.serverEvents.contains(.connected))
        #expect(pair.serverEvents.first == .addressValidated(pair.clientAddress))
        #expect(pair.server.remoteAddress == pair.clientAddress)
    }

    @Test(
        "F6: GCM is preferred, and a client that has AES_CM only connects",
        arguments: [
            ("SRTP_AES128_CM_SHA1_80:SRTP_AEAD_AES_256_GCM:SRTP_AEAD_AES_128_GCM", "SRTP_AEAD_AES_128_GCM"),
            ("SRTP_AES128_CM_SHA1_80", "SRTP_AES128_CM_HMAC_SHA1_80"),
            ("SRTP_AEAD_AES_256_GCM", "SRTP_AEAD_AES_256_GCM"),
        ])
    func profiles(offered: String, chosen: String) throws {
        let pair = try TransportPair(profiles: offered)
        #expect(pair.connect())
        #expect(pair.server.srtpProfileName == chosen)
        #expect(pair.client.srtpProfileName == chosen)
    }

    @Test("A peer with an RSA certificate connects in either role", arguments: [DTLSRole.client, .server])
    func rsaPeer(role: DTLSRole) throws {
        var behaviour = ClientBehaviour()
        behaviour.role = role
        let pair = try TransportPair(client: Shared.rsaCertificate, behaviour: behaviour)
        #expect(pair.connect())
    }

    @Test(
        "F6: a certificate that does not match the SDP is refused with a named reason",
        arguments: [
            DTLSRole.client, .server,
        ])
    func wrongFingerprint(role: DTLSRole) throws {
        var behaviour = ClientBehaviour()
        behaviour.role = role
        let pair = try TransportPair(behaviour: behaviour, fingerprint: [UInt8](repeating: 7, count: 32))
        pair.run(for: .seconds(5)) { pair.serverEvents.contains(.ended(.fingerprintMismatch)) }
        #expect(pair.serverEvents.last == .ended(.fingerprintMismatch))
        #expect(!pair.server.isConnected)
        pair.run(for: .seconds(1))
        #expect(pair.client.hasEnded, "the alert reached the client")
    }

    @Test("No common SRTP profile ends with dtlsFailed, and is counted as that")
    func noProfile() throws {
        let pair = try TransportPair(profiles: "SRTP_AES128_CM_SHA1_32")
        pair.run(for: .seconds(5)) { pair.serverEvents.contains(.ended(.dtlsFailed)) }
        #expect(pair.serverEvents.last == .ended(.dtlsFailed))
        #expect(pair.context.handshakeFailures == [.noCommonSRTPProfile: 1])
    }

    @Test(
        "Each datagram of the handshake may be lost once, in both roles", arguments: [DTLSRole.client, .server], 0..<14)
    func lostOnce(role: DTLSRole, lost: Int) throws {
        var behaviour = ClientBehaviour()
        behaviour.role = role
        let pair = try TransportPair(behaviour: behaviour)
        var handshake = 0
        pair.loses = { datagram in
            guard (20...63).contains(datagram.bytes[0]) else { return false }
            handshake += 1
            return handshake == lost + 1
        }
        #expect(pair.run(for: .seconds(5)) { pair.client.isConnected && pair.server.isConnected })
    }

    @Test(
        "D9: before a nomination media goes to the source of the handshake", arguments: [DTLSRole.client, .server])
    func lateNomination(role: DTLSRole) throws {
        var behaviour = ClientBehaviour()
        behaviour.role = role
        behaviour.nominationDelay = .milliseconds(500)
        let pair = try TransportPair(behaviour: behaviour)
        #expect(pair.run(for: .milliseconds(role == .client ? 200 : 700)) { pair.serverEvents.contains(.connected) })
        #expect(pair.server.media.pointee.destination == pair.clientAddress)
        #expect(pair.run(for: .milliseconds(100)) { pair.client.isConnected })
        pair.run(for: .seconds(20))
        #expect(pair.server.isConnected)
        #expect(!pair.serverEvents.contains { if case .moved = $0 { true } else { false } })
    }

    @Test("A peer that never nominates is closed after its timeout, and its handshake keeps no worker busy")
    func neverNominated() throws {
        var behaviour = ClientBehaviour()
        behaviour.nominationDelay = .seconds(100)
        let pair = try TransportPair(behaviour: behaviour)
        // What the server says does not arrive: its flight is repeated by the timer, to where the client's came from.
        pair.loses = { !$0.toServer && (20...63).contains($0.bytes[0]) }
        pair.run(for: .milliseconds(900))
        #expect(pair.server.nextDeadline > pair.now)
        #expect(pair.sent.count { !$0.toServer && $0.bytes[0] == 22 } >= 4)
        pair.run(for: .seconds(60))
        #expect(pair.serverEvents.last == .ended(.iceTimeout))
    }

    @Test(
        "A ClientHello ahead of the peer's description is answered when that arrives, not at the client's retransmission"
    )
    func lateDescription() throws {
        let pair = try TransportPair(remoteKnown: false)
        pair.run(for: .milliseconds(200))
        #expect(pair.client.isICEConnected && !pair.serverReceived.contains(.dropped(.dtlsUnexpected)))
        describe(pair)
        // The client's next retransmission would be 250 ms after the first hello.
        #expect(pair.run(for: .milliseconds(40)) { pair.client.isConnected && pair.server.isConnected })
    }

    @Test("Only a first flight is kept for a description that does not arrive")
    func lateDescriptionIsBounded() throws {
        let pair = try TransportPair(remoteKnown: false)
        pair.run(for: .seconds(12))
        #expect(pair.serverReceived.contains(.dropped(.dtlsUnexpected)))
        describe(pair)
        #expect(pair.connect())
    }

    private func describe(_ pair: TransportPair) {
        let remote = RemoteTransport(
            ice: TransportPair.clientICE, fingerprintSHA256: Shared.clientCertificate.fingerprintSHA256,
            localRole: .server)
        pair.withOutput({ pair.server.setRemote(remote, at: pair.now, into: &$0) }, toServer: false)
    }
}
