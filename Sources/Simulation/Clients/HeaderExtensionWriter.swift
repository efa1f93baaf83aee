import Primitives

/// Writes the extension elements of one packet (RFC 8285) into a slot, as a client does.
///
/// Starts with one-byte headers and, if the receiver permits it (`a=extmap-allow-mixed`, or ids that need it), converts
/// what it has written to two-byte headers when an element is added that one-byte headers cannot express: an id above
/// 14, no value, or more than 16 bytes (an AV1 dependency descriptor with its structure). It is not the server's writer (`ExtensionBlockWriter`), because a
/// fault that both sides share would cancel out.
public struct HeaderExtensionWriter {
    /// The most elements of one packet: 14 ids in one-byte form, with slack for two-byte ids.
    public static let maximumElements = 24

    private let packet: UnsafeMutableRawBufferPointer
    private let start: Int
    private let allowsTwoByte: Bool
    private var end: Int
    private var count = 0
    private var lengths = InlineArray<24, UInt8>(repeating: 0)

    /// Whether two-byte headers are in use.
    public private(set) var isTwoByte: Bool

    /// A writer into `packet`; the extension's profile word goes to `offset`, right after the CSRC list.
    public init(
        _ packet: UnsafeMutableRawBufferPointer, at offset: Int, twoByte: Bool = false, allowsTwoByte: Bool = true
    ) {
        self.packet = packet
        start = offset
        end = offset + 4
        isTwoByte = twoByte
        self.allowsTwoByte = allowsTwoByte || twoByte
    }

    /// Reserves room for an element's value; returns the offset where the caller writes `length` bytes. nil if it cannot be
    /// expressed or does not fit; then nothing is written.
    public mutating func append(id: UInt8, length: Int) -> Int? {
        guard id != 0, length >= 0, length <= 255, count < Self.maximumElements else { return nil }
        if !isTwoByte, id > 14 || length == 0 || length > 16 {
            guard allowsTwoByte, fits(count + 2 + length) else { return nil }
            becomeTwoByte()
        }
        let header = isTwoByte ? 2 : 1
        guard fits(header + length) else { return nil }
        if isTwoByte {
            packet[end] = id
            packet[end + 1] = UInt8(length)
        } else {
            packet[end] = id << 4 | UInt8(length - 1)
        }
        lengths[count] = UInt8(length)
        count += 1
        let value = end + header
        end = value + length
        return value
    }

    /// Appends an element whose value is copied from `length` bytes at `offset` of `source`; false if it does not fit.
    public mutating func append(id: UInt8, copying source: RawSpan, offset: Int, length: Int) -> Bool {
        guard let value = append(id: id, length: length) else { return false }
        for index in 0..<length { packet[value + index] = source.readUInt8(offset + index) }
        return true
    }

    /// Appends an element with a one-byte value.
    public mutating func append(id: UInt8, _ value: UInt8) -> Bool {
        guard let offset = append(id: id, length: 1) else { return false }
        packet.write(value, at: offset)
        return true
    }

    /// Appends an element with a two-byte value.
    public mutating func append(id: UInt8, _ value: UInt16) -> Bool {
        guard let offset = append(id: id, length: 2) else { return false }
        packet.write(value, at: offset)
        return true
    }

    /// Writes padding, the profile and length words and the X bit; returns where the payload starts. With no elements
    /// there is no extension: the X bit is cleared and the payload starts where the extension would have.
    public mutating func finish() -> Int {
        guard count > 0 else {
            packet[0] &= ~0x10
            return start
        }
        while (end - start) & 3 != 0 {
            packet[end] = 0
            end += 1
        }
        packet.write(isTwoByte ? UInt16(0x1000) : 0xbede, at: start)
        packet.write(UInt16((end - start - 4) / 4), at: start + 2)
        packet[0] |= 0x10
        return end
    }

    /// Whether `more` bytes, and the padding to a word after them, fit.
    private func fits(_ more: Int) -> Bool { start + ((end + more - start + 3) & ~3) <= packet.count }

    /// Gives each written element one more header byte, from the last to the first.
    private mutating func becomeTwoByte() {
        isTwoByte = true
        guard count > 0 else { return }
        var source = end
        var target = end + count
        end = target
        for index in (0..<count).reversed() {
            let length = Int(lengths[index])
            source -= length
            target -= length
            let base = packet.baseAddress!
            base.advanced(by: target).copyMemory(from: base.advanced(by: source), byteCount: length)
            source -= 1
            target -= 2
            let id = packet[source] >> 4
            packet[target] = id
            packet[target + 1] = UInt8(length)
        }
    }
}
