import MediaControl
import Primitives

/// A stream with layers inside, as libwebrtc sends it: VP9 in flexible mode (RFC 9628), AV1 with dependency descriptors.
///
/// Headers are followed by filler; every packet has a ``MediaTrace`` whose frame number counts the frames of all layers.
struct ScalableVideo: Sendable {
    /// One packet of a picture.
    struct Packet: Sendable {
        var payload: [UInt8]
        /// AV1's dependency descriptor; empty for VP9.
        var descriptor: [UInt8] = []
    }

    /// Size of the highest layer; a change shows with the next keyframe.
    var width: Int
    var height: Int
    /// Pictures so far.
    private(set) var pictures: UInt32 = 0
    private let codec: Codec
    private let origin: MediaTrace.Origin
    private var pattern: LayerPattern
    private var pictureID: UInt16

    init(_ plan: VideoPlan, layer: VideoPlan.Layer, origin: MediaTrace.Origin, random: inout RandomSource) {
        precondition(plan.codec == .vp9 || plan.codec == .av1, "no layers inside streams of other codecs")
        codec = plan.codec
        self.origin = origin
        width = layer.width
        height = layer.height
        pattern = LayerPattern(
            spatialLayers: plan.spatialLayers, temporalLayers: plan.temporalLayers,
            refersUpInKeyframesOnly: plan.refersUpInKeyframesOnly)
        pictureID = UInt16.random(in: 0...0x7fff, using: &random)
    }

    /// The packets of the next picture, about `bytes` long in all; each layer is four times as large as the one below, as is its number of pixels.
    mutating func picture(isKey: Bool, bytes: Int, at now: MonotonicTime) -> [Packet] {
        pictures += 1
        pictureID = (pictureID + 1) & 0x7fff
        let frames = pattern.next(isKey: isKey)
        let whole = frames.reduce(0) { $0 + 1 << (2 * $1.spatial) }
        return frames.flatMap { frame in
            let own = max(bytes * (1 << (2 * frame.spatial)) / whole, 40)
            let count = min(255, max(1, (own + SyntheticVideo.maximumPayload - 1) / SyntheticVideo.maximumPayload))
            return (0..<count).map { index in
                let trace = MediaTrace(origin: origin, frame: frame.number, index: index, count: count, time: now)
                return packet(of: frame, trace: trace, length: own / count)
            }
        }
    }

    private func packet(of frame: LayerPattern.Frame, trace: MediaTrace, length: Int) -> Packet {
        let isFirst = trace.index == 0, isLast = trace.index == trace.count - 1
        guard codec == .av1 else {
            var packet = Packet(payload: vp9(frame, isFirst: isFirst, isLast: isLast))
            trace.finish(&packet.payload, length: length)
            return packet
        }
        // Z, Y, one element, N; then an OBU of type frame with its layers.
        let startsSequence = isFirst && frame.isKey && frame.spatial == 0
        let head: UInt8 = (isFirst ? 0 : 0x80) | (isLast ? 0 : 0x40) | 0x10 | (startsSequence ? 0x08 : 0)
        var packet = Packet(payload: [head])
        if isFirst { packet.payload += [0x34, UInt8(frame.temporal) << 5 | UInt8(frame.spatial) << 3] }
        trace.finish(&packet.payload, length: length)
        let writer = DescriptorWriter(pattern: pattern, width: width, height: height)
        packet.descriptor = writer.descriptor(of: frame, isFirst: isFirst, isLast: isLast)
        return packet
    }

    /// RFC 9628 section 4.2 in flexible mode: picture id, layer indices, references; the sizes before a keyframe.
    private func vp9(_ frame: LayerPattern.Frame, isFirst: Bool, isLast: Bool) -> [UInt8] {
        let hasSizes = frame.isKey && isFirst && frame.spatial == 0
        let isTop = frame.spatial == pattern.spatialLayers - 1
        let isUnusedAbove = isTop || (pattern.refersUpInKeyframesOnly && !frame.isKey)
        var flags: UInt8 = 0x80 | (frame.distance == nil ? 0 : 0x40) | 0x30 | (isFirst ? 0x08 : 0)
        flags |= (isLast ? 0x04 : 0) | (hasSizes ? 0x02 : 0) | (isUnusedAbove ? 0x01 : 0)
        var head = [flags, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff)]
        head.append(UInt8(frame.temporal) << 5 | 0x10 | UInt8(frame.spatial) << 1 | (frame.refersDown ? 1 : 0))
        if let distance = frame.distance { head.append(UInt8(distance) << 1) }
        if hasSizes {
            head.append(UInt8(pattern.spatialLayers - 1) << 5 | 0x10)
            for below in (0..<pattern.spatialLayers).reversed() {
                head += SyntheticVideo.bigEndian(width >> below) + SyntheticVideo.bigEndian(height >> below)
            }
        }
        return head + [0x82, 0x49, 0x83, 0x42]
    }
}
