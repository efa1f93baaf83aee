public import Primitives

/// One way to forward a track: a spatial layer with its temporal layers up to one, and what that costs and shows.
public struct LayerOffer: Sendable, Hashable {
    /// Spatial rank, 0 is the smallest picture.
    public var spatial: Int
    /// The highest temporal layer that is forwarded, 0 is the slowest.
    public var temporal: Int
    /// Measured, of everything that must be sent for it: lower temporal layers, and with SVC lower spatial ones.
    public var bitrate: Bitrate
    /// Lines of the picture; 0 while unknown.
    public var height: Int
    /// Frames per second, measured; 0 while unknown.
    public var framesPerSecond: Double

    public init(spatial: Int, temporal: Int, bitrate: Bitrate, height: Int, framesPerSecond: Double) {
        self.spatial = spatial
        self.temporal = temporal
        self.bitrate = bitrate
        self.height = height
        self.framesPerSecond = framesPerSecond
    }
}

/// What matters in a picture when not everything can be sent. The names are those of MediaStreamTrack's `contentHint`.
public enum ContentHint: String, Sendable, Hashable, Codable {
    /// A camera or a game: a smaller picture rather than a slower one.
    case motion
    /// A screen with pictures: a slower picture rather than a smaller one (A10).
    case detail
    /// A screen with text: as `detail`.
    case text

    /// Whether the picture keeps its size and gives up frames.
    public var keepsResolution: Bool { self != .motion }
}
