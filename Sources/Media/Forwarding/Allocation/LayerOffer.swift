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
