internal import Primitives
internal import RTP

/// The layers as the publisher announces them (video-layers-allocation00), used until they have been measured.
///
/// A layer's first second is a keyframe and little else, which makes its rate look two or three times too high; and its size is unknown until a
/// keyframe has arrived. Senders announce both with their first packets and at every change.
struct AnnouncedLayers: Sendable {
    struct Layer: Sendable {
        var kilobitsPerSecond: UInt32 = 0
        var height: UInt16 = 0
    }

    /// Four streams with four spatial layers each, the most that the extension can express.
    private var layers = InlineArray<16, Layer>(repeating: Layer())

    /// Applies one packet's announcement.
    mutating func apply(_ allocation: VideoLayersAllocation) {
        self = AnnouncedLayers()
        for index in 0..<allocation.layerCount {
            let layer = allocation.layers[index]
            layers[(layer.stream & 3) * 4 + layer.spatialLayer & 3] = Layer(
                kilobitsPerSecond: layer.kilobitsPerSecond, height: UInt16(clamping: layer.height))
        }
    }

    /// Bits per second of a stream's spatial layers up to one; nil if not announced.
    func bitsPerSecond(stream: Int, upTo spatial: Int) -> Double? {
        guard stream < 4, spatial < 4, layers[stream * 4 + spatial].kilobitsPerSecond > 0 else { return nil }
        return (0...spatial).reduce(0) { $0 + Double(layers[stream * 4 + $1].kilobitsPerSecond) * 1_000 }
    }

    /// Height of a layer; nil if not announced.
    func height(stream: Int, spatial: Int) -> Int? {
        guard stream < 4, spatial < 4, layers[stream * 4 + spatial].height > 0 else { return nil }
        return Int(layers[stream * 4 + spatial].height)
    }
}
