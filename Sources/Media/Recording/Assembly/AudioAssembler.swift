import MediaControl
import PayloadFormats
import Primitives

/// Turns Opus packets (RFC 7587) into a stream without holes: redundant packets replace lost ones, and silence fills the rest, whether it was lost or never
/// sent (DTX). A player would play everything after a hole too early.
struct AudioAssembler {
    /// One packet for the file.
    struct Packet {
        var bytes: [UInt8]
        /// Place on the timeline, in samples at 48 kHz.
        var time: Int64
        /// Samples at 48 kHz, 120 to 5,760.
        var duration: UInt32
        /// Nothing arrived for this time.
        var isSilence = false
    }

    /// More silence than this is not written: a new file begins.
    static let longestSilence: Int64 = 600 * 48_000

    /// Where the next packet is due; nil before the first.
    private(set) var due: Int64?

    /// Processes the payload of a packet whose timestamp is at `time`; returns what goes into the file, in order. nil for a payload that is no Opus packet.
    mutating func append(_ payload: RawSpan, codec: Codec, time: Int64) -> [Packet]? {
        var blocks: [(bytes: [UInt8], time: Int64)] = []
        if codec == .red {
            guard var walk = RED.Blocks(payload) else { return nil }
            while let block = walk.next(in: payload) {
                guard block.length > 0 else { continue }
                let bytes = payload.extracting(block.offset..<(block.offset + block.length))
                blocks.append((bytes.withUnsafeBytes { Array($0) }, time - Int64(block.timestampOffset)))
            }
        } else {
            blocks.append((payload.withUnsafeBytes { Array($0) }, time))
        }
        guard let primary = blocks.last, Opus(primary.bytes.span.bytes) != nil else { return codec == .red ? [] : nil }
        var packets: [Packet] = []
        for block in blocks {
            guard let opus = Opus(block.bytes.span.bytes) else { continue }
            // A redundant packet is of use only if its original did not arrive, and nothing precedes the recording.
            guard block.time >= due ?? time else { continue }
            if let due { fill(from: due, to: block.time, like: block.bytes[0], &packets) }
            packets.append(Packet(bytes: block.bytes, time: block.time, duration: UInt32(opus.sampleCount)))
            due = block.time + Int64(opus.sampleCount)
        }
        return packets
    }

    /// How long nothing was due before `time`.
    func silence(before time: Int64) -> Int64 { due.map { max(0, time - $0) } ?? 0 }

    /// A new file begins: nothing before the next packet is missing.
    mutating func restart() { due = nil }

    /// Silence in packets of the same configuration, without data: decoders conceal or generate comfort noise (RFC 6716 section 3.2.1).
    private func fill(from start: Int64, to end: Int64, like toc: UInt8, _ packets: inout [Packet]) {
        let one = [toc & 0xfc]
        guard let opus = Opus(one.span.bytes) else { return }
        let step = Int64(opus.samplesPerFrame)
        let perPacket = min(6, 5_760 / step)
        var time = start
        while end - time >= step {
            let frames = end - time >= perPacket * step ? perPacket : 1
            // Code 3: a count of frames, all of the same length 0.
            let bytes = frames > 1 ? [toc | 3, UInt8(frames)] : one
            packets.append(Packet(bytes: bytes, time: time, duration: UInt32(frames * step), isSilence: true))
            time += frames * step
        }
        // Less than a frame is left: the last one is longer by that.
        if time < end, let last = packets.indices.last { packets[last].duration += UInt32(end - time) }
    }
}
