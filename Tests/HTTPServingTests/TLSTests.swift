import Cryptography
import Foundation
import Logging
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
    @Test("HTTPS is served with the given certificate, and plain HTTP is not")
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
            let plain = try TCPClient(port: server.port)
            try await plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await plain.isEnded())
        }
    }
}
