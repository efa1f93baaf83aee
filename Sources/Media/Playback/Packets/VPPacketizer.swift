import Primitives

/// Converts VP8 frames to the payload format of RFC 7741, with picture ids of 15 bits.
struct VP8Packetizer: Sendable {
    private var pictureID: UInt16
    private static let descriptorLength = 4

    init(pictureID: UInt16) { self.pictureID = pictureID & 0x7fff }

    mutating func append(_ sample: UnsafeRawBufferPointer, _ header: inout Header, _ list: inout PacketList) -> Bool {
        for (part, range) in FrameParts(length: sample.count, overhead: Self.descriptorLength).enumerated() {
            header.begin(&list)
            list.append(part == 0 ? 0x90 : 0x80)  // X, and S at the start
            list.append(0x80)  // I
            list.append(0x80 | UInt8(truncatingIfNeeded: pictureID >> 8))
            list.append(UInt8(truncatingIfNeeded: pictureID))
            list.append(range, of: sample)
            list.endPacket()
        }
        pictureID = (pictureID + 1) & 0x7fff
        return !sample.isEmpty
    }
}

/// Converts VP9 frames to the payload format of RFC 9628 in non-flexible mode, as one layer, with picture ids of 15 bits.
struct VP9Packetizer: Sendable {
    private var pictureID: UInt16
    private static let descriptorLength = 3

    init(pictureID: UInt16) { self.pictureID = pictureID & 0x7fff }

    mutating func append(
        _ sample: UnsafeRawBufferPointer, isSync: Bool, _ header: inout Header, _ list: inout PacketList
    ) -> Bool {
        let parts = FrameParts(length: sample.count, overhead: Self.descriptorLength)
        for (part, range) in parts.enumerated() {
            header.begin(&list)
            // I, P, B and E
            list.append(
                0x80 | (isSync ? 0 : 0x40) | (part == 0 ? 0x08 : 0) | (part == parts.count - 1 ? 0x04 : 0))
            list.append(0x80 | UInt8(truncatingIfNeeded: pictureID >> 8))
            list.append(UInt8(truncatingIfNeeded: pictureID))
            list.append(range, of: sample)
            list.endPacket()
        }
        pictureID = (pictureID + 1) & 0x7fff
        return !sample.isEmpty
    }
}

/// A frame in as few parts as fit into packets, of equal size.
struct FrameParts: Sequence, IteratorProtocol {
    let count: Int
    private let length: Int
    private var part = 0

    init(length: Int, overhead: Int) {
        let room = PacketList.maximumPayload - overhead
        self.length = length
        count = (length + room - 1) / room
    }

    mutating func next() -> Range<Int>? {
        guard part < count else { return nil }
        defer { part += 1 }
        return (length * part / count)..<(length * (part + 1) / count)
    }
}
