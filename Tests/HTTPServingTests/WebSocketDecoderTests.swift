import Testing

@testable import HTTPServing

@Suite("WebSocket frames")
struct WebSocketDecoderTests {
    typealias Event = WebSocketDecoder.Event

    /// A client's frame.
    static func frame(_ first: UInt8, _ payload: [UInt8], isMasked: Bool = true) -> [UInt8] {
        var frame: [UInt8] = [first]
        let flag: UInt8 = isMasked ? 0x80 : 0
        if payload.count < 126 {
            frame.append(flag | UInt8(payload.count))
        } else {
            frame += [flag | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
        }
        guard isMasked else { return frame + payload }
        let mask: [UInt8] = [0x37, 0xfa, 0x21, 0x3d]
        return frame + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
    }

    /// All events of `bytes`, given in pieces of `size`.
    static func decode(_ bytes: [UInt8], limit: Int = 1_000, pieces size: Int = .max) -> [Event] {
        var decoder = WebSocketDecoder(maximumMessageBytes: limit)
        var events: [Event] = []
        var start = 0
        while start < bytes.count {
            let end = size > bytes.count - start ? bytes.count : start + size
            bytes[start..<end].withUnsafeBytes { decoder.receive($0, events: &events) }
            start = end
        }
        return events
    }

    @Test(
        "The masked example of RFC 6455 section 5.7 is read as Hello, in however many pieces it arrives",
        arguments: [1, 2, 3, 5, 100])
    func example(_ pieces: Int) {
        let bytes: [UInt8] = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]
        #expect(Self.decode(bytes, pieces: pieces) == [.message(.text("Hello"))])
        #expect(Self.decode(bytes + bytes, pieces: pieces).count == 2)
    }

    @Test("Fragments are joined, with control frames between them", arguments: [1, 4, 1_000])
    func fragments(_ pieces: Int) {
        let bytes =
            Self.frame(0x01, Array("Hel".utf8)) + Self.frame(0x89, Array("p".utf8)) + Self.frame(0x00, [])
            + Self.frame(0x80, Array("lo".utf8)) + Self.frame(0x8a, []) + Self.frame(0x82, [1, 2])
        #expect(
            Self.decode(bytes, pieces: pieces)
                == [.ping(Array("p".utf8)), .message(.text("Hello")), .pong, .message(.binary([1, 2]))])
    }

    @Test("The limit holds for a message, whole or in fragments, before its bytes are kept")
    func limit() {
        let whole = Self.frame(0x82, [UInt8](repeating: 1, count: 1_000))
        #expect(Self.decode(whole) == [.message(.binary([UInt8](repeating: 1, count: 1_000)))])
        func code(_ bytes: [UInt8]) -> UInt16? {
            if case .failure(let close)? = Self.decode(bytes).last { close.code } else { nil }
        }
        #expect(code([0x82, 0xfe, 0x03, 0xe9, 0, 0, 0, 0]) == 1009)
        #expect(code([0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]) == 1009)
        let part = [UInt8](repeating: 1, count: 501)
        #expect(code(Self.frame(0x02, part) + Self.frame(0x00, part)) == 1009)
    }

    @Test(
        "Protocol violations close with their code",
        arguments: [
            (frame(0xc1, []), 1002),  // A reserved bit.
            (frame(0x83, []), 1002),  // An unknown opcode.
            (frame(0x81, [1], isMasked: false), 1002),
            (frame(0x80, []), 1002),  // A continuation of nothing.
            (frame(0x01, []) + frame(0x81, []), 1002),  // A new message inside another.
            (frame(0x09, []), 1002),  // A fragmented ping.
            (frame(0x89, [UInt8](repeating: 0, count: 126)), 1002),
            (frame(0x81, [0xff]), 1007),
            (frame(0x88, [3]), 1002), (frame(0x88, [0x03, 0xec]), 1002), (frame(0x88, [0x03, 0xe8, 0xff]), 1007),
        ] as [([UInt8], UInt16)])
    func rules(_ bytes: [UInt8], _ code: UInt16) {
        let events = Self.decode(bytes + Self.frame(0x81, [0x61]))
        guard case .failure(let close)? = events.last else {
            Issue.record("read as \(events)")
            return
        }
        #expect(close.code == code)
    }

    @Test("A close frame gives its code and reason, and nothing after it is read")
    func close() {
        let bytes = Self.frame(0x88, [0x03, 0xe9] + Array("away".utf8)) + Self.frame(0x81, [0x61])
        #expect(Self.decode(bytes) == [.close(WebSocketClose(code: 1001, reason: "away"))])
        #expect(Self.decode(Self.frame(0x88, [])) == [.close(WebSocketClose(code: 1005, reason: ""))])
    }

    @Test("Frames are written in the shortest of the three length forms", arguments: [0, 125, 126, 65_535, 65_536])
    func lengths(_ count: Int) {
        var bytes: [UInt8] = []
        WebSocketFrame.append(.binary, [UInt8](repeating: 9, count: count), to: &bytes)
        let header = count < 126 ? 2 : count < 65_536 ? 4 : 10
        #expect(bytes.count == header + count)
        #expect(bytes[0] == 0x82)
        let length = header == 2 ? Int(bytes[1]) : bytes[2..<header].reduce(0) { $0 << 8 | Int($1) }
        #expect(length == count)
    }

    @Test("Random bytes never trap, and every decoded message obeys the limit")
    func noise() {
        var state: UInt64 = 1
        func next() -> UInt8 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 33)
        }
        for _ in 0..<2_000 {
            // Well-formed first bytes now and then, so that payloads are reached.
            let start: [UInt8] = next() & 1 == 0 ? [0x81 | (next() & 0x0f), 0x80 | (next() & 0x7f)] : []
            let bytes = start + (0..<200).map { _ in next() }
            for case .message(let message) in Self.decode(bytes, limit: 50, pieces: Int(next() & 31) + 1) {
                #expect(message.size <= 50)
            }
        }
    }
}
