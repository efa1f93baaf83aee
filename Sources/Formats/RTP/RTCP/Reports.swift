import Primitives

/// One report block (RFC 3550 section 6.4.1).
public struct ReportBlock: Sendable, Hashable {
    /// Bytes on the wire.
    public static let length = 24
    /// The stream reported on.
    public var ssrc: UInt32
    /// Fraction lost since the last report, in 256ths.
    public var fractionLost: UInt8
    /// Packets lost since the start; negative when duplicates outnumber losses.
    public var cumulativeLost: Int32
    /// Highest sequence number with cycles in the upper half.
    public var highestSequence: UInt32
    /// Interarrival jitter in timestamp units.
    public var jitter: UInt32
    /// Middle 32 bits of the last sender report's NTP time; 0 when none came.
    public var lastSenderReport: UInt32
    /// Delay since that report in 1/65536 s.
    public var delaySinceLastSenderReport: UInt32

    /// A value of these parts.
    public init(
        ssrc: UInt32, fractionLost: UInt8, cumulativeLost: Int32, highestSequence: UInt32, jitter: UInt32,
        lastSenderReport: UInt32, delaySinceLastSenderReport: UInt32
    ) {
        self.ssrc = ssrc
        self.fractionLost = fractionLost
        self.cumulativeLost = cumulativeLost
        self.highestSequence = highestSequence
        self.jitter = jitter
        self.lastSenderReport = lastSenderReport
        self.delaySinceLastSenderReport = delaySinceLastSenderReport
    }

    init(at offset: Int, in datagram: RawSpan) {
        ssrc = datagram.readUInt32(offset)
        fractionLost = datagram.readUInt8(offset + 4)
        cumulativeLost = Int32(bitPattern: datagram.readUInt24(offset + 5) << 8) >> 8
        highestSequence = datagram.readUInt32(offset + 8)
        jitter = datagram.readUInt32(offset + 12)
        lastSenderReport = datagram.readUInt32(offset + 16)
        delaySinceLastSenderReport = datagram.readUInt32(offset + 20)
    }
}

/// The report blocks of a sender or receiver report, read by index.
public struct ReportBlocks: Sendable, Hashable {
    let offset: Int
    /// How many there are, 0 to 31.
    public let count: Int

    /// Block number `index`, below `count`.
    public func block(at index: Int, in datagram: RawSpan) -> ReportBlock {
        ReportBlock(at: offset + ReportBlock.length * index, in: datagram)
    }
}

/// What a sender has sent, and how its media clock maps to wall-clock time.
public struct SenderReport: Sendable, Hashable {
    /// The sender.
    public var ssrc: UInt32
    /// Wall time in NTP format, 32.32 fixed point.
    public var ntpTimestamp: UInt64
    /// The same moment on the media clock.
    public var rtpTimestamp: UInt32
    /// Packets sent.
    public var packetCount: UInt32
    /// Payload bytes sent.
    public var octetCount: UInt32
    /// What it receives from others.
    public var blocks: ReportBlocks

    init?(_ frame: RTCPFrame, in datagram: RawSpan) {
        guard frame.bodyLength >= 24 + ReportBlock.length * frame.count else { return nil }
        ssrc = datagram.readUInt32(frame.body)
        ntpTimestamp = datagram.readUInt64(frame.body + 4)
        rtpTimestamp = datagram.readUInt32(frame.body + 12)
        packetCount = datagram.readUInt32(frame.body + 16)
        octetCount = datagram.readUInt32(frame.body + 20)
        blocks = ReportBlocks(offset: frame.body + 24, count: frame.count)
    }

    /// The middle 32 bits of the NTP time: what report blocks quote as last sender report.
    public var compactTimestamp: UInt32 { NTPTime.middle(ntpTimestamp) }
}

/// What a receiver has received.
public struct ReceiverReport: Sendable, Hashable {
    /// The receiver.
    public var ssrc: UInt32
    /// One block for each stream.
    public var blocks: ReportBlocks

    init?(_ frame: RTCPFrame, in datagram: RawSpan) {
        guard frame.bodyLength >= 4 + ReportBlock.length * frame.count else { return nil }
        ssrc = datagram.readUInt32(frame.body)
        blocks = ReportBlocks(offset: frame.body + 4, count: frame.count)
    }
}

/// The descriptions of sources; walked item by item.
public struct SourceDescription: Sendable, Hashable {
    /// One item of one source.
    public struct Item: Sendable, Hashable {
        /// CNAME's number.
        public static let cname: UInt8 = 1
        /// The source.
        public var ssrc: UInt32
        /// Item type, 1 is CNAME.
        public var type: UInt8
        /// Where the text starts.
        public var offset: Int
        /// Bytes of text.
        public var length: Int
    }

    private var position: Int
    private let end: Int
    private var remainingChunks: Int
    private var ssrc: UInt32?

    init(_ frame: RTCPFrame) {
        position = frame.body
        end = frame.bodyEnd
        remainingChunks = frame.count
    }

    /// The next item; nil at the end or where the rest is malformed.
    public mutating func next(in datagram: RawSpan) -> Item? {
        while true {
            guard let source = ssrc else {
                guard remainingChunks > 0, end - position >= 4 else { return nil }
                remainingChunks -= 1
                ssrc = datagram.readUInt32(position)
                position += 4
                continue
            }
            guard position < end else { return nil }
            let type = datagram.readUInt8(position)
            if type == 0 {  // The chunk ends; the next one starts at a multiple of 4.
                position = (position | 3) + 1
                ssrc = nil
                continue
            }
            guard end - position >= 2 else { return nil }
            let length = Int(datagram.readUInt8(position + 1))
            let offset = position + 2
            guard offset + length <= end else { return nil }
            position = offset + length
            return Item(ssrc: source, type: type, offset: offset, length: length)
        }
    }
}

/// Sources that stop.
public struct Goodbye: Sendable, Hashable {
    let offset: Int
    /// How many sources.
    public let count: Int

    init?(_ frame: RTCPFrame, in datagram: RawSpan) {
        guard frame.bodyLength >= 4 * frame.count else { return nil }
        offset = frame.body
        count = frame.count
    }

    /// Source number `index`, below `count`.
    public func ssrc(at index: Int, in datagram: RawSpan) -> UInt32 { datagram.readUInt32(offset + 4 * index) }
}

/// A receiver's wall-clock time, for measuring the round trip without sending media.
public struct ReceiverReferenceTime: Sendable, Hashable {
    /// The receiver.
    public var senderSSRC: UInt32
    /// Its wall time in NTP format.
    public var ntpTimestamp: UInt64
}

/// The answers to receivers' reference times.
public struct DelaySinceLastReceiverReport: Sendable, Hashable {
    /// One answer.
    public struct Item: Sendable, Hashable {
        /// The receiver that is answered.
        public var ssrc: UInt32
        /// Middle 32 bits of its reference time.
        public var lastReceiverReport: UInt32
        /// Delay since it arrived, in 1/65536 s.
        public var delay: UInt32

        /// A value of these parts.
        public init(ssrc: UInt32, lastReceiverReport: UInt32, delay: UInt32) {
            self.ssrc = ssrc
            self.lastReceiverReport = lastReceiverReport
            self.delay = delay
        }
    }

    /// Who answers.
    public let senderSSRC: UInt32
    let offset: Int
    /// How many answers.
    public let count: Int

    /// Answer number `index`, below `count`.
    public func item(at index: Int, in datagram: RawSpan) -> Item {
        let base = offset + 12 * index
        return Item(
            ssrc: datagram.readUInt32(base), lastReceiverReport: datagram.readUInt32(base + 4),
            delay: datagram.readUInt32(base + 8))
    }
}
