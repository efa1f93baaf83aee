public import Primitives

/// The outcome for a queued packet.
///
/// It was planned and numbered, and then queued at the pacer. Its number is always sent: a gap would be requested again and again, and
/// end in a keyframe request.
public enum WaitingResult: Sendable, Hashable {
    /// This many bytes are in the slot.
    case written(Int)
    /// Padding of this many bytes replaces it: the history has lost it, or another track is bound by now.
    case filled(Int, breaksFrame: Bool)
    /// It was sent already, or its number is too old to matter.
    case gone

    /// Bytes in the slot; nil if there is nothing to send.
    public var length: Int? {
        switch self {
        case .written(let length), .filled(let length, _): length
        case .gone: nil
        }
    }
}

/// The outcome for one number of a NACK.
public enum RepeatVerdict: Sendable, Hashable {
    /// Retransmit the packet with this extended output number.
    case send(UInt32)
    /// It was sent, and is not kept any more.
    case gone
    /// Not retransmitted, for this reason.
    case dropped(DropReason)
    /// The publisher's packet is missing here too; it is sent when it is repaired.
    case notYetHere
}
