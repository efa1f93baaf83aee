import Primitives

/// Reads bits, most significant first, from a range of bytes. The bytes are given with each call, because a span cannot
/// be kept. Reading beyond the end gives zeros and sets `isExhausted`; loops must check it.
struct BitReader: Sendable {
    /// Next bit, counted from the first byte of the span.
    private(set) var position: Int
    private let end: Int
    /// H.264: a byte of value 3 after two zero bytes is no data (ITU-T H.264 section 7.4.1).
    private let skipsEmulation: Bool
    private var zeros = 0
    /// Whether something was read beyond the end.
    private(set) var isExhausted = false

    init(offset: Int, length: Int, skipsEmulation: Bool = false) {
        position = offset * 8
        end = (offset + length) * 8
        self.skipsEmulation = skipsEmulation
    }

    /// Bits that are left, emulation prevention included.
    var remaining: Int { end - position }

    mutating func bit(_ bytes: RawSpan) -> Bool {
        if skipsEmulation, position & 7 == 0, position < end { skipEmulation(bytes) }
        guard position < end else {
            isExhausted = true
            return false
        }
        let byte = bytes.readUInt8(position >> 3)
        let value = byte & (0x80 >> UInt8(position & 7)) != 0
        position += 1
        return value
    }

    /// Up to 32 bits as a number.
    mutating func bits(_ count: Int, _ bytes: RawSpan) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count { value = value << 1 | (bit(bytes) ? 1 : 0) }
        return value
    }

    mutating func skip(_ count: Int, _ bytes: RawSpan) {
        if skipsEmulation {
            for _ in 0..<count { _ = bit(bytes) }
        } else if count <= end - position {
            position += count
        } else {
            position = end
            isExhausted = true
        }
    }

    /// Unsigned exponential Golomb code (H.264 section 9.1).
    mutating func unsignedGolomb(_ bytes: RawSpan) -> UInt32 {
        var zeros = 0
        while !bit(bytes) {
            zeros += 1
            if zeros > 31 || isExhausted {
                isExhausted = true
                return 0
            }
        }
        return (1 << UInt32(zeros)) - 1 + bits(zeros, bytes)
    }

    /// Signed exponential Golomb code (H.264 section 9.1.1).
    mutating func signedGolomb(_ bytes: RawSpan) -> Int32 {
        let code = unsignedGolomb(bytes)
        let magnitude = Int32(bitPattern: (code >> 1) + (code & 1))
        return code & 1 == 1 ? magnitude : -magnitude
    }

    /// Non-symmetric unsigned code of `limit` values (AV1 section 4.10.7).
    mutating func nonSymmetric(_ limit: UInt32, _ bytes: RawSpan) -> UInt32 {
        guard limit > 1 else { return 0 }
        let width = 32 - limit.leadingZeroBitCount
        let short = (UInt32(1) << UInt32(width)) - limit
        let value = bits(width - 1, bytes)
        guard value >= short else { return value }
        return (value << 1) - short + (bit(bytes) ? 1 : 0)
    }

    private mutating func skipEmulation(_ bytes: RawSpan) {
        var byte = bytes.readUInt8(position >> 3)
        if zeros >= 2, byte == 3 {
            position += 8
            zeros = 0
            guard position < end else { return }
            byte = bytes.readUInt8(position >> 3)
        }
        zeros = byte == 0 ? zeros + 1 : 0
    }
}
