import Testing

@testable import SRTP

@Test("libsrtp2 starts with OpenSSL's ciphers and passes the known-answer tests")
func libraryStarts() throws {
    try SRTPLibrary.start()
    #expect(SRTPLibrary.cipherDescription.contains("OpenSSL"))
}
