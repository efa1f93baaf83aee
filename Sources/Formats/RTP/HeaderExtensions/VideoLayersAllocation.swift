import Primitives

/// What a simulcast or SVC sender intends to send now (video-layers-allocation00): layers, rates and sizes.
///
/// ```text
/// +-+-+-+-+-+-+-+-+
/// |RID| NS| sl_bm |   which stream carries this, streams - 1, spatial layers (the same in all streams)
/// +-+-+-+-+-+-+-+-+
/// |sl0_bm |sl1_bm |   per stream, when sl_bm is 0
/// +-+-+-+-+-+-+-+-+
/// |#tl|#tl|#tl|#tl|   temporal layers - 1 for each spatial layer
/// +-+-+-+-+-+-+-+-+
/// : kbit/s, leb128:   for each temporal layer, lower ones included
/// +-+-+-+-+-+-+-+-+
/// : w-1, h-1, fps :   16, 16 and 8 bits for each spatial layer; optional
/// ```
public struct VideoLayersAllocation: Sendable {
    /// One spatial layer of one stream.
    public struct Layer: Sendable, Hashable {
        /// The RTP stream, counted from 0.
        public var stream = 0
        /// The spatial layer in that stream.
        public var spatialLayer = 0
        /// Number of temporal layers, 1 to 4.
        public var temporalLayers = 1
        /// Rate with all temporal layers, in kbit/s.
        public var kilobitsPerSecond: UInt32 = 0
        /// Width, 0 when not signalled.
        public var width = 0
        /// Height, 0 when not signalled.
        public var height = 0
        /// Frames per second, 0 when not signalled.
        public var framesPerSecond = 0
    }

    /// Number of streams; 0 when nothing is being sent.
    public private(set) var streamCount = 0
    /// Number of entries of `layers` that are set.
    public private(set) var layerCount = 0
    /// Layers in order of stream, then spatial layer.
    public private(set) var layers = InlineArray<16, Layer>(repeating: Layer())

    /// Reads the value.
    public init?(_ element: RTPHeaderExtensions.Element, in packet: RawSpan) {
        guard element.length > 0 else { return nil }
        var position = element.offset
        let end = element.offset + element.length
        let first = packet.readUInt8(position)
        position += 1
        if first == 0, element.length == 1 { return }  // Nothing is being sent.
        streamCount = Int(first >> 4 & 3) + 1
        guard readLayers(shared: first & 0x0f, at: &position, end: end, in: packet) else { return nil }
        guard readTemporalLayers(at: &position, end: end, in: packet) else { return nil }
        for index in 0..<layerCount {
            for _ in 0..<layers[index].temporalLayers {
                guard let rate = LEB128.read(packet, &position, end: end) else { return nil }
                layers[index].kilobitsPerSecond = rate
            }
        }
        guard position < end else { return }
        guard end - position == 5 * layerCount else { return nil }
        for index in 0..<layerCount {
            layers[index].width = Int(packet.readUInt16(position)) + 1
            layers[index].height = Int(packet.readUInt16(position + 2)) + 1
            layers[index].framesPerSecond = Int(packet.readUInt8(position + 4))
            position += 5
        }
    }

    private mutating func readLayers(shared: UInt8, at position: inout Int, end: Int, in packet: RawSpan) -> Bool {
        if shared == 0, position + (streamCount + 1) / 2 > end { return false }
        for stream in 0..<streamCount {
            var mask = shared
            if shared == 0 {
                let byte = packet.readUInt8(position + stream / 2)
                mask = stream & 1 == 0 ? byte >> 4 : byte & 0x0f
            }
            for spatialLayer in 0..<4 where mask & 1 << spatialLayer != 0 {
                layers[layerCount].stream = stream
                layers[layerCount].spatialLayer = spatialLayer
                layerCount += 1
            }
        }
        if shared == 0 { position += (streamCount + 1) / 2 }
        return true
    }

    private mutating func readTemporalLayers(at position: inout Int, end: Int, in packet: RawSpan) -> Bool {
        let bytes = (layerCount + 3) / 4
        guard position + bytes <= end else { return false }
        for index in 0..<layerCount {
            let byte = packet.readUInt8(position + index / 4)
            layers[index].temporalLayers = Int(byte >> (6 - 2 * (index & 3)) & 3) + 1
        }
        position += bytes
        return true
    }
}
