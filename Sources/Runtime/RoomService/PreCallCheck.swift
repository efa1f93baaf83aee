import MediaControl
public import Primitives
import Rooms

/// The room of a pre-call check: a client sends itself a video through the server, as it would to others.
///
/// It is an ordinary room with two participants, so that a check takes the way that a call takes. What is special are its bounds, and that nothing mentions it.
public enum PreCallCheck {
    /// The room closes after this long. A check of three ways takes some 20 s, and up to 40 s where two of them fail.
    public static let duration = TimeInterval.seconds(90)
    /// What the video may take: enough for a quality that people call good, little enough that 20 checks do no harm.
    public static let maxBitrate = Bitrate.kilobitsPerSecond(1_500)
    /// How many of `all` one client may have at once: half of them, so that nobody keeps others from theirs. Somebody who reloads the page, and an operator who tries
    /// address after address (`martlet reach`), has another one while those before wait for their end.
    static func maximumPerClient(of all: Int) -> Int { max(1, all / 2) }

    /// The rules of the room on a server with these defaults: its codecs, nothing else that could keep a video out.
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
