import Cryptography
import Foundation
import Logging
import Primitives
import Synchronization
import Testing

@testable import HTTPServing

/// A certificate and key of our own as PEM files, removed at the end.
private struct TemporaryTLSFiles {
    let folder: URL
    let files: TLSFiles

    init() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let certificate = try Certificate.selfSigned()
        func write(_ name: String, _ label: String, _ bytes: [UInt8]) throws -> String {
            let url = folder.appendingPathComponent(name)
            let text = Data(bytes).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
            try Data("-----BEGIN \(label)-----\n\(text)\n-----END \(label)-----\n".utf8).write(to: url)
            return url.path
        }
        self.folder = folder
        files = TLSFiles(
            certificatePath: try write("certificate.pem", "CERTIFICATE", certificate.der),
            keyPath: try write("key.pem", "EC PRIVATE KEY", certificate.privateKeyDER))
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }
}

@Suite("TLS", .serialized, .timeLimit(.minutes(1)))
struct TLSTests {
    @Test("HTTPS is served with the configured certificate, plain HTTP is refused")
    func https() async throws {
        let certificate = try TemporaryTLSFiles()
        defer { certificate.remove() }
        try await ServerFixture.with(
            configure: { $0.tls = certificate.files },
            handler: { HTTPResponse(text: "\($0.scheme) " + String(repeating: "x", count: 100_000)) }
        ) { server in
            for (status, body) in await getOverTLS("https://127.0.0.1:\(server.port)/", times: 3) {
                #expect(status == 200)
                #expect(body == "https " + String(repeating: "x", count: 100_000))
            }
            #expect(server.statistics.connectionsAccepted == 1, "the connection is kept")
            let ends = try #require(server.statistics.certificateExpiry)
            #expect(abs(Date(timeIntervalSinceNow: 30 * 86_400).timeIntervalSince1970 - Double(ends)) < 600)
            let plain = try TCPClient(port: server.port)
            try await plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await plain.isEnded())
        }
    }

    private static let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

    /// Runs `body` against a server with a certificate.
    private static func served(
        clock: ManualClock = ManualClock(), handler: @escaping HTTPHandler = { _ in HTTPResponse(text: "served") },
        _ body: (HTTPServer) async throws -> Void
    ) async throws {
        let certificate = try TemporaryTLSFiles()
        defer { certificate.remove() }
        try await ServerFixture.with(
            clock: clock, configure: { $0.tls = certificate.files }, handler: handler, body)
    }

    @Test(
        "HTTP/1.1 is chosen from the client's protocols; a client that offers others only is refused (RFC 7301)"
    )
    func applicationProtocols() async throws {
        try await Self.served { server in
            let both = await OpenSSLClient(port: server.port, protocols: ["h2", "http/1.1"]).send(Self.request)
            #expect(both.applicationProtocol == "http/1.1" && both.reply.hasSuffix("served"))
            let none = await OpenSSLClient(port: server.port).send(Self.request)
            #expect(none.isConnected && none.applicationProtocol == nil && none.reply.hasSuffix("served"))
            let other = await OpenSSLClient(port: server.port, protocols: ["h2"]).send(Self.request)
            #expect(!other.isConnected)
        }
    }

    @Test("TLS 1.2 uses ephemeral keys and authenticated ciphers only (RFC 9325 section 4.2)")
    func oldCiphers() async throws {
        try await Self.served { server in
            func isServed(_ ciphers: String) async -> Bool {
                await OpenSSLClient(port: server.port, oldCiphers: ciphers).send(Self.request).reply.hasSuffix("served")
            }
            #expect(await isServed("ECDHE-ECDSA-AES128-GCM-SHA256"))
            #expect(await isServed("ECDHE-ECDSA-CHACHA20-POLY1305"))
            #expect(await !isServed("ECDHE-ECDSA-AES128-SHA"))
        }
    }

    @Test("close_notify is sent (RFC 8446 section 6.1), also by a connection that is given up")
    func endings() async throws {
        let clock = ManualClock()
        try await Self.served(clock: clock) { server in
            let asked = await OpenSSLClient(port: server.port).send(Self.request)
            #expect(asked.reply.hasSuffix("served") && asked.isTerminated)
            let kept = Self.request.replacing("Connection: close\r\n", with: "")
            async let idle = OpenSSLClient(port: server.port).send(kept)
            while server.statistics.responses[2] < 2 { await server.finishTurn() }
            await server.finishTurn()
            await clock.advance(by: .seconds(75), server)
            let outcome = await idle
            #expect(outcome.reply.hasSuffix("served") && outcome.isTerminated)
        }
    }

    @Test("A request is read alike in however many records it arrives")
    func records() async throws {
        try await Self.served(handler: { HTTPResponse(text: "\($0.body.count) served") }) { server in
            let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3000\r\n\r\n"
            for pieceBytes in [1, 7, 1_000] {
                let outcome = await OpenSSLClient(port: server.port, pieceBytes: pieceBytes)
                    .send(head + String(repeating: "a", count: 3_000))
                #expect(outcome.reply.hasSuffix("3000 served"))
            }
        }
    }

    @Test("A client that sends empty records delays no other")
    func keyUpdates() async throws {
        try await Self.served { server in
            let isServed = Mutex(false)
            async let flood = OpenSSLClient(port: server.port).updateKeys { isServed.withLock { $0 } }
            while server.statistics.connections == 0 { await server.finishTurn() }
            let other = await OpenSSLClient(port: server.port).send(Self.request)
            #expect(other.reply.hasSuffix("served"))
            isServed.withLock { $0 = true }
            #expect(await flood > 0)
        }
    }

    @Test("Unfinished handshakes displace each other, and no finished one is displaced by them")
    func handshakes() async throws {
        let clock = ManualClock()
        let certificate = try TemporaryTLSFiles()
        defer { certificate.remove() }
        try await ServerFixture.with(
            clock: clock,
            configure: {
                $0.tls = certificate.files
                $0.maximumHandshakes = 4
            }
        ) { server in
            let kept = Self.request.replacing("Connection: close\r\n", with: "")
            async let idle = OpenSSLClient(port: server.port).send(kept)
            while server.statistics.responses[2] < 1 { await server.finishTurn() }
            let half = try (0..<20).map { _ in try TCPClient(port: server.port) }
            for client in half { try await client.send([0x16, 3, 1, 2]) }
            let other = await OpenSSLClient(port: server.port).send(Self.request)
            #expect(other.reply.contains("200 OK"))
            for client in half.prefix(17) { #expect(try await client.isEnded()) }
            #expect(server.statistics.limitsReached == [.handshakes: 17])
            #expect(try await ConnectionTests.settles(server, at: 4))
            await clock.advance(by: .seconds(75), server)
            #expect(await idle.isTerminated)
        }
    }
}
