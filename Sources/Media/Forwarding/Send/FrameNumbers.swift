import MediaControl
import PayloadFormats
import Primitives

// Frame numbers of the output: read from the stored packet and shifted by the deltas of its range. The dependency descriptor's number is in a header
// extension and may occur with any codec.

extension FrameNumbers {
    /// Finds the numbers in a payload of `codec`; all are absent for other codecs and for payloads encrypted end to end.
    @inline(__always)
    init(codec: Codec, payload: UnsafeRawBufferPointer) {
        switch codec {
        case .vp8: self.init(vp8: payload.bytes)
        case .vp9: self.init(vp9: payload.bytes)
        case .av1, .opus, .red, .h264, .otherAudio: self.init()
        }
    }

    /// Bits of a picture id that counts on for as long as there are any.
    static var allPictureBits: UInt16 { 0x7fff }

    /// Whether a picture id of 7 bits needs 15 when it is shifted by `delta`: it then takes one byte more.
    ///
    /// Senders count from the one form on into the other (Pion's VP8 up to 127 in one byte, then in two), and libwebrtc's
    /// receivers count in 15 bits whatever the form is. Cut to 7 bits, a shifted number would continue nothing: they would
    /// show no frame until the next keyframe.
    @inline(__always)
    static func widens(_ picture: UInt16, of mask: UInt16, by delta: UInt16) -> Bool {
        mask == 0x7f && (picture &+ delta) & allPictureBits > mask
    }

    /// Copies `payload` to `output` with the numbers shifted by the deltas; returns the bytes written, which are one more
    /// than those of `payload` where the picture id widens.
    @inline(__always)
    func copy(
        _ payload: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer, deltas: NumberDeltas, keyIndex: UInt8
    ) -> Int {
        guard let source = payload.baseAddress else { return 0 }
        guard pictureOffset >= 0, Self.widens(picture, of: pictureMask, by: deltas.picture) else {
            output.copyMemory(from: source, byteCount: payload.count)
            write(into: output, picture: deltas.picture, temporalZero: deltas.temporalZero, keyIndex: keyIndex)
            return payload.count
        }
        output.copyMemory(from: source, byteCount: pictureOffset)
        (output + pictureOffset + 1).copyMemory(
            from: source + pictureOffset, byteCount: payload.count - pictureOffset)
        var wide = self
        wide.pictureMask = Self.allPictureBits
        if wide.temporalZeroOffset >= 0 { wide.temporalZeroOffset += 1 }
        if wide.keyIndexOffset >= 0 { wide.keyIndexOffset += 1 }
        wide.write(into: output, picture: deltas.picture, temporalZero: deltas.temporalZero, keyIndex: keyIndex)
        return payload.count + 1
    }

    /// Writes the numbers, shifted by the deltas, into `payload`.
    @inline(__always)
    private func write(
        into payload: UnsafeMutableRawPointer, picture delta: UInt16, temporalZero tl0: UInt8, keyIndex key: UInt8
    ) {
        if pictureOffset >= 0 {
            let value = (picture &+ delta) & pictureMask
            if pictureMask == 0x7f {
                payload.storeBytes(of: UInt8(truncatingIfNeeded: value), toByteOffset: pictureOffset, as: UInt8.self)
            } else {
                payload.storeBytes(of: (value | 0x8000).bigEndian, toByteOffset: pictureOffset, as: UInt16.self)
            }
        }
        if temporalZeroOffset >= 0 {
            payload.storeBytes(of: temporalZero &+ tl0, toByteOffset: temporalZeroOffset, as: UInt8.self)
        }
        if keyIndexOffset >= 0, key != 0 {
            let byte = payload.load(fromByteOffset: keyIndexOffset, as: UInt8.self)
            payload.storeBytes(of: byte & 0xe0 | (keyIndex &+ key) & 0x1f, toByteOffset: keyIndexOffset, as: UInt8.self)
        }
    }

    /// The frame number of a dependency descriptor; nil for one without its mandatory fields.
    @inline(__always)
    static func descriptorNumber(_ record: UnsafePointer<PacketRecord>, in packet: UnsafeRawBufferPointer) -> UInt16? {
        guard let place = record.pointee.extensions[.dependencyDescriptor], place.length >= 3 else { return nil }
        return UInt16(packet[Int(place.offset) + 1]) << 8 | UInt16(packet[Int(place.offset) + 2])
    }
}
