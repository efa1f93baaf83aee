import Cryptography
import DTLS
import Primitives

/// DTLS associations: raw datagrams at a waiting server and at a client in its handshake; and a whole handshake whose datagrams are
/// dropped, doubled, damaged and replaced. Nobody connects to another's certificate, and a connection that is up survives noise.
enum DTLSTarget {
    static let address = SocketAddress(ipv4: 0x7f00_0001, port: 5_000)

    private struct Contexts {
        let server: DTLSContext
        let client: DTLSContext
        let serverFingerprint: [UInt8]
        let clientFingerprint: [UInt8]
    }

    static func start() throws -> (UnsafeRawBufferPointer) -> Void {
        let server = try Certificate.selfSigned()
        let client = try Certificate.selfSigned()
        let contexts = Contexts(
            server: try DTLSContext(certificate: server, maximumDatagram: 1_200),
            client: try DTLSContext(certificate: client, maximumDatagram: 600),
            serverFingerprint: server.fingerprintSHA256, clientFingerprint: client.fingerprintSHA256)
        return { input in
            guard let mode = input.first else { return }
            let rest = UnsafeRawBufferPointer(rebasing: input[1...])
            switch mode % 4 {
            case 0: raw(rest, contexts, .server)
            case 1: raw(rest, contexts, .client)
            default: disturb(rest, contexts)
            }
        }
    }

    private static func make(_ contexts: Contexts, _ role: DTLSAssociation.Role) -> DTLSAssociation {
        let association = DTLSAssociation(
            context: role == .server ? contexts.server : contexts.client, role: role,
            fingerprintSHA256: role == .server ? contexts.clientFingerprint : contexts.serverFingerprint,
            handshakeTimeout: .seconds(30))
        guard let association else { preconditionFailure("OpenSSL has memory") }
        return association
    }

    private static func raw(_ bytes: UnsafeRawBufferPointer, _ contexts: Contexts, _ role: DTLSAssociation.Role) {
        var input = FuzzInput(bytes)
        var output = OutboundBatch(datagrams: 64, bytes: 65_536)
        let association = make(contexts, role)
        var now = MonotonicTime.zero
        association.start(at: now, to: address, into: &output)
        while !input.isEmpty {
            _ = association.receive(input.record(), at: now, to: address, into: &output)
            now = now + .milliseconds(40)
            association.advance(to: now, to: address, into: &output)
            output.removeAll()
            if case .connected = association.state { preconditionFailure("nobody connects without a certificate") }
        }
    }

    private static func disturb(_ bytes: UnsafeRawBufferPointer, _ contexts: Contexts) {
        var input = FuzzInput(bytes)
        var output = OutboundBatch(datagrams: 64, bytes: 65_536)
        let client = make(contexts, .client)
        let server = make(contexts, .server)
        var now = MonotonicTime.zero
        server.start(at: now, to: address, into: &output)
        client.start(at: now, to: address, into: &output)
        var toServer = take(&output)
        for _ in 0..<40 {
            for datagram in disturbed(toServer, &input) { deliver(datagram, server, now, &output) }
            let toClient = take(&output)
            for datagram in disturbed(toClient, &input) { deliver(datagram, client, now, &output) }
            toServer = take(&output)
            if case .connected = server.state, case .connected = client.state { break }
            now = now + .milliseconds(260)
            client.advance(to: now, to: address, into: &output)
            toServer += take(&output)
            server.advance(to: now, to: address, into: &output)
            for datagram in take(&output) { deliver(datagram, client, now, &output) }
            toServer += take(&output)
        }
        guard case .connected(let keys) = server.state, case .connected(let others) = client.state else { return }
        precondition(keys.local == others.remote && keys.remote == others.local, "both have the same keys")
        while !input.isEmpty {
            _ = server.receive(input.record(), at: now, to: address, into: &output)
            output.removeAll()
        }
        precondition(server.state == .connected(keys), "noise ends no connection")
    }

    private static func deliver(
        _ datagram: [UInt8], _ association: DTLSAssociation, _ now: MonotonicTime, _ output: inout OutboundBatch
    ) {
        datagram.withUnsafeBytes { _ = association.receive($0, at: now, to: address, into: &output) }
    }

    private static func take(_ output: inout OutboundBatch) -> [[UInt8]] {
        defer { output.removeAll() }
        return output.entries.map { Array(output.bytes(of: $0)) }
    }

    /// What arrives of datagrams: one byte of input decides about each, none is left alone.
    private static func disturbed(_ datagrams: [[UInt8]], _ input: inout FuzzInput) -> [[UInt8]] {
        datagrams.flatMap { datagram -> [[UInt8]] in
            guard !input.isEmpty else { return [datagram] }
            switch input.byte() {
            case 1: return []
            case 2: return [datagram, datagram]
            case 3:
                var damaged = datagram
                damaged[(Int(input.byte()) << 8 | Int(input.byte())) % damaged.count] ^= input.byte()
                return [damaged]
            case 4: return [Array(input.record()), datagram]
            case 5: return [Array(datagram.prefix(Int(input.byte())))]
            default: return [datagram]
            }
        }
    }
}
