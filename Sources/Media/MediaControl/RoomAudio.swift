/// Which microphones of a room are forwarded, and whom its list of speakers names.
public struct RoomAudio: Sendable, Hashable {
    /// Only so many microphones are forwarded at once, the loudest; nil: all.
    public var maximumMicrophones: Int?
    /// Only what is at least as loud as this takes another microphone's place among the loudest, in dBov (RFC 6464), -80 to -20. By default -60, which
    /// is nobody's voice, however quiet the room.
    public var microphoneThreshold = -60
    /// A level above this is voice, in dBov (RFC 6464), -80 to -20.
    public var voiceThreshold = -50
    /// Maximum speakers listed, 0 to 50: the more speak at once, the less the list is worth.
    public var maximumSpeakers = 10

    /// All microphones, ten speakers.
    public init() {}
}
