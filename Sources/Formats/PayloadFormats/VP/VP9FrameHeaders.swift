import Primitives

/// Reads the uncompressed headers of a VP9 stream's frames, in decode order (VP9 bitstream specification section 6.2). Where a header ends depends on the
/// frame's width, which may be that of an earlier frame.
public struct VP9FrameHeaders: Sendable {
    /// Widths of the frames that later ones may refer to; 0: not known.
    private var widths = InlineArray<8, Int>(repeating: 0)

    /// Of a stream that begins with a keyframe.
    public init() {}

    /// The header of the next frame; nil where it is malformed, refers to a frame that was not read, or only shows an earlier one.
    public mutating func next(_ frame: RawSpan) -> VP9FrameHeader? {
        var reader = VP9HeaderReader(frame.byteCount)
        return reader.read(frame, &widths)
    }
}

/// The values of a frame's uncompressed header.
public struct VP9FrameHeader: Sendable, Hashable {
    /// Whether decoders show the frame.
    public let isShown: Bool
    let isKeyframe: Bool
    /// The bit that says whether it is shown, and the first bit after the flags.
    let shownBit: Int
    let behindFlags: Int
    /// Bits of the header; the rest of its last byte is padding.
    let bitCount: Int

    /// The frame with this header, changed so that decoders decode but do not show it. The header of a frame that is not shown has one more bit: whether it is
    /// intra only.
    public func hiding(_ frame: [UInt8]) -> [UInt8] {
        guard isShown else { return frame }
        let added = isKeyframe ? 0 : 1
        var bytes = [UInt8](repeating: 0, count: (bitCount + added + 7) / 8)
        for bit in 0..<bitCount where bit != shownBit && frame[bit >> 3] & (0x80 >> UInt8(bit & 7)) != 0 {
            let place = bit < behindFlags ? bit : bit + added
            bytes[place >> 3] |= 0x80 >> UInt8(place & 7)
        }
        return bytes + frame[((bitCount + 7) / 8)...]
    }
}

extension BitReader {
    /// Skips bit depth, colour space and subsampling in a header of this profile (VP9 bitstream specification section 6.2.2).
    mutating func skipVP9Colors(_ frame: RawSpan, profile: UInt32) {
        if profile >= 2 { skip(1, frame) }
        let isRGB = bits(3, frame) == 7
        if isRGB {
            if profile & 1 == 1 { skip(1, frame) }
        } else {
            skip(profile & 1 == 1 ? 4 : 1, frame)
        }
    }
}

/// One header that is being read.
private struct VP9HeaderReader {
    private var bits: BitReader

    init(_ length: Int) { bits = BitReader(offset: 0, length: length) }

    mutating func read(_ frame: RawSpan, _ widths: inout InlineArray<8, Int>) -> VP9FrameHeader? {
        guard bits.bits(2, frame) == 2 else { return nil }
        let profile = bits.bits(1, frame) | bits.bits(1, frame) << 1
        if profile == 3, bits.bit(frame) { return nil }
        // A frame that only shows an earlier one.
        if bits.bit(frame) { return nil }
        let isKeyframe = !bits.bit(frame)
        let shownBit = bits.position
        let isShown = bits.bit(frame)
        let isResilient = bits.bit(frame)
        let behindFlags = bits.position
        let isIntraOnly = !isKeyframe && !isShown && bits.bit(frame)
        if !isKeyframe, !isResilient { bits.skip(2, frame) }
        let width: Int
        var refreshed: UInt32 = 0xff
        if isKeyframe || isIntraOnly {
            guard bits.bits(24, frame) == 0x498342 else { return nil }
            if isKeyframe || profile > 0 { bits.skipVP9Colors(frame, profile: profile) }
            if isIntraOnly { refreshed = bits.bits(8, frame) }
            width = size(frame)
        } else {
            refreshed = bits.bits(8, frame)
            width = sizeWithReferences(frame, widths)
        }
        skipRenderSize(frame)
        if !isKeyframe, !isIntraOnly {
            bits.skip(1, frame)
            if !bits.bit(frame) { bits.skip(2, frame) }
        }
        if !isResilient { bits.skip(2, frame) }
        bits.skip(2, frame)
        skipLoopFilter(frame)
        skipQuantization(frame)
        skipSegmentation(frame)
        skipTiles(frame, width: width)
        bits.skip(16, frame)
        guard width > 0, !bits.isExhausted else { return nil }
        for slot in 0..<8 where refreshed & 1 << UInt32(slot) != 0 { widths[slot] = width }
        return VP9FrameHeader(
            isShown: isShown, isKeyframe: isKeyframe, shownBit: shownBit, behindFlags: behindFlags,
            bitCount: bits.position)
    }

    private mutating func size(_ frame: RawSpan) -> Int {
        let width = Int(bits.bits(16, frame)) + 1
        bits.skip(16, frame)
        return width
    }

    private mutating func sizeWithReferences(_ frame: RawSpan, _ widths: InlineArray<8, Int>) -> Int {
        var references: [Int] = []
        for _ in 0..<3 {
            references.append(Int(bits.bits(3, frame)))
            bits.skip(1, frame)
        }
        for reference in references where bits.bit(frame) { return widths[reference] }
        return size(frame)
    }

    private mutating func skipRenderSize(_ frame: RawSpan) {
        if bits.bit(frame) { bits.skip(32, frame) }
    }

    private mutating func skipLoopFilter(_ frame: RawSpan) {
        bits.skip(9, frame)
        guard bits.bit(frame), bits.bit(frame) else { return }
        for _ in 0..<6 where bits.bit(frame) { bits.skip(7, frame) }
    }

    private mutating func skipQuantization(_ frame: RawSpan) {
        bits.skip(8, frame)
        for _ in 0..<3 where bits.bit(frame) { bits.skip(5, frame) }
    }

    private mutating func skipSegmentation(_ frame: RawSpan) {
        guard bits.bit(frame) else { return }
        if bits.bit(frame) {
            for _ in 0..<7 where bits.bit(frame) { bits.skip(8, frame) }
            if bits.bit(frame) { for _ in 0..<3 where bits.bit(frame) { bits.skip(8, frame) } }
        }
        guard bits.bit(frame) else { return }
        bits.skip(1, frame)
        for _ in 0..<8 {
            // Quantizer and loop filter have a sign; the reference has two bits, the skip flag none.
            for width in [9, 7, 2, 0] where bits.bit(frame) { bits.skip(width, frame) }
        }
    }

    private mutating func skipTiles(_ frame: RawSpan, width: Int) {
        let blocks = (width + 63) / 64
        var columns = 0
        while 64 << columns < blocks { columns += 1 }
        var most = 1
        while blocks >> most >= 4 { most += 1 }
        while columns < most - 1, bits.bit(frame) { columns += 1 }
        if bits.bit(frame) { bits.skip(1, frame) }
    }
}
