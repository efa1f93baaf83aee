/// A mid or rid of at most 16 ASCII characters as two numbers: compared without a `String` on the packet path.
struct ShortText: Hashable, Sendable {
    private var low: UInt64 = 0
    private var high: UInt64 = 0

    /// nil when it is empty or longer than 16 bytes; the SDP side refuses longer ones.
    init?(_ text: String) {
        let bytes = text.utf8
        guard !bytes.isEmpty, bytes.count <= 16 else { return nil }
        for (index, byte) in bytes.enumerated() { set(byte, at: index) }
    }

    /// From `length` bytes at `offset` of a packet; trailing NULs, which some senders add as padding, are ignored.
    init?(_ packet: UnsafeRawBufferPointer, offset: Int, length: Int) {
        guard length > 0, length <= 16, offset + length <= packet.count else { return nil }
        for index in 0..<length { set(packet[offset + index], at: index) }
        guard low & 0xff != 0 else { return nil }
    }

    private mutating func set(_ byte: UInt8, at index: Int) {
        if index < 8 {
            low |= UInt64(byte) << UInt64(index * 8)
        } else {
            high |= UInt64(byte) << UInt64((index - 8) * 8)
        }
    }
}
