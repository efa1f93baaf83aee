import Primitives
import Testing

@testable import Cryptography

@Suite("Password hashes")
struct PasswordHashTests {
    @Test("RFC 7914 section 12: the first three vectors")
    func vectors() throws {
        #expect(
            PasswordHash.derive("", [], cost: 16, blockSize: 1, parallelism: 1, length: 64)?.hexadecimal
                == "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
                + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906")
        #expect(
            PasswordHash.derive(
                "password", Array("NaCl".utf8), cost: 1024, blockSize: 8, parallelism: 16, length: 64)?.hexadecimal
                == "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
                + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640")
        #expect(
            PasswordHash.derive(
                "pleaseletmein", Array("SodiumChloride".utf8), cost: 16384, blockSize: 8, parallelism: 1, length: 64)?
                .hexadecimal
                == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
                + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887")
    }

    @Test("Only the password itself matches, and two hashes of one password differ")
    func matching() throws {
        let hash = try #require(PasswordHash("correct horse"))
        #expect(hash.matches("correct horse"))
        for wrong in ["", "correct hors", "correct horse ", "Correct horse"] { #expect(!hash.matches(wrong)) }
        let empty = try #require(PasswordHash(""))
        #expect(empty.matches("") && !empty.matches("a"))
    }
}
