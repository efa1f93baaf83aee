/// Which microphones of a room are forwarded, and which speakers its list contains.
public struct RoomAudio: Sendable, Hashable {
    /// The maximum number of microphones that are forwarded at once, the loudest ones; nil: all.
    public var maximumMicrophones: Int?
    /// A microphone must be at least this loud to take another one's place among the loudest, in dBov (RFC 6464), -80 to -20. The default, -60, is quieter than
    /// any voice, however quiet the room.
    public var microphoneThreshold = -60
    /// A level above this is voice, in dBov (RFC 6464), -80 to -20.
    public var voiceThreshold = -50
    /// Maximum speakers listed, 0 to 50: the more speak at once, the less the list is worth.
    public var maximumSpeakers = 10

    /// All microphones, ten speakers.
    public init() {}
}
