public import Primitives

/// Walks the extension elements of one packet (RFC 8285), one-byte or two-byte headers alike, without allocation.
///
/// ```swift
/// var elements = RTPHeaderExtensions(header)
/// while let element = elements.next(in: packet) { … }
/// ```
/// A malformed rest ends the walk: RFC 8285 section 4.2 asks to ignore it and keep the packet.
public struct RTPHeaderExtensions: Sendable {
    /// One element: its local id and where its value is in the packet.
    public struct Element: Sendable, Hashable {
        /// Local identifier: 1 to 14 with one-byte headers, 1 to 255 with two-byte headers.
        public var id: UInt8
        /// Where the value starts.
        public var offset: Int
        /// Bytes of the value; 0 is possible with two-byte headers.
        public var length: Int

        /// A value of these parts.
        public init(id: UInt8, offset: Int, length: Int) {
            self.id = id
            self.offset = offset
            self.length = length
        }

        /// The value as text, for mid and rid. Allocates: for binding a stream, not for every packet.
        public func text(in packet: RawSpan) -> String {
            packet.extracting(offset..<(offset + length)).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }

        /// Whether the value equals `bytes`.
        public func equals(_ bytes: [UInt8], in packet: RawSpan) -> Bool {
            guard bytes.count == length else { return false }
            for index in 0..<length where packet.readUInt8(offset + index) != bytes[index] { return false }
            return true
        }
    }

    @usableFromInline var position: Int
    @usableFromInline let end: Int
    @usableFromInline let isTwoByte: Bool

    /// A walk over the elements of a packet whose header was read into `header`. Other profiles have no elements.
    @inlinable public init(_ header: RTPHeader) {
        isTwoByte = header.isTwoByteExtension
        position = header.extensionOffset
        end = isTwoByte || header.isOneByteExtension ? header.extensionOffset + header.extensionLength : position
    }

    /// The next element; nil at the end. `packet` must be the packet of the header.
    @inlinable public mutating func next(in packet: RawSpan) -> Element? {
        while position < end {
            let first = packet.readUInt8(position)
            if first == 0 {  // Padding.
                position += 1
                continue
            }
            let id: UInt8
            let length: Int
            let offset: Int
            if isTwoByte {
                guard position + 2 <= end else { break }
                id = first
                length = Int(packet.readUInt8(position + 1))
                offset = position + 2
            } else {
                id = first >> 4
                // 15 is reserved and ends processing; 0 with a length is no padding.
                guard id != 15, id != 0 else { break }
                length = Int(first & 0x0f) + 1
                offset = position + 1
            }
            guard offset + length <= end else { break }
            position = offset + length
            return Element(id: id, offset: offset, length: length)
        }
        position = end
        return nil
    }

    /// The first element with local id `id`.
    @inlinable public static func find(_ id: UInt8, _ header: RTPHeader, in packet: RawSpan) -> Element? {
        var elements = RTPHeaderExtensions(header)
        while let element = elements.next(in: packet) {
            if element.id == id { return element }
        }
        return nil
    }
}
