import Primitives

/// Packets that a receiver misses (RFC 4585 section 6.2.1).
public struct GenericNACK: Sendable, Hashable {
    /// One entry: a number and the 16 that follow it.
    public struct Entry: Sendable, Hashable {
        /// The first missing number.
        public var packetID: UInt16
        /// Bit i set: packetID + i + 1 is missing too.
        public var bitmask: UInt16

        /// A value of these parts.
        public init(packetID: UInt16, bitmask: UInt16) {
            self.packetID = packetID
            self.bitmask = bitmask
        }

        /// How many packets it requests.
        @inlinable public var packetCount: Int { 1 + bitmask.nonzeroBitCount }
    }

    /// The source that sends the request.
    public let senderSSRC: UInt32
    /// The stream that it is about.
    public let mediaSSRC: UInt32
    let offset: Int
    /// How many entries.
    public let count: Int

    init?(_ frame: RTCPFrame, in datagram: RawSpan) {
        guard frame.bodyLength >= 12 else { return nil }
        senderSSRC = datagram.readUInt32(frame.body)
        mediaSSRC = datagram.readUInt32(frame.body + 4)
        offset = frame.body + 8
        count = (frame.bodyLength - 8) / 4
    }

    /// Entry number `index`, below `count`.
    public func entry(at index: Int, in datagram: RawSpan) -> Entry {
        let base = offset + 4 * index
        return Entry(packetID: datagram.readUInt16(base), bitmask: datagram.readUInt16(base + 2))
    }
}

/// The numbers that one NACK entry requests, in order.
extension GenericNACK.Entry: Sequence {
    /// Walks the missing numbers.
    public struct Iterator: IteratorProtocol {
        @usableFromInline var number: UInt16
        @usableFromInline var mask: UInt32

        @inlinable init(_ entry: GenericNACK.Entry) {
            number = entry.packetID
            mask = UInt32(entry.bitmask) << 1 | 1
        }

        /// The next missing number.
        @inlinable public mutating func next() -> UInt16? {
            guard mask != 0 else { return nil }
            let skip = mask.trailingZeroBitCount
            number &+= UInt16(skip)
            mask >>= UInt32(skip)
            defer {
                number &+= 1
                mask >>= 1
            }
            return number
        }
    }

    /// Walks the numbers from the first.
    @inlinable public func makeIterator() -> Iterator { Iterator(self) }
}

/// A decoder has lost its reference and asks for a keyframe (RFC 4585 section 6.3.1).
public struct PictureLossIndication: Sendable, Hashable {
    /// The source that sends the request.
    public let senderSSRC: UInt32
    /// The stream that it is about.
    public let mediaSSRC: UInt32

    init?(_ frame: RTCPFrame, in datagram: RawSpan) {
        guard frame.bodyLength >= 8 else { return nil }
        senderSSRC = datagram.readUInt32(frame.body)
        mediaSSRC = datagram.readUInt32(frame.body + 4)
    }
}

/// A command to send a keyframe (RFC 5104 section 4.3.1).
public struct FullIntraRequest: Sendable, Hashable {
    /// One requested stream.
    public struct Entry: Sendable, Hashable {
        /// The stream.
        public var ssrc: UInt32
        /// Counts commands; the same number again is a repetition of the same command.
        public var sequenceNumber: UInt8

        /// A value of these parts.
        public init(ssrc: UInt32, sequenceNumber: UInt8) {
            self.ssrc = ssrc
            self.sequenceNumber = sequenceNumber
        }
    }

    /// The source that sends the request.
    public let senderSSRC: UInt32
    let offset: Int
    /// How many streams.
    public let count: Int

    init?(_ frame: RTCPFrame, in datagram: RawSpan) {
        guard frame.bodyLength >= 16 else { return nil }
        senderSSRC = datagram.readUInt32(frame.body)
        offset = frame.body + 8
        count = (frame.bodyLength - 8) / 8
    }

    /// Entry number `index`, below `count`.
    public func entry(at index: Int, in datagram: RawSpan) -> Entry {
        let base = offset + 8 * index
        return Entry(ssrc: datagram.readUInt32(base), sequenceNumber: datagram.readUInt8(base + 4))
    }
}

/// A receiver's estimate of what its path can carry (draft-alvestrand-rmcat-remb-03).
public struct ReceiverEstimatedMaximumBitrate: Sendable, Hashable {
    /// Who estimates.
    public let senderSSRC: UInt32
    /// The estimate over all streams of the session.
    public let bitsPerSecond: UInt64
    let offset: Int
    /// How many streams it names.
    public let count: Int

    init?(_ frame: RTCPFrame, in datagram: RawSpan) {
        guard frame.bodyLength >= 16, datagram.readUInt32(frame.body + 8) == Self.name else { return nil }
        senderSSRC = datagram.readUInt32(frame.body)
        let word = datagram.readUInt32(frame.body + 12)
        count = Int(word >> 24)
        guard frame.bodyLength >= 16 + 4 * count else { return nil }
        offset = frame.body + 16
        let exponent = UInt64(word >> 18 & 0x3f)
        let mantissa = UInt64(word & 0x3ffff)
        let shifted = mantissa << exponent
        guard shifted >> exponent == mantissa else { return nil }
        bitsPerSecond = shifted
    }

    /// "REMB".
    static let name: UInt32 = 0x5245_4d42

    /// Stream number `index`, below `count`.
    public func ssrc(at index: Int, in datagram: RawSpan) -> UInt32 { datagram.readUInt32(offset + 4 * index) }
}

/// A packet that is framed but not understood.
public struct UnknownRTCP: Sendable, Hashable {
    /// Packet type.
    public let type: UInt8
    /// The five bits in the first byte: a count, a subtype or a feedback format.
    public let count: Int
    /// Where the body starts.
    public let offset: Int
    /// Bytes of the body.
    public let length: Int

    init(_ frame: RTCPFrame) {
        type = frame.type
        count = frame.count
        offset = frame.body
        length = frame.bodyLength
    }
}
