import Cryptography
import Testing

@Suite("Certificates")
struct CertificateTests {
    @Test(
        "A self-signed certificate has the fingerprint of its bytes", arguments: [Certificate.KeyKind.p256, .rsa2048])
    func selfSigned(kind: Certificate.KeyKind) throws {
        let certificate = try Certificate.selfSigned(kind)
        #expect(certificate.der.count > 200)
        #expect(certificate.fingerprintSHA256 == Digest.sha256(certificate.der))
        #expect(try Certificate.selfSigned(kind) != certificate)
    }
}
