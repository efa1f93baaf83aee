/// The steps of a stay until media flows both ways, in order. `rawValue` is the stable word.
public enum JoinStep: String, Sendable, Hashable, CaseIterable {
    /// The first descriptions were exchanged.
    case offer
    /// The first valid ICE check of the client arrived.
    case ice
    /// DTLS is up: there are keys.
    case dtls
    /// The first packet of one of the participant's tracks arrived.
    case received
    /// The first keyframe of one of them arrived.
    case receivedKeyframe
    /// The first packet of another participant's track was sent to it.
    case sent
    /// The first packet of a video was sent to it; it begins a keyframe.
    case sentVideo
}
