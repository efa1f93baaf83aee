/// The RTP packets of one sample, one after the other in one buffer that is kept from sample to sample.
public struct PacketList: Sendable {
    /// The packets' bytes.
    public private(set) var bytes: [UInt8] = []
    /// Where each packet ends.
    public private(set) var ends: [Int] = []

    /// RTP packets have at most this many bytes: what libwebrtc sends, less what a subscriber's header extensions add.
    static let maximumPacket = 1_200 - 40
    static let headerLength = 12
    /// The room left for the payload.
    static let maximumPayload = maximumPacket - headerLength
    /// Maximum NAL units or OBUs of a sample. Even encoders that make a slice for each packet have fewer in the largest sample; more would only cost packets or
    /// memory.
    static let maximumUnits = 10_000

    /// An empty list.
    public init() {}

    /// How many packets there are.
    public var count: Int { ends.count }

    /// Where the packet is in `bytes`.
    public func range(of index: Int) -> Range<Int> { (index == 0 ? 0 : ends[index - 1])..<ends[index] }

    /// Forgets the packets; the memory stays.
    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
    }

    mutating func append(_ byte: UInt8) { bytes.append(byte) }

    mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

    mutating func append(_ range: Range<Int>, of sample: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: sample[range]))
    }

    /// The packet is complete.
    mutating func endPacket() { ends.append(bytes.count) }

    /// Bytes of the open packet.
    var openLength: Int { bytes.count - (ends.last ?? 0) }

    mutating func set(_ byte: UInt8, at offset: Int) { bytes[offset] = byte }

    /// Sets the marker of the last packet (RFC 3550 section 5.1).
    mutating func markLast() {
        guard count > 0 else { return }
        bytes[range(of: count - 1).lowerBound + 1] |= 0x80
    }
}
