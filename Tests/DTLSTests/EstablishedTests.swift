import Cryptography
import DTLS
import Primitives
import Testing

@Suite("DTLS after the handshake")
struct EstablishedTests {
    private typealias Ends = AssociationTests

    private func context(_ certificate: Certificate, keepsLibrary: Bool) throws -> DTLSContext {
        try DTLSContext(certificate: certificate, maximumDatagram: 1_200, keepsLibrary: keepsLibrary)
    }

    /// Both ends; the client's OpenSSL speaks to the end, so that it judges what the server writes itself.
    private func ends(clientKeeps: Bool) throws -> (server: DTLSContext, client: DTLSContext) {
        (try context(Ends.certificate, keepsLibrary: false), try context(Ends.other, keepsLibrary: clientKeeps))
    }

    private static func shake(_ server: inout End, _ client: inout End) {
        server.start(at: .zero)
        client.start(at: .zero)
        for _ in 0..<6 {
            for datagram in client.take() { _ = server.receive(datagram, at: .zero) }
            for datagram in server.take() { _ = client.receive(datagram, at: .zero) }
        }
    }

    private static func isConnected(_ association: DTLSAssociation) -> Bool {
        if case .connected = association.state { true } else { false }
    }

    @Test("close_notify is understood both ways, by OpenSSL and by the other end without it", arguments: [false, true])
    func closing(clientKeeps: Bool) throws {
        let contexts = try ends(clientKeeps: clientKeeps)
        for closesServer in [false, true] {
            var server = try End(contexts.server, .server, fingerprint: Ends.other.fingerprintSHA256)
            var client = try End(contexts.client, .client, fingerprint: Ends.certificate.fingerprintSHA256)
            Self.shake(&server, &client)
            #expect(Self.isConnected(server.association) && Self.isConnected(client.association))
            if closesServer {
                server.association.close(to: End.address, into: &server.output)
                for datagram in server.take() { _ = client.receive(datagram, at: .zero) }
                #expect(client.association.state == .ended(.closedByPeer))
            } else {
                client.association.close(to: End.address, into: &client.output)
                for datagram in client.take() { _ = server.receive(datagram, at: .zero) }
                #expect(server.association.state == .ended(.closedByPeer))
            }
        }
    }

    @Test("Damaged, unencrypted and foreign alerts close nothing")
    func forgeries() throws {
        let contexts = try ends(clientKeeps: true)
        var server = try End(contexts.server, .server, fingerprint: Ends.other.fingerprintSHA256)
        var client = try End(contexts.client, .client, fingerprint: Ends.certificate.fingerprintSHA256)
        Self.shake(&server, &client)
        client.association.close(to: End.address, into: &client.output)
        let alert = try #require(client.take().first)
        for position in alert.indices {
            var damaged = alert
            damaged[position] ^= 1
            _ = server.receive(damaged, at: .zero)
            _ = server.receive(Array(alert[...position].dropLast()), at: .zero)
        }
        _ = server.receive([21, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 9, 0, 2, 2, 0], at: .zero)
        _ = server.receive([21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40], at: .zero)
        #expect(Self.isConnected(server.association))
        #expect(server.take().isEmpty)
        _ = server.receive(alert + [0], at: .zero)
        #expect(server.association.state == .ended(.closedByPeer))
    }

    @Test(
        "A server's lost last flight is retransmitted when the client repeats its own, at most twelve times",
        arguments: [false, true])
    func lastFlight(clientKeeps: Bool) throws {
        let contexts = try ends(clientKeeps: clientKeeps)
        var server = try End(contexts.server, .server, fingerprint: Ends.other.fingerprintSHA256)
        var client = try End(contexts.client, .client, fingerprint: Ends.certificate.fingerprintSHA256)
        server.start(at: .zero)
        client.start(at: .zero)
        for datagram in client.take() { _ = server.receive(datagram, at: .zero) }
        for datagram in server.take() { _ = client.receive(datagram, at: .zero) }
        let finish = client.take()
        for datagram in finish { _ = server.receive(datagram, at: .zero) }
        #expect(Self.isConnected(server.association) && !Self.isConnected(client.association))
        let lost = server.take()
        #expect(!lost.isEmpty)
        client.advance(to: client.association.nextDeadline)
        for datagram in client.take() { _ = server.receive(datagram, at: .zero) }
        let again = server.take()
        #expect(again == lost)
        for datagram in again { _ = client.receive(datagram, at: .zero) }
        #expect(Self.isConnected(client.association))
        var answered = 1
        for _ in 0..<20 {
            for datagram in finish { _ = server.receive(datagram, at: .zero) }
            if !server.take().isEmpty { answered += 1 }
        }
        #expect(answered == 12)
    }

    @Test("Packets go both ways with their boundaries, none twice, none damaged", arguments: [false, true])
    func applicationData(clientKeeps: Bool) throws {
        let contexts = try ends(clientKeeps: clientKeeps)
        var server = try End(contexts.server, .server, fingerprint: Ends.other.fingerprintSHA256)
        var client = try End(contexts.client, .client, fingerprint: Ends.certificate.fingerprintSHA256)
        Self.shake(&server, &client)
        for length in [1, 100, 1_160, 1_188] {
            let packet = (0..<length).map { UInt8($0 & 0xff) }
            let fromServer = try Self.send(packet, from: &server)
            #expect(client.receive(fromServer, at: .zero) == nil)
            #expect(Self.packets(contexts.client) == [packet])
            let fromClient = try Self.send(packet, from: &client)
            var damaged = fromClient
            damaged[fromClient.count - 1] ^= 1
            _ = server.receive(damaged, at: .zero)
            #expect(Self.packets(contexts.server).isEmpty)
            // Two records in one datagram.
            let second = try Self.send([7, 7], from: &client)
            _ = server.receive(fromClient + second, at: .zero)
            #expect(Self.packets(contexts.server) == [packet, [7, 7]])
            _ = server.receive(fromClient, at: .zero)
            #expect(Self.packets(contexts.server).isEmpty, "a replay")
        }
        client.association.close(to: End.address, into: &client.output)
        for datagram in client.take() { _ = server.receive(datagram, at: .zero) }
        #expect(server.association.state == .ended(.closedByPeer))
    }

    @Test("Records in another order are accepted within 64 numbers")
    func replayWindow() throws {
        let contexts = try ends(clientKeeps: true)
        var server = try End(contexts.server, .server, fingerprint: Ends.other.fingerprintSHA256)
        var client = try End(contexts.client, .client, fingerprint: Ends.certificate.fingerprintSHA256)
        Self.shake(&server, &client)
        var records: [[UInt8]] = []
        for number in 0..<100 { records.append(try Self.send([UInt8(number)], from: &client)) }
        var arrived: [UInt8] = []
        for record in records.reversed() {
            _ = server.receive(record, at: .zero)
            arrived += Self.packets(contexts.server).flatMap { $0 }
        }
        #expect(arrived == (36..<100).reversed().map { UInt8($0) })
    }

    private static func send(_ packet: [UInt8], from end: inout End) throws -> [UInt8] {
        let isSent = end.send(packet)
        #expect(isSent)
        return try #require(end.take().first)
    }

    /// What the context's association received last.
    private static func packets(_ context: DTLSContext) -> [[UInt8]] {
        let packets = (0..<context.applicationData.count).map { Array(context.applicationData.packet($0)) }
        context.applicationData.removeAll()
        return packets
    }
}
