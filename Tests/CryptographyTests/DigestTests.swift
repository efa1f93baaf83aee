import Cryptography
import Primitives
import Testing

@Suite("Digests")
struct DigestTests {
    @Test(
        "SHA-256 (FIPS 180-4 examples)",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ])
    func sha256(message: String, digest: String) {
        #expect(Digest.sha256(Array(message.utf8)).hexadecimal == digest)
    }

    @Test("HMAC-SHA1 (RFC 2202 cases 1, 2 and 6)")
    func hmacSHA1() {
        let jefe = Digest.hmacSHA1(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
        #expect(jefe.hexadecimal == "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
        let first = Digest.hmacSHA1(key: [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8))
        #expect(first.hexadecimal == "b617318655057264e28bc0b6fb378c8ef146be00")
        let long = Digest.hmacSHA1(
            key: [UInt8](repeating: 0xaa, count: 80),
            Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8))
        #expect(long.hexadecimal == "aa4ae5e15272d00e95705637ce8a3b55ed402112")
    }

    @Test("HMAC-SHA256 (RFC 4231 cases 1 and 2), and an empty key")
    func hmacSHA256() {
        let jefe = Digest.hmacSHA256(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
        #expect(jefe.hexadecimal == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        let first = Digest.hmacSHA256(key: [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8))
        #expect(first.hexadecimal == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
        #expect(
            Digest.hmacSHA256(key: [], []).hexadecimal
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    }
}
