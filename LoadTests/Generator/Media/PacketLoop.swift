/// A loop cut into RTP payloads, in one piece of memory that every publisher of the same media shares.
///
/// What differs between publishers is written when a packet is sent: VP8's picture numbers in the descriptor, and the trace
/// after the last packet of each frame. The receiving side knows everything else, and compares it byte by byte.
final class PacketLoop: Sendable {
    /// What the payloads are.
    enum Kind: Sendable { case vp8, h264, opus }

    /// One payload of the loop.
    struct Packet: Sendable {
        /// Where its bytes are in the loop's memory.
        var offset: Int
        /// Bytes of payload, the trace's included.
        var length: Int
        /// Bytes at the start that a publisher or a server may rewrite.
        var descriptorLength: Int
        var endsFrame: Bool

        /// The bytes that arrive unchanged from the loop: without descriptor and trace.
        var fixed: Range<Int> { descriptorLength..<(length - (endsFrame ? Trace.length : 0)) }
    }

    let kind: Kind
    /// All payloads, one after the other.
    let memory: [UInt8]
    let packets: [Packet]
    /// The packets of each frame.
    let frames: [Range<Int>]
    /// RTP clock ticks and nanoseconds from one frame to the next.
    let ticksPerFrame: UInt32
    let nanosecondsPerFrame: Int64

    /// The most bytes of one RTP payload: 1,200 less header and extensions, as in libwebrtc.
    static let maximumPayload = 1_150

    /// Cuts VP8 frames into payloads of nearly equal size, as libwebrtc does (RFC 7741 section 4.2).
    ///
    /// The trace follows the last partition, whose bool decoder never reads so far: any VP8 decoder shows the frame.
    ///
    /// ```text
    ///  0 1 2 3 4 5 6 7
    /// |X|R|N|S|R| PID |   X: extension follows, S: start of partition
    /// |I|L|T|K| RSV   |   I: picture id, L: TL0PICIDX, T: temporal layer, K: key index
    /// |M| PictureID   |   15 bits
    /// |   PictureID   |
    /// |   TL0PICIDX   |
    /// |TID|Y| KEYIDX  |   always 0: one temporal layer
    /// ```
    convenience init(vp8 loop: EncodedLoop) {
        let descriptor = 6
        let room = Self.maximumPayload - descriptor
        var builder = Builder()
        for frame in loop.frames {
            let bytes = frame.bytes + [UInt8](repeating: 0, count: Trace.length)
            let count = (bytes.count + room - 1) / room
            // Cut so that the trace is never split.
            var cuts = (0...count).map { bytes.count * $0 / count }
            if count > 1 { cuts[count - 1] = min(cuts[count - 1], frame.bytes.count) }
            for index in 0..<count {
                let head: [UInt8] = [0x80 | (index == 0 ? 0x10 : 0), 0xe0, 0x80, 0, 0, 0]
                builder.add(
                    head + bytes[cuts[index]..<cuts[index + 1]], descriptor: descriptor, endsFrame: index == count - 1)
            }
        }
        self.init(.vp8, builder, loop)
    }

    /// Gives every Opus frame its own packet, with the trace as padding that decoders skip (RFC 6716 section
    /// 3.2.5: code 3, one frame, padding).
    convenience init(opus loop: EncodedLoop) {
        var builder = Builder()
        for frame in loop.frames {
            let padded = [frame.bytes[0] | 3, 0x41, UInt8(Trace.length)] + frame.bytes[1...]
            builder.add(padded + [UInt8](repeating: 0, count: Trace.length), descriptor: 0, endsFrame: true)
        }
        self.init(.opus, builder, loop)
    }

    init(_ kind: Kind, _ builder: Builder, _ loop: EncodedLoop) {
        self.kind = kind
        (memory, packets, frames) = (builder.memory, builder.packets, builder.frames)
        (ticksPerFrame, nanosecondsPerFrame) = (loop.ticksPerFrame, loop.nanosecondsPerFrame)
    }

    struct Builder {
        var memory: [UInt8] = []
        var packets: [Packet] = []
        var frames: [Range<Int>] = []
        private var frameStart = 0

        mutating func add(_ payload: [UInt8], descriptor: Int, endsFrame: Bool) {
            packets.append(
                Packet(
                    offset: memory.count, length: payload.count, descriptorLength: descriptor, endsFrame: endsFrame))
            memory += payload
            guard endsFrame else { return }
            frames.append(frameStart..<packets.count)
            frameStart = packets.count
        }
    }
}
