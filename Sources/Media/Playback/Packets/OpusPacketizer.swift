import PayloadFormats
import Primitives

/// Converts Opus packets to the payload format of RFC 7587: each is one payload. Packets that are too long for that, such as 60 ms of high-quality music
/// recorded by a browser, are sent frame by frame: nothing is encoded anew, and each frame has its own time.
///
/// ```text
/// code 0:  TOC  frame                                      code 2:  TOC  length  frame  frame
/// code 1:  TOC  frame  frame (of equal length)             code 3:  TOC  |v|p| count |  padding length  lengths, if v  frame …  padding
/// ```
/// (RFC 6716 section 3.2)
enum OpusPacketizer {
    static func append(_ sample: UnsafeRawBufferPointer, _ header: inout Header, _ list: inout PacketList) -> Bool {
        guard sample.count > PacketList.maximumPayload else {
            guard !sample.isEmpty else { return false }
            header.begin(&list)
            list.append(0..<sample.count, of: sample)
            list.endPacket()
            return true
        }
        // A frame with a byte before it.
        guard let opus = Opus(sample.bytes), let frames = frames(of: sample.bytes, count: opus.frameCount),
            frames.allSatisfy({ $0.count < PacketList.maximumPayload })
        else { return false }
        for frame in frames {
            header.begin(&list)
            list.append(sample[0] & ~3)
            list.append(frame, of: sample)
            list.endPacket()
            header.advance(by: UInt32(opus.samplesPerFrame))
        }
        return true
    }

    /// Where the frames are; nil if their lengths do not add up.
    private static func frames(of bytes: RawSpan, count: Int) -> [Range<Int>]? {
        var position = 1, end = bytes.byteCount, lengths: [Int] = []
        var saysLengths = false
        switch bytes.readUInt8(0) & 3 {
        case 2: saysLengths = true
        case 3:
            let flags = bytes.readUInt8(1)
            position = 2
            saysLengths = flags & 0x80 != 0
            if flags & 0x40 != 0 {
                guard let padding = padding(of: bytes, at: &position), padding <= end - position else { return nil }
                end -= padding
            }
        default: break
        }
        if saysLengths {
            for _ in 1..<count {
                guard let length = length(in: bytes, at: &position) else { return nil }
                lengths.append(length)
            }
            lengths.append(end - position - lengths.reduce(0, +))
        } else {
            guard (end - position) % count == 0 else { return nil }
            lengths = Array(repeating: (end - position) / count, count: count)
        }
        guard lengths.allSatisfy({ $0 >= 0 }) else { return nil }
        return lengths.map { length in
            defer { position += length }
            return position..<(position + length)
        }
    }

    /// 255 stands for 254 bytes and another number that follows.
    private static func padding(of bytes: RawSpan, at position: inout Int) -> Int? {
        var sum = 0
        while position < bytes.byteCount {
            let byte = Int(bytes.readUInt8(position))
            position += 1
            guard byte == 255 else { return sum + byte }
            sum += 254
        }
        return nil
    }

    /// Up to 251 in one byte, up to 1,275 in two.
    private static func length(in bytes: RawSpan, at position: inout Int) -> Int? {
        guard position < bytes.byteCount else { return nil }
        let first = Int(bytes.readUInt8(position))
        position += 1
        guard first >= 252 else { return first }
        guard position < bytes.byteCount else { return nil }
        defer { position += 1 }
        return first + 4 * Int(bytes.readUInt8(position))
    }
}
