import Cryptography
import DTLS
import Primitives
import TestSupport
import Testing

/// One end with what it wrote.
struct End: ~Copyable {
    let association: DTLSAssociation
    var output = OutboundBatch(datagrams: 64, bytes: 128 * 1_024)
    static let address = SocketAddress(ipv4: 0x7f00_0001, port: 5_000)

    init(_ context: DTLSContext, _ role: DTLSAssociation.Role, fingerprint: [UInt8]) throws {
        association = try #require(
            DTLSAssociation(
                context: context, role: role, fingerprintSHA256: fingerprint, handshakeTimeout: .seconds(30)))
    }

    mutating func start(at now: MonotonicTime) { association.start(at: now, to: Self.address, into: &output) }

    mutating func receive(_ datagram: [UInt8], at now: MonotonicTime) -> DropReason? {
        datagram.withUnsafeBytes { association.receive($0, at: now, to: Self.address, into: &output) }
    }

    /// Sends a packet of application data.
    mutating func send(_ packet: [UInt8]) -> Bool {
        packet.withUnsafeBytes { association.send($0, to: Self.address, into: &output) }
    }

    mutating func advance(to now: MonotonicTime) { association.advance(to: now, to: Self.address, into: &output) }

    /// The peer is at another port.
    mutating func follow(to port: UInt16, at now: MonotonicTime) {
        association.follow(
            to: SocketAddress(ipv4: 0x7f00_0001, port: 5_000 + port), at: now, into: &output)
    }

    mutating func take() -> [[UInt8]] {
        defer { output.removeAll() }
        return output.entries.map { Array(output.bytes(of: $0)) }
    }
}

@Suite("DTLS associations")
struct AssociationTests {
    static let certificate = make()
    static let other = make()

    private static func make() -> Certificate {
        do { return try Certificate.selfSigned() } catch { preconditionFailure("no certificate: \(error)") }
    }

    private func context(mtu: Int = 1_200, _ certificate: Certificate = certificate) throws -> DTLSContext {
        try DTLSContext(certificate: certificate, maximumDatagram: mtu)
    }

    @Test(
        "A ClientHello in one or two datagrams is answered, in either order",
        arguments: WireCapture.all, [false, true])
    func capturedHello(name: String, reversed: Bool) throws {
        let hello = try WireCapture.load(name).clientHello
        var server = try End(context(), .server, fingerprint: Self.other.fingerprintSHA256)
        server.start(at: .zero)
        for datagram in reversed ? hello.reversed() : hello {
            #expect(server.take().isEmpty, "nothing before the last fragment")
            #expect(server.receive(datagram, at: .zero) == nil)
        }
        let flight = server.take()
        let first = try #require(flight.first)
        #expect(first[0] == 22 && first[13] == 2, "a handshake record with a ServerHello, no HelloVerifyRequest")
        #expect(flight.allSatisfy { $0.count <= 1_200 })
        #expect(server.association.nextDeadline == MonotonicTime.zero + .milliseconds(250))
    }

    @Test("An unanswered flight is retransmitted with doubling intervals, and the handshake fails at its limit")
    func retransmission() throws {
        let hello = try WireCapture.load("firefox153").clientHello
        var server = try End(context(), .server, fingerprint: Self.other.fingerprintSHA256)
        server.start(at: .zero)
        for datagram in hello { _ = server.receive(datagram, at: .zero) }
        let flight = server.take()
        var times: [Int64] = []
        while case .handshaking = server.association.state {
            let now = server.association.nextDeadline
            server.advance(to: now)
            let again = server.take()
            if !again.isEmpty {
                times.append(now.milliseconds)
                // OpenSSL joins the first flight in one datagram and repeats it message by message.
                #expect(again.count >= flight.count)
            }
        }
        #expect(times == [250, 750, 1_750, 3_750, 7_750, 11_750, 15_750, 19_750, 23_750, 27_750])
        #expect(server.association.state == .ended(.timedOut))
        #expect(server.association.nextDeadline == .distantFuture)
    }

    @Test(
        "Both sides derive the same keys, each other's way round; fragments keep the datagram limit",
        arguments: [300, 1_200])
    func keys(mtu: Int) throws {
        let contexts = (try context(mtu: mtu, Self.certificate), try context(mtu: mtu, Self.other))
        var server = try End(contexts.0, .server, fingerprint: Self.other.fingerprintSHA256)
        var client = try End(contexts.1, .client, fingerprint: Self.certificate.fingerprintSHA256)
        server.start(at: .zero)
        client.start(at: .zero)
        for _ in 0..<6 {
            for datagram in client.take() {
                #expect(datagram.count <= mtu)
                _ = server.receive(datagram, at: .zero)
            }
            for datagram in server.take() {
                #expect(datagram.count <= mtu)
                _ = client.receive(datagram, at: .zero)
            }
        }
        guard case .connected(let a) = server.association.state, case .connected(let b) = client.association.state
        else {
            Issue.record("not connected: \(server.association.state), \(client.association.state)")
            return
        }
        #expect(a.profile == 7 && b.profile == 7)
        #expect(a.local == b.remote && a.remote == b.local && a.local != a.remote)
        #expect(a.local.count == 28)
        // close_notify arrives.
        client.association.close(to: End.address, into: &client.output)
        for datagram in client.take() { _ = server.receive(datagram, at: .zero) }
        #expect(server.association.state == .ended(.closedByPeer))
    }

    @Test("D15: a DTLS 1.0 ClientHello is refused with a specific error")
    func oldVersion() throws {
        // The Chromium hello without supported_versions, cut down to version feff throughout.
        var hello = try #require(try WireCapture.load("gstreamer122").clientHello.first)
        #expect(hello.count == 255)
        hello[25] = 0xfe
        hello[26] = 0xff
        var server = try End(context(), .server, fingerprint: Self.other.fingerprintSHA256)
        server.start(at: .zero)
        _ = server.receive(hello, at: .zero)
        for datagram in try WireCapture.load("gstreamer122").clientHello.dropFirst() {
            _ = server.receive(datagram, at: .zero)
        }
        #expect(server.association.state == .ended(.handshakeFailed(.noCommonVersion)))
        // The client need not wait for its own timeout: it gets the alert protocol_version (RFC 5246 section 7.2.2).
        let alert = try #require(server.take().last)
        #expect(alert.suffix(15).first == 21 && alert.last == 70)
    }

    @Test("F8, L1: a fragment that claims a message of 64 kB reserves no memory for it")
    func greedyFragment() throws {
        var server = try End(context(), .server, fingerprint: Self.other.fingerprintSHA256)
        server.start(at: .zero)
        let body: [UInt8] = [1, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 4, 0xfe, 0xfd, 1, 2]
        let record: [UInt8] = [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(body.count)] + body
        #expect(server.receive(record, at: .zero) == .dtlsMalformed)
        #expect(server.association.state == .handshaking)
    }

    @Test(
        "F8: a record that is not a ClientHello is dropped, and the peer's own ClientHello is answered",
        arguments: WireCapture.all)
    func brokenHello(name: String) throws {
        let hello = try WireCapture.load(name).clientHello
        var server = try End(context(), .server, fingerprint: Self.other.fingerprintSHA256)
        server.start(at: .zero)
        var dropped = 0
        for position in 13..<140 {
            // One byte of the first datagram is not what the peer sent: message header, then the lengths of the body's fields.
            var broken = hello
            broken[0][position] ^= 0xff
            for datagram in broken where server.receive(datagram, at: .zero) == .dtlsMalformed { dropped += 1 }
            // Some bytes may be anything, and then the hello is answered; some say that nothing is in common.
            guard server.association.state == .handshaking, server.take().isEmpty else {
                server = try End(context(), .server, fingerprint: Self.other.fingerprintSHA256)
                server.start(at: .zero)
                continue
            }
        }
        #expect(dropped > 2)
        #expect(server.association.state == .handshaking)
        for datagram in hello { _ = server.receive(datagram, at: .zero) }
        #expect(server.take().first?[13] == 2, "a ServerHello")
    }

    @Test(
        "A flight is retransmitted to the peer's current address; a peer that has it drops it, and four moves are followed"
    )
    func following() throws {
        let contexts = (try context(mtu: 1_200, Self.certificate), try context(mtu: 1_200, Self.other))
        var server = try End(contexts.0, .server, fingerprint: Self.other.fingerprintSHA256)
        var client = try End(contexts.1, .client, fingerprint: Self.certificate.fingerprintSHA256)
        server.start(at: .zero)
        server.follow(to: 1, at: .zero)
        #expect(server.take().isEmpty, "nothing was sent yet")
        client.start(at: .zero)
        for datagram in client.take() { _ = server.receive(datagram, at: .zero) }
        let flight = server.take()
        server.follow(to: 0, at: .zero)
        #expect(server.take().isEmpty, "the address is the same")
        for port in 1...6 as ClosedRange<UInt16> {
            server.follow(to: port, at: .zero)
            #expect(server.take() == (port <= 4 ? flight : []))
        }
        for datagram in flight + flight { _ = client.receive(datagram, at: .zero) }
        for datagram in client.take() { _ = server.receive(datagram, at: .zero) }
        for datagram in server.take() { _ = client.receive(datagram, at: .zero) }
        guard case .connected = server.association.state, case .connected = client.association.state else {
            Issue.record("not connected: \(server.association.state), \(client.association.state)")
            return
        }
        client.follow(to: 9, at: .zero + .seconds(5))
        #expect(client.take().isEmpty, "an old flight is not repeated")
    }

    @Test("Datagrams that are not DTLS records are refused; damaged records change nothing")
    func garbage() throws {
        var server = try End(context(), .server, fingerprint: Self.other.fingerprintSHA256)
        #expect(server.receive([22, 0xfe, 0xfd], at: .zero) == .dtlsMalformed)
        #expect(server.receive([UInt8](repeating: 22, count: 40), at: .zero) == .dtlsMalformed)
        let hello = try WireCapture.load("chromium156_nopqc").clientHello
        #expect(server.receive(hello[0], at: .zero) == .dtlsUnexpected, "not started")
        server.start(at: .zero)
        for length in stride(from: 13, to: hello[0].count, by: 9) {
            #expect(server.receive(Array(hello[0][..<length]), at: .zero) == nil)
        }
        #expect(server.receive(hello[0], at: .zero) == nil)
        #expect(!server.take().isEmpty)
    }
}
