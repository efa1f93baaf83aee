import MediaControl
import Simulation

/// The bytes before the coded data in each packet of a frame, and its header extension, as libwebrtc writes them for
/// one layer of 640x360.
struct CodecHeads {
    let codec: Codec
    private var picture: UInt16 = 300
    private var temporalZero: UInt8 = 10
    private var frame: UInt16 = 0

    init(_ codec: Codec) { self.codec = codec }

    /// The next frame begins.
    mutating func advance() {
        picture = (picture + 1) & 0x7fff
        temporalZero &+= 1
        frame &+= 1
    }

    /// Packet `part` of `count` of the frame, whose payload has `size` bytes.
    func head(_ part: Int, of count: Int, isKey: Bool, size: Int) -> [UInt8] {
        switch codec {
        case .vp9: vp9(part, of: count, isKey: isKey)
        case .h264: h264(part, of: count, isKey: isKey, size: size)
        case .av1: av1(part, of: count, isKey: isKey)
        default: vp8(part, isKey: isKey)
        }
    }

    /// RFC 7741: picture id, index of the base layer, key index; then the frame header.
    private func vp8(_ part: Int, isKey: Bool) -> [UInt8] {
        let head = SyntheticVideo.vp8Descriptor(
            startsFrame: part == 0, pictureID: picture, tl0PictureIndex: temporalZero, layer: 1)
        return part == 0 ? head + SyntheticVideo.vp8FrameHeader(isKey: isKey, width: 640, height: 360) : head
    }

    /// RFC 9628: picture id; a keyframe begins with its size.
    private func vp9(_ part: Int, of count: Int, isKey: Bool) -> [UInt8] {
        let hasSize = isKey && part == 0
        let flags: UInt8 =
            0x80 | (isKey ? 0 : 0x40) | (part == 0 ? 0x08 : 0) | (part == count - 1 ? 0x04 : 0) | (hasSize ? 0x02 : 0)
        var head = [flags, 0x80 | UInt8(picture >> 8), UInt8(truncatingIfNeeded: picture)]
        if hasSize { head += [0x10, 0x02, 0x80, 0x01, 0x68] }
        return head + [0x82, 0x49, 0x83, 0x42]
    }

    /// RFC 6184: fragments of a slice; a keyframe begins with an aggregate of its parameter sets.
    private func h264(_ part: Int, of count: Int, isKey: Bool, size: Int) -> [UInt8] {
        if isKey, part == 0 {
            var sets: [UInt8] = [0x78]
            for unit in [Self.sequenceSet, [0x68, 0xce, 0x3c, 0x80]] { sets += [0, UInt8(unit.count)] + unit }
            // Filler fills the rest of the packet.
            let rest = size - sets.count - 2
            return sets + [UInt8(rest >> 8), UInt8(rest & 0xff), 0x0c]
        }
        let first = isKey ? 1 : 0
        let flags: UInt8 = (part == first ? 0x80 : 0) | (part == count - 1 ? 0x40 : 0)
        let head: [UInt8] = [0x7c, flags | (isKey ? 5 : 1)]
        return part == first ? head + [0x88] : head
    }

    /// Constrained baseline of 640x360, as Chromium sends it.
    private static let sequenceSet: [UInt8] = [
        0x67, 0x42, 0xe0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0x90, 0x0f, 0x08, 0x84, 0x6a,
    ]

    /// The RTP payload format of AV1: fragments of one frame OBU.
    private func av1(_ part: Int, of count: Int, isKey: Bool) -> [UInt8] {
        let isFirst = part == 0
        let head: UInt8 = (isFirst ? 0 : 0x80) | (part == count - 1 ? 0 : 0x40) | 0x10 | (isKey && isFirst ? 0x08 : 0)
        return isFirst ? [head, 0x30] : [head]
    }

    /// AV1's dependency descriptor of a packet; empty for the others.
    func descriptor(_ part: Int, of count: Int, isKey: Bool) -> [UInt8] {
        guard codec == .av1 else { return [] }
        var bits = Bits()
        bits.put(part == 0 ? 1 : 0, 1)
        bits.put(part == count - 1 ? 1 : 0, 1)
        bits.put(isKey ? 0 : 1, 6)
        bits.put(UInt32(frame), 16)
        guard isKey, part == 0 else { return bits.bytes }
        // A structure and nothing else; templates from 0, two decode targets.
        bits.put(0b10000, 5)
        bits.put(0, 6)
        bits.put(1, 5)
        // A second template of the same layer, and one of a second temporal layer, which is never sent: each receiver's descriptors announce that.
        bits.put(0b00_01_11, 6)
        // The first two are switching points of both targets.
        bits.put(0b1010_1010_0001, 12)
        // The keyframe refers to nothing, others to the frame before.
        bits.put(0b0_1_0000_0_1_0000_0, 13)
        // One chain, which protects both targets; its last frame is the keyframe's own or the one before.
        bits.put(0b10, 2)
        bits.put(0b0000_0001_0001, 12)
        bits.put(1, 1)
        bits.put(639, 16)
        bits.put(359, 16)
        return bits.bytes
    }

    /// Bits, the most significant first; the last byte is filled with zeros.
    private struct Bits {
        var bytes: [UInt8] = []
        private var count = 0

        mutating func put(_ value: UInt32, _ width: Int) {
            for place in (0..<width).reversed() {
                if count % 8 == 0 { bytes.append(0) }
                bytes[bytes.count - 1] |= UInt8(value >> UInt32(place) & 1) << UInt8(7 - count % 8)
                count += 1
            }
        }
    }
}
