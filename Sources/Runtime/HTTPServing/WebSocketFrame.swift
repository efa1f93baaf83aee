/// The kind of a frame (RFC 6455 section 5.2).
enum WebSocketOpcode: UInt8 {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xa

    /// Whether it may arrive between the fragments of a message.
    var isControl: Bool { rawValue & 0x8 != 0 }
}

/// Encodes a server's frames: final and unmasked.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-------+-+-------------+-------------------------------+
/// |F|R|R|R| opcode|M| Payload len |    Extended payload length    |
/// |I|S|S|S|  (4)  |A|     (7)     |            (16/64)            |
/// |N|V|V|V|       |S|             |   (if payload len==126/127)   |
/// | |1|2|3|       |K|             |                               |
/// +-+-+-+-+-------+-+-------------+-------------------------------+
/// ```
enum WebSocketFrame {
    /// Appends one frame to `output`.
    static func append(_ opcode: WebSocketOpcode, _ payload: some Collection<UInt8>, to output: inout [UInt8]) {
        let count = payload.count
        output.append(0x80 | opcode.rawValue)
        switch count {
        case ..<126: output.append(UInt8(count))
        case ..<65_536: output += [126, UInt8(count >> 8), UInt8(count & 0xff)]
        default:
            output.append(127)
            for shift in stride(from: 56, through: 0, by: -8) {
                output.append(UInt8(truncatingIfNeeded: count >> shift))
            }
        }
        output += payload
    }

    /// Appends a message.
    static func append(_ message: WebSocketMessage, to output: inout [UInt8]) {
        switch message {
        case .text(let text): append(.text, text.utf8, to: &output)
        case .binary(let bytes): append(.binary, bytes, to: &output)
        }
    }

    /// Appends a close frame; 1005 and 1006 mean a frame without a code (section 7.4.1).
    static func append(_ close: WebSocketClose, to output: inout [UInt8]) {
        guard close.code != 1005, close.code != 1006 else { return append(.close, [], to: &output) }
        append(.close, [UInt8(close.code >> 8), UInt8(close.code & 0xff)] + Array(close.reason.utf8), to: &output)
    }
}
