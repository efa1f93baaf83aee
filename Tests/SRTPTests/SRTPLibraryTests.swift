import Testing

@testable import SRTP

@Test("libsrtp2 starts with OpenSSL ciphers and gives the known answers")
func libraryStarts() throws {
    try SRTPLibrary.start()
    #expect(SRTPLibrary.cipherDescription.contains("OpenSSL"))
}
