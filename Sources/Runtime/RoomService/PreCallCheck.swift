import MediaControl
public import Primitives
import Rooms

/// The room of a pre-call check: a client sends itself a video through the server, as it would to others.
///
/// It is an ordinary room with two participants, so that a check works like a call. Only its limits are special, and that it stays hidden.
public enum PreCallCheck {
    /// The room closes after this long. A check over three transports takes some 20 s, and up to 40 s if two of them fail.
    public static let duration = TimeSpan.seconds(90)
    /// The limit of the video's rate: enough for a good quality, little enough that 20 checks do no harm.
    public static let maxBitrate = Bitrate.kilobitsPerSecond(1_500)
    /// How many of `all` one client may have at a time: half of them, so that nobody keeps others from theirs. Somebody who reloads the page, and an operator
    /// who tries one address after another (`martlet reach`), has several while earlier ones wait for their end.
    static func maximumPerClient(of all: Int) -> Int { max(1, all / 2) }

    /// The rules of the room on a server with these defaults: its codecs, and nothing else that could exclude a video.
    static func policy(_ defaults: RoomPolicy) -> RoomPolicy {
        var policy = RoomPolicy()
        policy.audioCodecs = defaults.audioCodecs
        policy.videoCodecs = defaults.videoCodecs
        policy.h264Profiles = defaults.h264Profiles
        policy.vp9Profiles = defaults.vp9Profiles
        policy.av1Profiles = defaults.av1Profiles
        policy.maxParticipants = 2
        policy.maxPublishers = 1
        policy.maxVideoBitrate = maxBitrate
        policy.maxDuration = duration
        policy.emptyTimeout = .seconds(20)
        policy.departureTimeout = .seconds(2)
        return policy
    }
}
