public import Primitives

/// One layer of a video and all that it depends on: up to a spatial and a temporal layer.
public struct LayerPoint: Sendable, Hashable, Comparable {
    /// Spatial rank, 0 is the smallest. With simulcast the rank of the stream, with SVC the spatial layer.
    public var spatial: Int
    /// The highest temporal layer, 0 is the slowest.
    public var temporal: Int

    /// This layer.
    public init(spatial: Int, temporal: Int) {
        self.spatial = spatial
        self.temporal = temporal
    }

    /// By size, then by frames.
    public static func < (a: Self, b: Self) -> Bool { (a.spatial, a.temporal) < (b.spatial, b.temporal) }
}

/// One way to forward a track: a layer, and what it costs and shows.
public struct LayerOffer: Sendable, Hashable {
    public var point: LayerPoint
    /// Measured, of everything that must be sent for it: lower temporal layers, and with SVC lower spatial ones.
    public var bitrate: Bitrate
    /// Lines; 0 while unknown.
    public var height: Int
    /// Frames per second, measured; 0 while unknown.
    public var framesPerSecond: Double

    /// A layer that costs `bitrate`.
    public init(_ point: LayerPoint, bitrate: Bitrate, height: Int, framesPerSecond: Double) {
        self.point = point
        self.bitrate = bitrate
        self.height = height
        self.framesPerSecond = framesPerSecond
    }
}
