/// What a publisher announces about a track for the clients of subscribers, and for the server's session descriptions.
public struct TrackDetails: Sendable, Hashable {
    /// How the payload is encrypted end to end.
    public enum Encryption: Int, Sendable, Hashable { case none, gcm, custom }

    /// An announced layer.
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
    /// The name of the media stream that the track belongs to; empty: the source decides.
    public var stream = ""
    public var layers: [Layer] = []
    public var isStereo = false
    /// Its client sends less during silence (DTX) if the server requests it.
    public var usesDTX = false
    public var disablesRED = false
    /// The publisher's audio processing, in the words of its protocol.
    public var audioFeatures: [Int] = []
    /// What the publisher appends to each frame (times, numbers), in the words of its protocol: subscribers' clients need this to read and remove it.
    public var frameTrailerFeatures: [Int] = []

    /// Nothing announced.
    public init() {}

    /// More layers than any publisher sends.
    static let maximumLayers = 8
    /// More values than the protocols define.
    static let maximumFeatures = 32

    /// Refuses values that no real client announces.
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
