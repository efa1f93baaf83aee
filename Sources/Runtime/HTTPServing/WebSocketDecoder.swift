/// Reads a client's frames (RFC 6455 section 5): bytes in, messages out. One limit applies to a whole message, and one to the number of its fragments: an empty
/// fragment costs the client six bytes and brings no message nearer to its limit.
struct WebSocketDecoder {
    /// A result.
    enum Event: Equatable {
        case message(WebSocketMessage)
        case ping([UInt8])
        case pong
        /// The client's close frame; nothing follows it.
        case close(WebSocketClose)
        /// The client broke a rule or exceeded a limit; with the code to close with. Nothing follows it.
        case failure(WebSocketClose)
    }

    private enum State {
        case header
        case payload(Frame)
        case ended
    }

    private struct Frame {
        var opcode: WebSocketOpcode
        var isFinal: Bool
        var remaining: Int
        var mask: UInt32
        /// The index of the next byte of the mask.
        var phase = 0
    }

    private let maximumMessageBytes: Int
    private let maximumFragments: Int
    private var fragments = 0
    private var state = State.header
    private var header: [UInt8] = []
    /// The message whose fragments are arriving, and its kind.
    private var message: [UInt8] = []
    private var messageKind: WebSocketOpcode?
    /// The payload of the control frame that is arriving.
    private var control: [UInt8] = []

    init(maximumMessageBytes: Int, maximumFragments: Int = 256) {
        self.maximumMessageBytes = maximumMessageBytes
        self.maximumFragments = maximumFragments
        header.reserveCapacity(14)
    }

    /// Consumes bytes as they arrive and appends the results.
    mutating func receive(_ bytes: UnsafeRawBufferPointer, events: inout [Event]) {
        var rest = bytes[...]
        while true {
            switch state {
            case .ended: return
            case .header:
                guard let byte = rest.popFirst() else { return }
                header.append(byte)
                readHeader(&events)
            case .payload(var frame):
                let part = rest.prefix(frame.remaining)
                rest = rest.dropFirst(part.count)
                unmask(part, &frame)
                frame.remaining -= part.count
                if frame.remaining > 0 {
                    state = .payload(frame)
                    return
                }
                header.removeAll(keepingCapacity: true)
                state = .header
                finish(frame, &events)
            }
        }
    }

    private mutating func readHeader(_ events: inout [Event]) {
        guard header.count >= 2 else { return }
        let short = Int(header[1] & 0x7f)
        let lengthBytes = short == 126 ? 2 : short == 127 ? 8 : 0
        // Refuse before waiting for the rest: the first two bytes are enough to check nearly all rules.
        if header.count == 2, let failure = fault(short: short) { return fail(failure, &events) }
        guard header.count == 2 + lengthBytes + 4 else { return }
        let length = lengthBytes == 0 ? UInt64(short) : header[2..<(2 + lengthBytes)].reduce(0) { $0 << 8 | UInt64($1) }
        guard let opcode = WebSocketOpcode(rawValue: header[0] & 0x0f) else { return }
        if !opcode.isControl && length > UInt64(maximumMessageBytes - message.count) {
            let reason = "a message may have at most \(maximumMessageBytes) bytes"
            return fail(WebSocketClose(code: 1009, reason: reason), &events)
        }
        if opcode == .text || opcode == .binary { messageKind = opcode }
        let mask = header.suffix(4).reduce(0) { $0 << 8 | UInt32($1) }
        let isFinal = header[0] & 0x80 != 0
        state = .payload(Frame(opcode: opcode, isFinal: isFinal, remaining: Int(length), mask: mask))
        if length == 0 { receive(UnsafeRawBufferPointer(start: nil, count: 0), events: &events) }
    }

    /// The rule that the first two bytes break, if any.
    private func fault(short: Int) -> WebSocketClose? {
        func broken(_ reason: String) -> WebSocketClose { WebSocketClose(code: 1002, reason: reason) }
        guard header[0] & 0x70 == 0 else { return broken("reserved bits are set") }
        guard let opcode = WebSocketOpcode(rawValue: header[0] & 0x0f) else { return broken("unknown opcode") }
        guard header[1] & 0x80 != 0 else { return broken("client frames must be masked") }
        if opcode.isControl {
            let isShortAndWhole = short <= 125 && header[0] & 0x80 != 0
            return isShortAndWhole ? nil : broken("control frames must have at most 125 bytes and no fragments")
        }
        if (opcode == .continuation) != (messageKind != nil) { return broken("fragments are out of order") }
        return nil
    }

    private mutating func unmask(_ part: Slice<UnsafeRawBufferPointer>, _ frame: inout Frame) {
        if frame.opcode.isControl {
            Self.append(part, to: &control, &frame)
        } else {
            Self.append(part, to: &message, &frame)
        }
    }

    private static func append(
        _ part: Slice<UnsafeRawBufferPointer>, to bytes: inout [UInt8], _ frame: inout Frame
    ) {
        let start = bytes.count
        bytes += part
        for index in start..<bytes.count {
            bytes[index] ^= UInt8(truncatingIfNeeded: frame.mask >> UInt32(24 - 8 * frame.phase))
            frame.phase = (frame.phase + 1) & 3
        }
    }

    private mutating func finish(_ frame: Frame, _ events: inout [Event]) {
        switch frame.opcode {
        case .ping: events.append(.ping(finishControlFrame()))
        case .pong:
            control.removeAll(keepingCapacity: true)
            events.append(.pong)
        case .close: finishClose(finishControlFrame(), &events)
        case .text, .binary, .continuation:
            guard frame.isFinal else {
                fragments += 1
                if fragments > maximumFragments {
                    fail(WebSocketClose(code: 1008, reason: "a message has too many fragments"), &events)
                }
                return
            }
            fragments = 0
            let isText = messageKind == .text
            messageKind = nil
            let bytes = message
            message = []
            if !isText { return events.append(.message(.binary(bytes))) }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                return fail(WebSocketClose(code: 1007, reason: "text must be UTF-8"), &events)
            }
            events.append(.message(.text(text)))
        }
    }

    private mutating func finishControlFrame() -> [UInt8] {
        defer { control = [] }
        return control
    }

    /// Section 5.5.1 and 7.4: no code, or a code that may be sent and a reason in UTF-8.
    private mutating func finishClose(_ payload: [UInt8], _ events: inout [Event]) {
        if payload.isEmpty {
            state = .ended
            return events.append(.close(WebSocketClose(code: 1005, reason: "")))
        }
        guard payload.count >= 2 else {
            return fail(WebSocketClose(code: 1002, reason: "incomplete close code"), &events)
        }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: break
        default: return fail(WebSocketClose(code: 1002, reason: "invalid close code"), &events)
        }
        guard let reason = String(validating: payload[2...], as: UTF8.self) else {
            return fail(WebSocketClose(code: 1007, reason: "text must be UTF-8"), &events)
        }
        state = .ended
        events.append(.close(WebSocketClose(code: code, reason: reason)))
    }

    private mutating func fail(_ close: WebSocketClose, _ events: inout [Event]) {
        state = .ended
        message = []
        events.append(.failure(close))
    }
}
