/// Packets in a byte stream, each preceded by its length (RFC 4571 section 2), as ICE-TCP carries STUN, DTLS and SRTP (RFC 6544 section 3).
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// |             LENGTH            |  packet ...                   |
/// ```
public enum StreamFrame {
    /// Bytes before each packet.
    public static let headerLength = 2
    /// The longest packet that is accepted: twice an Ethernet frame, since no peer sends more than one frame holds.
    public static let maximumLength = 3_000

    /// Writes the header of a packet of `length` bytes at the start of `place`.
    @inline(__always) public static func writeHeader(_ length: Int, into place: UnsafeMutableRawBufferPointer) {
        place[0] = UInt8(truncatingIfNeeded: length >> 8)
        place[1] = UInt8(truncatingIfNeeded: length)
    }
}

/// Cuts a byte stream into its packets, whatever pieces it arrives in.
///
/// Complete packets are returned in place; only an incomplete one is kept: at most `StreamFrame.maximumLength` bytes of memory.
/// ```text
/// bytes read ──> packet | packet | pack      the incomplete one is copied
///                                   └──> kept: pack + et <── bytes read next
/// ```
public struct FrameReader: ~Copyable {
    /// What comes next in the stream.
    public enum Next {
        /// A packet, in the bytes that were read or in the reader's memory; valid, and may be written, until the next call.
        case packet(UnsafeMutableRawBufferPointer)
        /// All bytes that were read are used.
        case needsMore
        /// The next packet is longer than the maximum. Nothing after it can be found.
        case oversize
    }

    private let kept: UnsafeMutableRawBufferPointer
    /// Bytes of an incomplete packet with its header.
    private var count = 0

    /// A reader at the beginning of a stream.
    public init() {
        kept = .allocate(byteCount: StreamFrame.headerLength + StreamFrame.maximumLength, alignment: 8)
    }

    deinit { kept.deallocate() }

    /// The next packet in `bytes` from `position` on, which moves past it. Call with the same bytes until they are used up.
    ///
    /// Packets without bytes are skipped (RFC 4571 section 2: a null packet).
    public mutating func next(in bytes: UnsafeMutableRawBufferPointer, from position: inout Int) -> Next {
        while position < bytes.count {
            if count == 0 {
                let rest = bytes.count &- position
                if rest >= StreamFrame.headerLength {
                    let length = Int(bytes[position]) << 8 | Int(bytes[position &+ 1])
                    guard length <= StreamFrame.maximumLength else { return .oversize }
                    if rest &- StreamFrame.headerLength >= length {
                        let start = position &+ StreamFrame.headerLength
                        position = start &+ length
                        if length == 0 { continue }
                        return .packet(UnsafeMutableRawBufferPointer(rebasing: bytes[start..<position]))
                    }
                }
            }
            if count < StreamFrame.headerLength {
                keep(StreamFrame.headerLength - count, of: bytes, from: &position)
                guard count == StreamFrame.headerLength else { return .needsMore }
            }
            let length = Int(kept[0]) << 8 | Int(kept[1])
            guard length <= StreamFrame.maximumLength else { return .oversize }
            let whole = StreamFrame.headerLength + length
            keep(whole - count, of: bytes, from: &position)
            guard count == whole else { return .needsMore }
            count = 0
            if length > 0 {
                return .packet(UnsafeMutableRawBufferPointer(rebasing: kept[StreamFrame.headerLength..<whole]))
            }
        }
        return .needsMore
    }

    /// Keeps at most `wanted` bytes of what is left.
    private mutating func keep(_ wanted: Int, of bytes: UnsafeMutableRawBufferPointer, from position: inout Int) {
        let taken = min(wanted, bytes.count - position)
        guard taken > 0 else { return }
        UnsafeMutableRawBufferPointer(rebasing: kept[count..<(count + taken)])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[position..<(position + taken)]))
        count += taken
        position += taken
    }
}
