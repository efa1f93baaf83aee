import MediaControl
public import Primitives
public import Rooms

/// The room of a pre-call check: a client sends itself a video through the server, as it would to others.
///
/// It is an ordinary room with two participants, so that a check takes the way that a call takes. What is special are its bounds, and that nothing mentions it.
public enum PreCallCheck {
    /// The room closes after this long. A check of three ways takes some 20 s, and up to 40 s where two of them fail.
    public static let duration = TimeInterval.seconds(90)
    /// What the video may take: enough for a quality that people call good, little enough that 20 checks do no harm.
    public static let maxBitrate = Bitrate.kilobitsPerSecond(1_500)

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

extension RoomService {
    /// Makes the room of a pre-call check and returns its name; `rate_limited` while there are as many as the configuration allows.
    public func openCheck() async throws(RoomError) -> String {
        var turn = newTurn()
        let hosted: HostedRoom
        do throws(RoomError) {
            guard configuration.maxChecks > 0 else {
                throw RoomError(
                    .permissionDenied, "this server makes no pre-call checks (its setting rooms.max_checks is 0)")
            }
            guard rooms.values.count(where: \.isCheck) < configuration.maxChecks else {
                throw RoomError(
                    .rateLimited, "as many pre-call checks are in progress as this server allows",
                    retryAfter: .seconds(10))
            }
            hosted = try makeRoom(
                named: RoomNames.generated("check-", turn: &turn), preset: nil,
                check: PreCallCheck.policy(configuration.defaultPolicy), turn: &turn)
        } catch {
            throw counted(error)
        }
        return try await step(hosted, turn) { room, _ in room.name }
    }
}
