import Cryptography
import Testing

@Suite("Certificates and random strings")
struct CertificateTests {
    @Test(
        "A self-signed certificate has the fingerprint of its bytes", arguments: [Certificate.KeyKind.p256, .rsa2048])
    func selfSigned(kind: Certificate.KeyKind) throws {
        let certificate = try Certificate.selfSigned(kind)
        #expect(certificate.der.count > 200)
        #expect(certificate.fingerprintSHA256 == Digest.sha256(certificate.der))
        #expect(certificate.fingerprintText.count == 32 * 3 - 1)
        #expect(certificate.fingerprintText.allSatisfy { $0.isHexDigit || $0 == ":" })
        #expect(try Certificate.selfSigned(kind) != certificate)
    }

    @Test("ICE strings keep to ICE's alphabet and do not repeat")
    func iceStrings() {
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        let strings = (0..<100).map { _ in SecureRandom.iceString(length: 24) }
        #expect(strings.allSatisfy { $0.count == 24 && alphabet.isSuperset(of: $0) })
        #expect(Set(strings).count == 100)
        #expect(SecureRandom.bytes(16) != SecureRandom.bytes(16))
    }
}
