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

    /// Writes the numbers, shifted by the deltas, into `payload`.
    @inline(__always)
    func write(
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
