import Cryptography
import Foundation
import Testing

@testable import martlet

/// Certificates and keys that a TLS listener cannot use are found before anything is opened.
@Suite("Certificate faults")
struct CertificateFaultTests {
    /// A folder with one file of each kind; gone with the test.
    final class Files {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)

        init() throws {
            try FileManager.default.createDirectory(
                at: folder.appending(path: "folder"), withIntermediateDirectories: true)
            let other = try Certificate.selfSigned()
            try write("cert.pem", Self.certificate)
            try write("chain.pem", Self.certificate + Self.pem("CERTIFICATE", other.der))
            try write("key.pem", Self.key)
            try write("other.pem", Self.pem("EC PRIVATE KEY", other.privateKeyDER))
            try write("locked.pem", Self.locked)
            try write("text.pem", "hello\n")
            try write("empty.pem", "")
            try write("broken-cert.pem", Self.pem("CERTIFICATE", Array(other.der.dropLast(9))))
            try write("broken-chain.pem", Self.certificate + Self.pem("CERTIFICATE", [1, 2, 3]))
            try write("broken-key.pem", Self.pem("EC PRIVATE KEY", [1, 2, 3]))
            try Data(other.der).write(to: folder.appending(path: "cert.der"))
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        private func write(_ name: String, _ text: String) throws {
            try Data(text.utf8).write(to: folder.appending(path: name))
        }

        private static func pem(_ label: String, _ der: [UInt8]) -> String {
            let body = Data(der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
            return "-----BEGIN \(label)-----\n\(body)\n-----END \(label)-----\n"
        }

        /// Valid for 30 days from `CertificateFaultTests.start`.
        private static let certificate = """
            -----BEGIN CERTIFICATE-----
            MIIBfTCCASOgAwIBAgIUWaEMs7kINQqOnJfnjN4vZJyDsdkwCgYIKoZIzj0EAwIw
            FDESMBAGA1UEAwwJYS5leGFtcGxlMB4XDTI2MTEyMjIyMzEzM1oXDTI2MTIyMjIy
            MzEzM1owFDESMBAGA1UEAwwJYS5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0D
            AQcDQgAEC8WKBQAUj8bP6An4TnLcDtXW1dFRz0E5chxs9XzWyCmJyFFZ461y+nU5
            KfM6Mliztov009aBl28aY1seXzn2mqNTMFEwHQYDVR0OBBYEFM1sEZ5yhcY6Fc+o
            04wNtFJkFFxPMB8GA1UdIwQYMBaAFM1sEZ5yhcY6Fc+o04wNtFJkFFxPMA8GA1Ud
            EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgNQk02g8ArsLAeHQAgJKbKksv
            jCoYnPFlVlSfNXEe6AICIQCC5H441KToRjzL+nDK/Q3sEL5TFwMcTlnU+0aWzL5K
            TA==
            -----END CERTIFICATE-----

            """

        private static let key = """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHbopCYuTonEBMI3i
            YB6SeVupXclqWImEAEx3RsN31b+hRANCAAQLxYoFABSPxs/oCfhOctwO1dbV0VHP
            QTlyHGz1fNbIKYnIUVnjrXL6dTkp8zoyWLO2i/TT1oGXbxpjWx5fOfaa
            -----END PRIVATE KEY-----

            """

        /// Made with `openssl genpkey -algorithm ed25519 | openssl pkey -aes256`.
        private static let locked = """
            -----BEGIN ENCRYPTED PRIVATE KEY-----
            MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhF1lgOiDIZYQICCAAw
            DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECl/b1lftyej8ii8eMhb0+sEQIJF
            MzLpkjUmAnGMWFXEvEKiZ1ihCCceYJstdlJPZeQ401L7CgBDcJeuCEtHQZDZyBmy
            o+geANTiAWzKCaiO2HU=
            -----END ENCRYPTED PRIVATE KEY-----
            """
    }

    /// When the certificate's time begins, in seconds since 1970.
    private static let start: Int64 = 1795386693
    private static let day: Int64 = 86_400

    private func load(_ tls: [String], at now: Int64 = start + day) throws -> (warnings: [String], faults: [String]) {
        let files = try Files()
        let path = files.folder.path
        let settings = tls.map { "    \($0.replacing("@", with: path + "/"))" }.joined(separator: "\n")
        var machine = ConfigurationFaultTests.machine
        machine.now = now
        let (_, warnings, faults) = try ConfigurationFaultTests.load(
            "http:\n  tls:\n\(settings)\(ConfigurationFaultTests.key)", on: machine)
        func short(_ text: String) -> String { text.replacing(path + "/", with: "@") }
        return (warnings.map(short), faults.map(short))
    }

    @Test(
        "Files that are no matching certificate and key are reported",
        arguments: [
            (
                ["certificate: @text.pem", "key: @key.pem"],
                "m.yaml:3: http.tls.certificate: '@text.pem' holds no certificate in PEM form"
            ),
            (
                ["certificate: @empty.pem", "key: @key.pem"],
                "m.yaml:3: http.tls.certificate: '@empty.pem' holds no certificate in PEM form"
            ),
            (
                ["certificate: @cert.der", "key: @key.pem"],
                "m.yaml:3: http.tls.certificate: '@cert.der' holds no certificate in PEM form; it looks like DER: "
                    + "'openssl x509 -inform der -in FILE -out FILE.pem' converts it"
            ),
            (
                ["certificate: @key.pem", "key: @cert.pem"],
                "m.yaml:3: http.tls.certificate: '@key.pem' holds no certificate in PEM form; "
                    + "it looks like the file for http.tls.key"
            ),
            (
                ["certificate: @broken-cert.pem", "key: @key.pem"],
                "m.yaml:3: http.tls.certificate: '@broken-cert.pem' holds a certificate that cannot be decoded; copy it again"
            ),
            (
                ["certificate: @broken-chain.pem", "key: @key.pem"],
                "m.yaml:3: http.tls.certificate: '@broken-chain.pem' holds a certificate that cannot be decoded; copy it again"
            ),
            (
                ["certificate: @folder", "key: @key.pem"],
                "m.yaml:3: http.tls.certificate: '@folder' is a directory; expected a file"
            ),
            (
                ["certificate: @none.pem", "key: @key.pem"],
                "m.yaml:3: http.tls.certificate: '@none.pem' cannot be read: No such file or directory"
            ),
            (
                ["certificate: @cert.pem", "key: @text.pem"],
                "m.yaml:4: http.tls.key: '@text.pem' holds no private key in PEM form"
            ),
            (
                ["certificate: @cert.pem", "key: @broken-key.pem"],
                "m.yaml:4: http.tls.key: '@broken-key.pem' holds a private key that cannot be decoded; copy it again"
            ),
            (
                ["certificate: @cert.pem", "key: @locked.pem"],
                "m.yaml:4: http.tls.key: '@locked.pem' is encrypted with a passphrase; write it without one: "
                    + "'openssl pkey -in FILE -out PLAIN'"
            ),
            (
                ["certificate: @cert.pem", "key: @other.pem"],
                "m.yaml:4: http.tls.key: '@other.pem' is not the key of the certificate '@cert.pem', which must come first in its file"
            ),
            (
                ["certificate: @cert.pem"],
                "m.yaml:3: http.tls.certificate: a certificate needs its key; also set http.tls.key"
            ),
            (["key: @key.pem"], "m.yaml:3: http.tls.key: a key needs its certificate; also set http.tls.certificate"),
        ])
    func faults(tls: [String], fault: String) throws {
        let faults = try load(tls).faults
        #expect(faults == [fault])
    }

    @Test("A certificate with its chain and its key is accepted")
    func good() throws {
        let result = try load(["certificate: @chain.pem", "key: @key.pem"])
        #expect(result.faults == [] && result.warnings == [])
    }

    @Test("A certificate outside its validity period causes a warning, and the server starts")
    func validity() throws {
        let tls = ["certificate: @cert.pem", "key: @key.pem"]
        #expect(
            try load(tls, at: Self.start + 31 * Self.day).warnings == [
                "m.yaml:3: http.tls.certificate: '@cert.pem' has expired; browsers refuse it until it is renewed"
            ])
        #expect(
            try load(tls, at: Self.start - 1).warnings == [
                "m.yaml:3: http.tls.certificate: '@cert.pem' is not valid yet; check the clock of this machine"
            ])
    }
}
