import PayloadFormats
import Primitives

/// What one frame refers to, in the numbers that its receiver sees.
struct FrameReferences: Sendable {
    /// AV1's frame number or VP9's picture id.
    var number: UInt16
    /// Bits of `number`.
    var mask: UInt16
    /// `number` counts pictures, each with a frame per spatial layer; otherwise it counts frames.
    var countsPictures: Bool
    /// How far back in these numbers; for VP9 within the same spatial layer.
    var distances: [UInt16] = []
    /// The frame below, of the same picture (VP9; AV1 has it among `distances`).
    var refersDown = false

    /// nil if the packet does not say: VP8, H.264, VP9 with a fixed pattern.
    init?(_ summary: PayloadSummary, codec: PayloadCodec, payload: RawSpan, descriptor: DependencyDescriptor?) {
        switch codec {
        case .av1:
            guard let descriptor else { return nil }
            number = descriptor.frameNumber
            mask = .max
            countsPictures = false
            distances = (0..<descriptor.referenceCount).map { descriptor.reference(at: $0) }
        case .vp9:
            guard summary.isFlexible, summary.pictureIDOffset != 0 else { return nil }
            number = summary.pictureID
            mask = summary.isLongPictureID ? 0x7fff : 0x7f
            countsPictures = true
            refersDown = summary.usesLowerSpatialLayer
            // After I, picture id and layer indices: P_DIFF and whether another follows.
            var offset = summary.pictureIDOffset + (summary.isLongPictureID ? 2 : 1) + 1
            guard payload.readUInt8(0) & 0x40 != 0 else { return }
            repeat {
                distances.append(UInt16(payload.readUInt8(offset) >> 1))
                offset += 1
            } while payload.readUInt8(offset - 1) & 1 != 0
        case .vp8, .h264, .opus, .red, .otherAudio: return nil
        }
    }
}

/// Checks that a stream with layers inside has what a decoder needs: every frame that a frame refers to was shown before, under the number by which it is
/// referred to; and each picture has an end.
public struct ReferenceChecker: Sendable {
    /// Violations; at most a few sentences.
    public private(set) var faults: [String] = []
    /// Spatial layers of the track, inside its stream.
    var spatialLayers = 1

    private struct Shown: Sendable {
        var key: UInt32
        var frame: UInt32
    }

    /// The frames that later ones may refer to, a second or two of them.
    private var shown: [Shown] = []
    private var next = 0
    private static let capacity = 256
    private var before: (timestamp: UInt32, endedPicture: Bool)?

    init() {}

    /// Checks the first packet of a complete frame, in the order of numbers.
    mutating func check(_ packet: PacketFacts, endsPicture: Bool) {
        guard let trace = packet.trace, let references = packet.references else { return }
        if packet.startsKeyframe {
            shown.removeAll(keepingCapacity: true)
            next = 0
        } else if let before, !before.endedPicture, before.timestamp != packet.timestamp {
            fault("a frame without an end before \(packet)")
        }
        before = (packet.timestamp, endsPicture)
        let layer = UInt32(references.countsPictures ? packet.spatialLayer : 0)
        for distance in references.distances {
            let frames = UInt32(distance) * UInt32(references.countsPictures ? spatialLayers : 1)
            look(for: (references.number &- distance) & references.mask, layer, frame: trace.frame &- frames, packet)
        }
        if references.refersDown { look(for: references.number, layer - 1, frame: trace.frame - 1, packet) }
        keep(Shown(key: UInt32(references.number) << 3 | layer, frame: trace.frame))
    }

    private mutating func look(for number: UInt16, _ layer: UInt32, frame: UInt32, _ packet: PacketFacts) {
        let key = UInt32(number) << 3 | layer
        guard !shown.contains(where: { $0.key == key && $0.frame == frame }) else { return }
        let found = shown.last { $0.key == key }.map { "is frame \($0.frame)" } ?? "was not sent"
        fault("\(packet), spatial layer \(packet.spatialLayer), refers to frame \(frame) as \(number), which \(found)")
    }

    private mutating func keep(_ frame: Shown) {
        if shown.count < Self.capacity { return shown.append(frame) }
        shown[next] = frame
        next = (next + 1) % Self.capacity
    }

    private mutating func fault(_ sentence: String) {
        if faults.count < 6 { faults.append(sentence) }
    }
}
