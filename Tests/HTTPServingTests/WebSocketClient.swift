import Testing

/// The client side of RFC 6455, as far as tests need it.
struct WebSocketClient: Sendable {
    struct Frame: Sendable, Equatable {
        var opcode: UInt8
        var payload: [UInt8]
        var text: String { String(decoding: payload, as: UTF8.self) }
        /// The status code of a close frame.
        var closeCode: Int { payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : 1005 }
    }

    let tcp: TCPClient
    /// The server's answer to the handshake.
    let answer: Answer

    /// Opens `target`; the answer shows whether it was upgraded.
    init(
        port: UInt16, _ target: String, protocols: String? = nil, headers: [String: String] = [:],
        receiveBuffer: Int32? = nil
    ) async throws {
        tcp = try TCPClient(port: port, receiveBuffer: receiveBuffer)
        var all = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version": "13",
        ]
        all["Sec-WebSocket-Protocol"] = protocols
        all.merge(headers) { $1 }
        answer = try #require(try await tcp.request("GET", target, headers: all))
    }

    /// Sends one masked frame.
    @discardableResult
    func send(opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) async throws -> Bool {
        var frame: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        switch payload.count {
        case ..<126: frame.append(0x80 | UInt8(payload.count))
        case ..<65_536: frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
        default: frame += [0x80 | 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        }
        let mask: [UInt8] = [1, 2, 3, 4]
        frame += mask
        frame += payload.enumerated().map { $1 ^ mask[$0 & 3] }
        return try await tcp.send(frame)
    }

    /// Sends a text message.
    @discardableResult
    func send(_ text: String) async throws -> Bool { try await send(opcode: 1, Array(text.utf8)) }

    /// The next frame; nil when the connection ended.
    func receive() async throws -> Frame? {
        guard let head = try await tcp.bytes(2) else { return nil }
        var length = Int(head[1] & 0x7f)
        if length >= 126 {
            guard let more = try await tcp.bytes(length == 126 ? 2 : 8) else { return nil }
            length = more.reduce(0) { $0 << 8 | Int($1) }
        }
        guard let payload = try await tcp.bytes(length) else { return nil }
        return Frame(opcode: head[0] & 0x0f, payload: payload)
    }

    /// The next close frame, whatever comes before it.
    func receiveClose() async throws -> Frame? {
        while let frame = try await receive() {
            if frame.opcode == 8 { return frame }
        }
        return nil
    }
}
