/// Limits that the control plane and the media plane share, so that nothing is announced that would not be forwarded.
public enum MediaLimits {
    /// Published tracks of one participant over all its connections, and hence of one connection: cameras, screens and microphones of one
    /// person, tens at most. With three layers and their retransmissions that is 192 streams.
    public static let tracksPerParticipant = 32
    /// Subscriptions of one participant over all its connections, and hence of one connection: the sections that one description holds (256), less those that
    /// most participants need for publishing. If one publishes on more than six, subscriptions wait for a section.
    public static let subscriptionsPerParticipant = 250
}
