/// The application data of the datagram that an association received last: packets of SCTP, one per record (RFC 8261 section 4).
///
/// One for all associations of a worker, because it is read and emptied after each datagram: peers without data need no memory for it.
public struct ApplicationData: ~Copyable {
    /// No record that a WebRTC peer sends is longer than an Ethernet frame.
    static let longestPacket = 1_500
    /// Records in one datagram: more than fit one of 1,500 bytes with a useful length.
    private static let mostPackets = 16

    private let bytes: UnsafeMutableRawBufferPointer
    private var ends: [Int] = []

    init() {
        bytes = .allocate(byteCount: Self.longestPacket * 2, alignment: 16)
        ends.reserveCapacity(Self.mostPackets)
    }

    deinit { bytes.deallocate() }

    /// The number of packets.
    public var count: Int { ends.count }

    /// One packet; valid until `removeAll`.
    public func packet(_ index: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]])
    }

    /// Empties it.
    public mutating func removeAll() { ends.removeAll(keepingCapacity: true) }

    /// Room for a packet of at most `length` bytes after the last one; nil when there is none.
    func reserve(_ length: Int) -> UnsafeMutableRawBufferPointer? {
        let start = ends.last ?? 0
        guard ends.count < Self.mostPackets, start + length <= bytes.count else { return nil }
        return UnsafeMutableRawBufferPointer(rebasing: bytes[start..<(start + length)])
    }

    /// The first `length` bytes of the last reservation are a packet.
    mutating func commit(_ length: Int) { ends.append((ends.last ?? 0) + length) }
}
