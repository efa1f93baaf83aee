import Testing

@testable import HTTPServing

@Suite("Request reader")
struct RequestReaderTests {
    /// What a connection's bytes say, given in pieces of `size`: each head with its body, and the status of a refusal.
    static func read(_ text: String, pieces size: Int = .max) -> [String] {
        var reader = HTTPRequestReader(
            limits: HTTPRequestReader.Limits(targetBytes: 200, headerBytes: 500, bodyBytes: 50))
        var found: [String] = []
        var head: HTTPRequestHead?
        func readSome() -> Bool {
            while true {
                if let known = head {
                    switch reader.nextBody() {
                    case .incomplete: return true
                    case .refused(let refusal):
                        found.append("\(refusal.status)")
                        return false
                    case .complete(let body):
                        found.append(
                            "\(known.method) \(known.authority)\(known.target) \(String(decoding: body, as: UTF8.self))"
                        )
                        head = nil
                    }
                }
                switch reader.nextHead() {
                case .incomplete: return true
                case .refused(let refusal):
                    found.append("\(refusal.status)")
                    return false
                case .complete(let next): head = next
                }
            }
        }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            rest.prefix(size).withUnsafeBytes { reader.append($0) }
            rest = rest.dropFirst(size)
            if !readSome() { break }
        }
        return found
    }

    @Test("Requests are split at their ends, in however many pieces they arrive", arguments: [1, 2, 3, 7, 1_000])
    func requests(_ pieces: Int) {
        let text =
            "\r\nGET /a?b HTTP/1.1\r\nHost: h:1\r\n\r\n"
            + "POST / HTTP/1.1\r\nhost:h\r\ncontent-length:\t 3 \r\n\r\nabc"
            + "PUT http://other/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
            + "3;ext=\"1\"\r\nabc\r\n0A\r\n0123456789\r\n000\r\nTrailer: t\r\n\r\n"
            + "GET / HTTP/1.0\r\n\r\n"
        #expect(
            Self.read(text, pieces: pieces)
                == ["GET h:1/a?b ", "POST h/ abc", "PUT other/x abc0123456789", "GET / "])
    }

    @Test(
        "Ambiguous requests are refused, in however many pieces they arrive",
        arguments: [
            ("two lengths", "Content-Length: 3\r\nContent-Length: 4\r\n", 400),
            ("two equal lengths", "Content-Length: 3\r\nContent-Length: 3\r\n", 400),
            ("a list of lengths", "Content-Length: 3, 3\r\n", 400), ("a sign", "Content-Length: +4\r\n", 400),
            ("a negative length", "Content-Length: -1\r\n", 400), ("hexadecimal", "Content-Length: 0x3\r\n", 400),
            ("no length", "Content-Length:\r\n", 400), ("digits of another script", "Content-Length: ٣\r\n", 400),
            ("a length beyond all", "Content-Length: 99999999999999999999\r\n", 413),
            ("two hosts", "Host: b\r\n", 400),
            ("both framings", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400),
            ("another coding", "Transfer-Encoding: gzip\r\n", 501),
            ("two codings", "Transfer-Encoding: gzip, chunked\r\n", 501),
            ("two coding fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
            ("a hidden coding", "Transfer-Encoding: \u{b}chunked\r\n", 400),
            ("a folded line", "X-A: b\r\n c: d\r\n", 400), ("a blank before the colon", "Content-Length : 3\r\n", 400),
            ("a blank before the name", " X-A: b\r\n", 400), ("no colon", "X-A\r\n", 400), ("no name", ": b\r\n", 400),
            ("a bare LF", "X-A: b\nX-B: c\r\n", 400), ("a bare CR", "X-A: b\rX-B: c\r\n", 400),
            ("a NUL", "X-A: b\0c\r\n", 400), ("a control character", "X-A: b\u{1}c\r\n", 400),
            ("two origins", "Origin: http://a\r\nOrigin: http://b\r\n", 400),
            ("two tokens", "Authorization: a\r\nAuthorization: b\r\n", 400),
            ("another expectation", "Expect: money\r\n", 417),
        ])
    func refused(_ name: String, _ fields: String, _ status: Int) {
        for pieces in [1, 5, 1_000] {
            let read = Self.read("POST / HTTP/1.1\r\nHost: a\r\n\(fields)\r\nabc", pieces: pieces)
            #expect(read == ["\(status)"], "\(name)")
        }
    }

    @Test(
        "Malformed request lines are refused",
        arguments: [
            ("GET / HTTP/1.1\r\n\r\n", 400),  // no Host
            ("GET /\r\nHost: a\r\n\r\n", 400), ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 505), ("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
            ("GET / HTTP/1.1\nHost: a\n\n", 400), ("\u{16}\u{3}\u{1}", 400),
            ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400), ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET http://b@c/ HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", 400),
            ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400), ("SSH-2.0-x\r\n\r\n", 400),
        ])
    func lines(_ text: String, _ status: Int) {
        for pieces in [1, 1_000] { #expect(Self.read(text, pieces: pieces) == ["\(status)"]) }
    }

    @Test(
        "Malformed chunks are refused",
        arguments: [
            "+3\r\nabc\r\n0\r\n\r\n", "-1\r\n", "0x3\r\nabc\r\n", "3\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n",
            "3 \r\nabc\r\n0\r\n\r\n",
            "\r\nabc", ";x\r\n", "000000003\r\nabc\r\n", "3\r\nabc\n0\r\n\r\n", "3;\u{1}\r\nabc\r\n",
            "0\r\nx\ny\r\n\r\n",
        ])
    func chunks(_ body: String) {
        for pieces in [1, 1_000] {
            let read = Self.read(
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\(body)", pieces: pieces)
            #expect(read == ["400"])
        }
    }

    @Test("Limits are enforced before the bytes beyond them are kept", arguments: [1, 1_000])
    func limits(_ pieces: Int) {
        let long = String(repeating: "a", count: 600)
        #expect(Self.read("GET /\(long.prefix(200)) HTTP/1.1\r\nHost: a\r\n\r\n", pieces: pieces) == ["414"])
        #expect(Self.read("GET /\(long)", pieces: pieces) == ["414"], "without an end")
        #expect(Self.read("GET / HTTP/1.1\r\nHost: a\r\nX: \(long)", pieces: pieces) == ["431"])
        let fields = String(repeating: "X:\r\n", count: 100)
        #expect(Self.read("GET / HTTP/1.1\r\n\(fields)Host: a\r\n\r\n", pieces: pieces) == ["431"])
        #expect(Self.read("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 51\r\n\r\n", pieces: pieces) == ["413"])
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(Self.read(chunked + "33\r\n\(long.prefix(51))\r\n", pieces: pieces) == ["413"])
        #expect(Self.read(chunked + "1;\(String(repeating: "x", count: 5_000))", pieces: pieces) == ["400"])
        #expect(Self.read(chunked + "0\r\n\(String(repeating: "x: y\r\n", count: 1_000))", pieces: pieces) == ["400"])
    }

    @Test("Damaged requests are read alike in however many pieces they arrive")
    func noise() {
        var state: UInt64 = 7
        func next(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        let good =
            "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
            + "POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: u\r\n\r\nGET / HTTP/1.0\r\n\r\n"
        for _ in 0..<3_000 {
            var bytes = Array(good.utf8)
            for _ in 0...next(3) {
                switch next(3) {
                case 0: bytes.remove(at: next(bytes.count))
                case 1: bytes[next(bytes.count)] = [0x0a, 0x0d, 0x20, 0x30, 0x3a, 0x00][next(6)]
                default: bytes.insert([0x0a, 0x0d, 0x20, 0x30, 0x2b, 0xff][next(6)], at: next(bytes.count))
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(Self.read(text, pieces: 1 + next(9)) == Self.read(text))
        }
    }
}
