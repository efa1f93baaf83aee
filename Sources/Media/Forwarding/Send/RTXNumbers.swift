/// The sequence numbers of a subscription's retransmissions, a space of their own (RFC 4588 section 4).
struct RTXNumbers {
    private var highest: UInt16

    /// The first number follows `number`.
    init(after number: UInt16) { highest = number }

    /// The number of the next packet.
    var next: UInt16 { highest &+ 1 }

    /// A packet with this number, which was `next`, is sent.
    mutating func use(_ number: UInt16) { highest = number }
}
