/// What a run plays. Every number has a default, may be set in a scenario file, and may be overridden on the command line.
public struct Scenario: Codable, Sendable, Hashable {
    public var name = "webinar"
    public var description = ""

    /// Rooms, and the members of each: those that only publish, only subscribe, or do both.
    public var rooms = 1
    public var publishers = 1
    public var subscribers = 100
    public var members = 0

    /// Opus; 0 kbit/s: none. With a burst, audio is sent in bursts of so many milliseconds, like captured app audio.
    public struct Audio: Codable, Sendable, Hashable {
        public var kbps = 32
        public var burstMilliseconds = 0
    }
    public var audio = Audio()

    /// 0 kbit/s: none. Simulcast adds layers of a half and a quarter of the size at 30 % and 10 % of the rate.
    public struct Video: Codable, Sendable, Hashable {
        public var codec = VideoCodec.vp8
        public var kbps = 1_000
        public var width = 640
        public var height = 360
        public var fps = 30
        public var simulcast = false
        /// Seconds until the loop starts again, with a keyframe.
        public var loopSeconds = 10
    }
    public var video = Video()

    /// Seconds measured, and seconds between the last join and the measuring.
    public var seconds = 30.0
    public var warmupSeconds = 4.0
    /// Joins per second while the rooms fill, and members replaced by new ones per second during the measurement.
    public var joinsPerSecond = 50.0
    public var churnPerSecond = 0.0

    /// Shares of subscribers that compare every packet with what was sent, and that decode the frames.
    public var verifyShare = 0.1
    public var decodeShare = 0.0

    /// The network before a share of the peers.
    public struct Link: Codable, Sendable, Hashable {
        public var share = 0.0
        public var lossDown = 0.0
        public var lossUp = 0.0
        public var downKbps = 0
        public var queueMilliseconds = 200
    }
    public var link = Link()

    /// SRTP profiles that peers offer, in OpenSSL's names.
    public var srtpProfiles = "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80"
    public var seed: UInt64 = 1

    public init() {}

    /// What publishers send.
    public var media: MediaSettings {
        var settings = MediaSettings()
        settings.audioKilobitsPerSecond = audio.kbps
        settings.audioBurstMilliseconds = audio.burstMilliseconds
        settings.loopSeconds = video.loopSeconds
        settings.codec = video.codec
        guard video.kbps > 0 else { return settings }
        let steps: [(size: Int, percent: Int)] = video.simulcast ? [(4, 10), (2, 30), (1, 100)] : [(1, 100)]
        settings.layers = steps.map {
            MediaSettings.Layer(
                width: max(16, video.width / $0.size & ~1), height: max(16, video.height / $0.size & ~1),
                kilobitsPerSecond: max(30, video.kbps * $0.percent / 100), framesPerSecond: video.fps)
        }
        return settings
    }
}
