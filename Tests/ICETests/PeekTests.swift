import ICE
import TestSupport
import Testing

@Suite("User name of a check from an unknown source")
struct PeekTests {
    static func request(username: String, declared: Int? = nil) -> [UInt8] {
        let name = Array(username.utf8)
        let padded = name + [UInt8](repeating: 0, count: (4 - name.count % 4) % 4)
        let length = declared ?? name.count
        let body = [0, 6, UInt8(length >> 8), UInt8(length & 255)] + padded
        return [0, 1, UInt8(body.count >> 8), UInt8(body.count & 255), 0x21, 0x12, 0xa4, 0x42]
            + [UInt8](repeating: 7, count: 12) + body
    }

    private func ufrag(_ datagram: [UInt8]) -> String? {
        datagram.withUnsafeBytes { STUNPeek.localUfrag(of: $0.bytes) }
            .map { String(decoding: datagram[$0], as: UTF8.self) }
    }

    @Test("The fragment before the colon is the server's")
    func local() {
        #expect(ufrag(Self.request(username: "abcd:efgh")) == "abcd")
        #expect(ufrag(Self.request(username: "a:")) == "a")
    }

    @Test("F8: a datagram that is no Binding request with a user name yields none")
    func refused() {
        #expect(ufrag(Self.request(username: "abcdefgh")) == nil, "no colon")
        #expect(ufrag(Self.request(username: ":abcd")) == nil, "nothing before the colon")
        #expect(ufrag(Self.request(username: "ab:cd", declared: 400)) == nil, "the attribute ends behind the datagram")
        #expect(ufrag([]) == nil)
        #expect(ufrag([UInt8](repeating: 0, count: 20)) == nil, "no magic cookie")
        let whole = Self.request(username: "abcd:efgh")
        for length in 0..<whole.count { #expect(ufrag(Array(whole[..<length])) == nil, "cut to \(length)") }
        var other = whole
        other[1] = 3
        #expect(ufrag(other) == nil, "not a Binding request")
    }
}
