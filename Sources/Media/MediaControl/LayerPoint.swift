public import Primitives

/// One layer of a video and all that it depends on: up to a spatial and a temporal layer.
public struct LayerPoint: Sendable, Hashable, Comparable {
    /// Spatial rank, 0 is the smallest. For simulcast the rank of the stream, for SVC the spatial layer.
    public var spatial: Int
    /// The highest temporal layer; 0 has the lowest frame rate.
    public var temporal: Int

    /// This layer.
    public init(spatial: Int, temporal: Int) {
        self.spatial = spatial
        self.temporal = temporal
    }

    /// By resolution, then by frame rate.
    public static func < (a: Self, b: Self) -> Bool { (a.spatial, a.temporal) < (b.spatial, b.temporal) }
}

/// One way to forward a track: a layer with its bitrate and quality.
public struct LayerOffer: Sendable, Hashable {
    public var point: LayerPoint
    /// Measured, including everything it depends on: lower temporal layers, and for SVC lower spatial ones.
    public var bitrate: Bitrate
    /// Height in pixels; 0 while unknown.
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
