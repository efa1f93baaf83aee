public import Primitives

/// Changes to a dependency descriptor on its way to one receiver.
public enum DependencyDescriptorRewriter {
    /// Shifts the frame number of a descriptor in place, with wrap-around; a descriptor without its mandatory fields is left unchanged.
    @inlinable @inline(__always) public static func moveFrameNumber(
        _ descriptor: UnsafeMutableRawBufferPointer, by delta: UInt16
    ) {
        guard descriptor.count >= 3 else { return }
        let number = UInt16(bigEndian: descriptor.loadUnaligned(fromByteOffset: 1, as: UInt16.self))
        descriptor.write(number &+ delta, at: 1)
    }

    /// Bytes that `write` needs for a descriptor.
    public static func length(of descriptor: DependencyDescriptor, settingMask: Bool) -> Int {
        guard settingMask else { return (descriptor.bitCount + 7) / 8 }
        let flags = descriptor.bitCount == 24 ? 5 : 0
        let mask = descriptor.activeDecodeTargets == nil ? descriptor.decodeTargetCount : 0
        return (descriptor.bitCount + flags + mask + 7) / 8
    }

    /// Writes `value`, which was read into `descriptor`, to `offset` of `packet` with the mask of active decode targets
    /// set to `mask`; returns its length, nil when it does not fit.
    ///
    /// A receiver that gets only some layers must be notified of that, or it waits for the frames of the others
    /// (AV1 RTP 1.0 appendix A.4).
    public static func write(
        _ value: RawSpan, _ descriptor: DependencyDescriptor, activeDecodeTargets mask: UInt32,
        to packet: UnsafeMutableRawBufferPointer, at offset: Int
    ) -> Int? {
        let length = length(of: descriptor, settingMask: true)
        guard offset + length <= packet.count, value.byteCount >= 3 else { return nil }
        for index in 3..<max(3, length) { packet[offset + index] = 0 }
        for index in 0..<3 { packet[offset + index] = value.readUInt8(index) }
        var target = BitWriter(packet: packet, position: (offset + 3) * 8)
        var source = BitReader(offset: 3, length: value.byteCount - 3)
        if descriptor.bitCount == 24 {
            target.write(0b01000, 5)
        } else {
            target.copy(1, &source, value)
            source.skip(1, value)
            target.write(1, 1)
            target.copy(descriptor.maskPosition - 26, &source, value)
        }
        target.write(mask, descriptor.decodeTargetCount)
        if descriptor.activeDecodeTargets != nil { source.skip(descriptor.decodeTargetCount, value) }
        target.copy(descriptor.bitCount - source.position, &source, value)
        return length
    }
}

/// Writes bits, most significant first, into zeroed bytes.
private struct BitWriter {
    let packet: UnsafeMutableRawBufferPointer
    var position: Int

    mutating func write(_ value: UInt32, _ count: Int) {
        for bit in (0..<count).reversed() {
            if value >> UInt32(bit) & 1 != 0 { packet[position >> 3] |= 0x80 >> UInt8(position & 7) }
            position += 1
        }
    }

    mutating func copy(_ count: Int, _ source: inout BitReader, _ bytes: RawSpan) {
        for _ in 0..<count { write(source.bit(bytes) ? 1 : 0, 1) }
    }
}
