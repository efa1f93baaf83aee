/// Reads a chunked body (RFC 9112 section 7.1), strictly: sizes only in hexadecimal digits, lines that end with CRLF, trailers discarded.
struct ChunkedDecoder: Sendable {
    private enum State {
        case size(digits: Int)
        case extensions
        case sizeEnd
        case data(Int)
        case dataEnd
        case dataNewline
        /// A trailer line, or the empty line that ends the body, with its length so far.
        case trailer(Int)
        case trailerEnd(isLast: Bool)
        case ended
        case broken
    }

    /// The state of the body after a read.
    enum Progress: Equatable {
        case needsMore
        case complete
        case broken
    }

    /// Chunk extensions and trailers are not used here. Both together may be as long as those of any real sender.
    private static let maximumOverheadBytes = 4_096
    /// Eight digits express sizes up to 4 GiB, more than any limit allows; sixteen could overflow.
    private static let maximumDigits = 8

    private var state = State.size(digits: 0)
    private var size = 0
    private var overhead = 0

    /// Consumes bytes up to the end of the body; appends the content to `body` and removes what it read from `bytes`.
    mutating func read(_ bytes: inout ArraySlice<UInt8>, into body: inout [UInt8]) -> Progress {
        while let byte = bytes.first {
            if case .data(let remaining) = state {
                let part = bytes.prefix(remaining)
                body += part
                bytes = bytes.dropFirst(part.count)
                state = part.count == remaining ? .dataEnd : .data(remaining - part.count)
                continue
            }
            bytes = bytes.dropFirst()
            state = next(byte)
            switch state {
            case .ended: return .complete
            case .broken: return .broken
            default: break
            }
        }
        return .needsMore
    }

    private mutating func next(_ byte: UInt8) -> State {
        switch state {
        case .size(let digits): return sizeByte(byte, digits)
        case .extensions:
            overhead += 1
            if byte == UInt8(ascii: "\r") { return .sizeEnd }
            return Self.isText(byte) && overhead <= Self.maximumOverheadBytes ? .extensions : .broken
        case .sizeEnd:
            guard byte == UInt8(ascii: "\n") else { return .broken }
            return size == 0 ? .trailer(0) : .data(size)
        case .dataEnd: return byte == UInt8(ascii: "\r") ? .dataNewline : .broken
        case .dataNewline:
            size = 0
            return byte == UInt8(ascii: "\n") ? .size(digits: 0) : .broken
        case .trailer(let length):
            overhead += 1
            if byte == UInt8(ascii: "\r") { return .trailerEnd(isLast: length == 0) }
            return Self.isText(byte) && overhead <= Self.maximumOverheadBytes ? .trailer(length + 1) : .broken
        case .trailerEnd(let isLast):
            guard byte == UInt8(ascii: "\n") else { return .broken }
            return isLast ? .ended : .trailer(0)
        case .data, .ended, .broken: return .broken
        }
    }

    private mutating func sizeByte(_ byte: UInt8, _ digits: Int) -> State {
        let digit: UInt8
        switch byte {
        case 0x30...0x39: digit = byte - 0x30
        case 0x41...0x46: digit = byte - 0x41 + 10
        case 0x61...0x66: digit = byte - 0x61 + 10
        case UInt8(ascii: "\r") where digits > 0: return .sizeEnd
        case UInt8(ascii: ";") where digits > 0: return .extensions
        default: return .broken
        }
        guard digits < Self.maximumDigits else { return .broken }
        size = size << 4 | Int(digit)
        return .size(digits: digits + 1)
    }

    private static func isText(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7f || byte == 0x09 }
}
