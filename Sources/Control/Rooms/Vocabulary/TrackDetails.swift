/// What a publisher announces about a track for the clients of subscribers, and for what the server's descriptions say of it.
public struct TrackDetails: Sendable, Hashable {
    /// How the payload is encrypted end to end.
    public enum Encryption: Int, Sendable, Hashable { case none, gcm, custom }

    /// One layer as announced.
    public struct Layer: Sendable, Hashable {
        /// 0 is the lowest quality.
        public var quality: Int
        /// Pixels.
        public var width: Int
        public var height: Int
        /// Bits per second.
        public var bitrate: Int

        /// A layer.
        public init(quality: Int, width: Int, height: Int, bitrate: Int) {
            self.quality = quality
            self.width = width
            self.height = height
            self.bitrate = bitrate
        }
    }

    public var encryption = Encryption.none
    /// The name of the media stream that the track belongs to; empty: by its source.
    public var stream = ""
    public var layers: [Layer] = []
    public var isStereo = false
    /// Its client sends less in silence (DTX) where the server asks for it.
    public var usesDTX = false
    public var disablesRED = false
    /// Words of the publisher's protocol about its audio processing.
    public var audioFeatures: [Int] = []
    /// What it appends to each frame (times, numbers), in words of its protocol: by these its subscribers' clients read that, and take it off.
    public var frameTrailerFeatures: [Int] = []

    /// Nothing announced.
    public init() {}

    /// More layers than a publisher sends.
    static let maximumLayers = 8
    /// More than there are words for.
    static let maximumFeatures = 32

    /// Refuses what no client announces.
    func check() throws(RoomError) {
        try TextRule.label.check(stream, "the stream's name", tooLong: .invalidRequest)
        guard layers.count <= Self.maximumLayers else {
            throw RoomError(.tooLarge, "a track has at most \(Self.maximumLayers) layers")
        }
        guard audioFeatures.count <= Self.maximumFeatures, frameTrailerFeatures.count <= Self.maximumFeatures else {
            throw RoomError(.tooLarge, "a track has at most \(Self.maximumFeatures) features of a kind")
        }
    }
}
