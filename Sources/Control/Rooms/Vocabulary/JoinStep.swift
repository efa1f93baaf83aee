/// What a stay reaches one after the other until media flows both ways. `rawValue` is the stable word.
public enum JoinStep: String, Sendable, Hashable, CaseIterable {
    /// The first descriptions were exchanged.
    case offer
    /// The first valid ICE check of the client arrived.
    case ice
    /// DTLS is up: there are keys.
    case dtls
    /// The first packet of a track of the participant's arrived.
    case received
    /// The first keyframe did.
    case receivedKeyframe
    /// The first packet of another's track was sent to it.
    case sent
    /// The first packet of a video was, which begins with a keyframe.
    case sentVideo
}
