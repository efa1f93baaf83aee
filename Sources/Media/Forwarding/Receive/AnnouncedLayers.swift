internal import Primitives
internal import RTP

/// What the publisher says that its layers are (video-layers-allocation00), for as long as they have not been measured.
///
/// A layer's first second is a keyframe and little else, from which its rate looks two or three times too high; and its size is known only once a
/// keyframe has come. Senders tell both with their first packets and whenever they change.
struct AnnouncedLayers: Sendable {
    struct Layer: Sendable {
        var kilobitsPerSecond: UInt32 = 0
        var height: UInt16 = 0
    }

    /// Four streams with four spatial layers each, as many as the extension can name.
    private var layers = InlineArray<16, Layer>(repeating: Layer())

    /// Takes what one packet tells.
    mutating func take(_ allocation: VideoLayersAllocation) {
        self = AnnouncedLayers()
        for index in 0..<allocation.layerCount {
            let layer = allocation.layers[index]
            layers[(layer.stream & 3) * 4 + layer.spatialLayer & 3] = Layer(
                kilobitsPerSecond: layer.kilobitsPerSecond, height: UInt16(clamping: layer.height))
        }
    }

    /// Bits a second of a stream's spatial layers up to one; nil where nothing is told.
    func bitsPerSecond(stream: Int, upTo spatial: Int) -> Double? {
        guard stream < 4, spatial < 4, layers[stream * 4 + spatial].kilobitsPerSecond > 0 else { return nil }
        return (0...spatial).reduce(0) { $0 + Double(layers[stream * 4 + $1].kilobitsPerSecond) * 1_000 }
    }

    /// Lines of a layer; nil where nothing is told.
    func height(stream: Int, spatial: Int) -> Int? {
        guard stream < 4, spatial < 4, layers[stream * 4 + spatial].height > 0 else { return nil }
        return Int(layers[stream * 4 + spatial].height)
    }
}
