import Primitives
import RTP

/// Puts packets in the order of their sequence numbers: retransmissions come late.
///
/// A missing packet is waited for until a later one is `patience` old, or until too many wait.
struct SequenceOrder {
    /// A packet with the values of its header.
    struct Packet {
        var sequence: Int64
        var header: RTPHeader
        var bytes: [UInt8]
        var arrival: MonotonicTime
    }

    /// What is next.
    enum Delivery {
        case packet(Packet)
        /// These did not arrive in time.
        case lost(ClosedRange<Int64>)
    }

    /// The receive stream gives a packet up within this time.
    static let patience = TimeSpan.seconds(1)
    /// 2 s of a stream of 10 Mbit/s.
    static let capacity = 2_048

    private var unwrapper = SequenceUnwrapper()
    private var next: Int64?
    private var held: [Int64: Packet] = [:]

    /// Processes a packet; false for one that arrived twice or too late.
    mutating func insert(_ header: RTPHeader, _ bytes: [UInt8], arrival: MonotonicTime) -> Bool {
        let sequence = unwrapper.unwrap(header.sequenceNumber)
        if next == nil { next = sequence }
        guard let next, sequence >= next, held[sequence] == nil else { return false }
        held[sequence] = Packet(sequence: sequence, header: header, bytes: bytes, arrival: arrival)
        return true
    }

    /// The next packet in order, or a loss that is no longer waited for; nil while a packet is waited for.
    mutating func deliver(at now: MonotonicTime) -> Delivery? {
        guard let expected = next, !held.isEmpty else { return nil }
        if let packet = held.removeValue(forKey: expected) {
            next = expected + 1
            return .packet(packet)
        }
        guard let first = held.keys.min(), let packet = held[first] else { return nil }
        guard now - packet.arrival >= Self.patience || held.count >= Self.capacity else { return nil }
        next = first
        return .lost(expected...(first - 1))
    }

    /// Nothing more will arrive: no packet is waited for any more.
    mutating func deliverRest() -> Delivery? { deliver(at: .distantFuture) }

    /// The following packets do not continue the sequence.
    mutating func restart() {
        unwrapper = SequenceUnwrapper()
        next = nil
        held = [:]
    }
}
