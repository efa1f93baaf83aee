import MediaControl
import Movies
import PayloadFormats
import Primitives
import RTP
import TestSupport
import Testing

@testable import MP4
@testable import Playback
@testable import Recording

/// Packets go the way back through the recorder's frame assembly.
@Suite("Packets of samples")
struct TrackPacketizerTests {
    private static func bytes(_ count: Int, from first: UInt8 = 1) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ Int(first)) }
    }

    private static func unit(_ type: UInt8, _ count: Int) -> [UInt8] { [type | 0x60] + bytes(count - 1) }

    private static func behindLengths(_ units: [[UInt8]]) -> [UInt8] {
        units.flatMap { unit in
            stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: unit.count >> $0) } + unit
        }
    }

    private static func packets(
        _ packetizer: inout TrackPacketizer, _ sample: [UInt8], isSync: Bool, _ timestamp: UInt32
    ) -> [[UInt8]]? {
        var list = PacketList()
        let isWhole = sample.withUnsafeBytes {
            packetizer.packetize($0, isSync: isSync, timestamp: timestamp, into: &list)
        }
        return isWhole ? (0..<list.count).map { Array(list.bytes[list.range(of: $0)]) } : nil
    }

    private static func packetizer(_ entry: SampleEntry) throws -> TrackPacketizer {
        var random = RandomSource(seed: 7)
        return TrackPacketizer(
            try playable(entry, lengths: [10], duration: 3_000), ssrc: 0x1234, payloadType: 96, random: &random)
    }

    /// Samples through packets and back; every packet is checked on the way.
    private static func roundTrip(
        _ entry: SampleEntry, _ codec: Codec, _ samples: [[UInt8]], keyframes: Set<Int>
    ) throws -> [EncodedFrame] {
        var packetizer = try Self.packetizer(entry)
        var assembler = try #require(FrameAssembler(codec))
        var frames: [EncodedFrame] = []
        var last: UInt16?
        for (index, sample) in samples.enumerated() {
            let made = packets(&packetizer, sample, isSync: keyframes.contains(index), UInt32(index) * 3_000)
            let list = try #require(made)
            for (number, packet) in list.enumerated() {
                let parsed = RTPHeader(packet.span.bytes)
                let header = try #require(parsed)
                #expect(packet.count <= 1_160 && header.ssrc == 0x1234 && header.payloadType == 96)
                #expect(header.marker == (number == list.count - 1))
                if let last { #expect(header.sequenceNumber == last &+ 1) }
                last = header.sequenceNumber
                frames += assembler.append(
                    packet.span.bytes.extracting(12..<packet.count), marker: header.marker, timestamp: header.timestamp,
                    arrival: MonotonicTime(milliseconds: Int64(index) * 33))
            }
        }
        return frames
    }

    @Test("H.264: NAL for NAL the same, with the parameter sets before each IDR picture")
    func h264Frames() throws {
        let samples = [
            Self.behindLengths([Self.unit(6, 20), Self.unit(5, 5_000)]),
            Self.behindLengths([Self.unit(1, 1_148), Self.unit(1, 1_149), Self.unit(1, 3)]),
            Self.behindLengths([Self.unit(5, 100_000)]),
        ]
        let frames = try Self.roundTrip(h264, .h264, samples, keyframes: [0, 2])
        let isSame = frames.map(\.bytes) == samples
        #expect(isSame)
        guard isSame else { return }
        for index in [0, 2] {
            guard case .h264(let sequenceSets, let pictureSets, _)? = frames[index].entry else {
                Issue.record("frame \(index) has no parameter sets")
                continue
            }
            #expect(sequenceSets.count == 1 && pictureSets == [pictureSet])
        }
    }

    @Test("An IDR picture begins with a STAP-A of both sets; delimiters, filler and sets in the sample are left out")
    func parameterSets() throws {
        var packetizer = try Self.packetizer(h264)
        let set: [UInt8] = [0x67, 66, 0xc0, 31, 9], picture: [UInt8] = [0x68, 7]
        let sample = Self.behindLengths([[9, 0xf0], set, picture, [12, 0xff], Self.unit(5, 30)])
        let made = Self.packets(&packetizer, sample, isSync: true, 0)
        let list = try #require(made)
        #expect(list.count == 2)
        #expect(Array(list[0][12...]) == [0x60 | 24, 0, 5] + set + [0, 2] + picture)
        #expect(Array(list[1][12...]) == Self.unit(5, 30))
        // They are in force from then on.
        let following = Self.packets(&packetizer, Self.behindLengths([Self.unit(5, 9)]), isSync: true, 3_000)
        let next = try #require(following)
        #expect(Array(next[0][12...]) == Array(list[0][12...]))
    }

    @Test("Lengths that do not add up give no packets and use no sequence number")
    func brokenLengths() throws {
        var packetizer = try Self.packetizer(h264)
        let first = Self.packets(&packetizer, Self.behindLengths([Self.unit(5, 9)]), isSync: true, 0)
        let before = try #require(first)
        for broken in [[0, 0, 0, 9, 1], [0, 0, 0, 0], [0, 0], [0xff, 0xff, 0xff, 0xff, 1], []] as [[UInt8]] {
            let none = Self.packets(&packetizer, broken, isSync: false, 0)
            #expect(none == nil)
        }
        let second = Self.packets(&packetizer, Self.behindLengths([Self.unit(1, 9)]), isSync: false, 0)
        let after = try #require(second)
        #expect(Self.sequence(after[0]) == Self.sequence(before[before.count - 1]) &+ 1)
    }

    @Test("A sample of more NAL units or OBUs than encoders make gives no packets", arguments: [Codec.h264, .av1])
    func tooManyUnits(codec: Codec) throws {
        let sequenceHeader: [UInt8] = [0x0a, 0x0b, 0x00, 0x00, 0x00, 0x24, 0xcf, 0x7f, 0x3c, 0xbf, 0xff, 0x30, 0x08]
        let av1 = SampleEntry.av1(profile: 0, level: 1, isHighTier: false, sequenceHeader: sequenceHeader, size)
        var packetizer = try Self.packetizer(codec == .av1 ? av1 : h264)
        // A slice of one byte behind its length; a frame's header without content.
        let unit: [UInt8] = codec == .av1 ? [0x1a, 0] : [0, 0, 0, 1, 0x61]
        let all = [UInt8]((0..<10_000).flatMap { _ in unit })
        let most = Self.packets(&packetizer, all, isSync: false, 0)
        let more = Self.packets(&packetizer, all + unit, isSync: false, 3_000)
        #expect(most != nil && more == nil)
    }

    private static func sequence(_ packet: [UInt8]) -> UInt16 { UInt16(packet[2]) << 8 | UInt16(packet[3]) }

    @Test("VP8 and VP9 frames come back as they were", arguments: [Codec.vp8, .vp9])
    func vpFrames(codec: Codec) throws {
        // Frame headers of 640x360: VP8 (RFC 6386 section 9.1) and VP9 profile 0 with its sync code.
        let key: [UInt8] =
            codec == .vp8
            ? VP8Frame.keyframeHeader(width: 640, height: 360)
            : [0x82, 0x49, 0x83, 0x42, 0x00, 0x27, 0xf0, 0x16, 0x70]
        let delta: [UInt8] = codec == .vp8 ? VP8Frame.deltaHeader : [0x86, 0]
        let samples = [key + Self.bytes(9_000), delta + Self.bytes(1), delta + Self.bytes(1_141)]
        let entry: SampleEntry = codec == .vp8 ? .vp8(size) : .vp9(profile: 0, level: 10, size)
        let frames = try Self.roundTrip(entry, codec, samples, keyframes: [0])
        let isSame = frames.map(\.bytes) == samples
        #expect(isSame)
        #expect(frames.map(\.isKeyframe) == [true, false, false])
    }

    @Test("AV1 temporal units come back without delimiters and padding, with a sequence header at each keyframe")
    func av1Units() throws {
        // A sequence header of libaom for 640x360 (AV1 section 5.5), whose content is opaque here.
        let sequenceHeader: [UInt8] = [0x0a, 0x0b, 0x00, 0x00, 0x00, 0x24, 0xcf, 0x7f, 0x3c, 0xbf, 0xff, 0x30, 0x08]
        func obu(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
            [type << 3 | 2] + LEB128.bytes(UInt32(content.count)) + content
        }
        let frame = obu(6, Self.bytes(5_000)), small = obu(6, Self.bytes(40))
        let entry = SampleEntry.av1(
            profile: 0, level: 1, isHighTier: false, sequenceHeader: sequenceHeader, size)
        var packetizer = try Self.packetizer(entry)
        var unit = AV1TemporalUnit()
        for (sample, isSync, expected) in [
            ([0x12, 0x00] + sequenceHeader + frame, true, sequenceHeader + frame),
            ([0x12, 0x00] + small + obu(15, [0, 0]), false, small), (frame, true, sequenceHeader + frame),
        ] {
            let made = Self.packets(&packetizer, sample, isSync: isSync, 0)
            let list = try #require(made)
            #expect((list[0][12] & 0x08 != 0) == isSync, "N at the first packet of a sequence")
            for packet in list {
                let isTaken = unit.append(packet.span.bytes.extracting(12..<packet.count))
                #expect(isTaken)
            }
            let isSame = unit.bytes == expected
            #expect(isSame)
            unit.beginNext()
        }
    }

    @Test("Opus packets are sent as they are, one a packet")
    func opus() throws {
        var packetizer = try Self.packetizer(.opus)
        let made = Self.packets(&packetizer, [0xfc, 1, 2], isSync: true, 960)
        let list = try #require(made)
        #expect(list.count == 1 && Array(list[0][12...]) == [0xfc, 1, 2] && list[0][1] == 96)
    }

    /// 60 ms of music as a browser records it, and the other ways to put frames into a packet (RFC 6716 section 3.2).
    @Test("An Opus packet that is too long for a payload is sent frame by frame, each with its own time")
    func longOpus() throws {
        let (one, two, three) = (Self.bytes(424), Self.bytes(251, from: 2), Self.bytes(700, from: 3))
        let lengths: [UInt8] = [252, 43, 251]
        let equal = [Self.bytes(600), Self.bytes(600, from: 9)]
        let padding: [UInt8] = [255, 255, 4]
        for (sample, frames) in [
            ([0xff, 0x83] + lengths + one + two + three, [one, two, three]),
            (
                [0xff, 0xc3] + padding + lengths + one + two + three + [UInt8](repeating: 0, count: 512),
                [one, two, three]
            ),
            ([0xff, 0x02] + equal[0] + equal[1], equal), ([0xfd] + equal[0] + equal[1], equal),
            ([0xfe, 252, 87] + equal[0] + equal[1], equal),
            ([0xff, 0x82, 0] + Self.bytes(1_147), [[], Self.bytes(1_147)]),
        ] {
            var packetizer = try Self.packetizer(.opus)
            let short = Self.packets(&packetizer, [0xfc], isSync: true, 0)
            let made = Self.packets(&packetizer, sample, isSync: true, 960)
            let (before, list) = (try #require(short), try #require(made))
            let isSame = list.map { Array($0[12...]) } == frames.map { [0xfc] + $0 }
            #expect(isSame, "each frame behind the same first byte, with code 0")
            let all = (before + list).compactMap { RTPHeader($0.span.bytes) }
            #expect(all.count == 1 + frames.count)
            for (last, next) in zip(all, all.dropFirst()) {
                #expect(next.sequenceNumber == last.sequenceNumber &+ 1 && next.timestamp == last.timestamp &+ 960)
            }
            #expect(all.allSatisfy { !$0.marker })
        }
    }

    @Test("An Opus packet that is too long and has one frame, or lengths that do not add up, gives no packets")
    func brokenOpus() throws {
        var packetizer = try Self.packetizer(.opus)
        let body = Self.bytes(1_200)
        for broken in [
            [0xfc] + body,  // one frame
            [0xfd] + body + [0],  // two equal ones of an odd number of bytes
            [0xfe, 255, 255] + body,  // the first longer than the packet
            [0xff, 0x83, 252] + [UInt8](repeating: 255, count: 1_200),  // the third begins behind the end
            [0xff, 0x43] + [UInt8](repeating: 255, count: 1_200),  // padding without end
            [0xff, 0x42, 255, 255, 255, 255, 255, 9] + body,  // more padding than there are bytes
            [0xff, 0x80] + body, [0xff, 0xbf] + body,  // none, and more than 120 ms
            [],
        ] as [[UInt8]] {
            let none = Self.packets(&packetizer, broken, isSync: true, 0)
            #expect(none == nil)
        }
    }

    @Test("Sender reports come once a second and name time and totals; the last one says goodbye")
    func reports() throws {
        var packetizer = try Self.packetizer(.opus)
        _ = Self.packets(&packetizer, [0xfc, 1, 2], isSync: true, 960)
        let due = MonotonicTime(milliseconds: 5_000)
        let reports = [(0, 960), (999, 0), (1_000, 0)].map { later, timestamp in
            packetizer.report(due: due + .milliseconds(Int64(later)), timestamp: UInt32(timestamp))
        }
        #expect(reports.map { $0 != nil } == [true, false, true])
        let first = try #require(reports[0])
        guard var compound = RTCPCompound(first.span.bytes),
            case .senderReport(let report)? = compound.next(in: first.span.bytes)
        else {
            Issue.record("a compound begins with the report")
            return
        }
        #expect(report.ssrc == 0x1234 && report.ntpTimestamp == NTPTime.at(due) && report.packetCount == 1)
        let goodbye = packetizer.report(due: due, timestamp: 0, isLast: true)
        let last = try #require(goodbye)
        guard var parts = RTCPCompound(last.span.bytes) else {
            Issue.record("no compound")
            return
        }
        var hasGoodbye = false
        while let part = parts.next(in: last.span.bytes) { if case .goodbye = part { hasGoodbye = true } }
        #expect(hasGoodbye)
    }

    @Test("What cannot be sent as it is is refused")
    func refusals() throws {
        #expect(throws: PlaybackRefusal.noKeyframe) {
            _ = try PlayableTrack(
                try track(.vp8(size), times: [0, 3_000], syncs: [false, false]))
        }
        #expect(throws: PlaybackRefusal.reorderedFrames) {
            _ = try PlayableTrack(try track(.vp8(size), times: [0, 6_000, 3_000], syncs: [true, false, false]))
        }
    }

    private func track(_ format: MovieFormat, times: [Int64], syncs: [Bool]) throws -> MovieTrack {
        MovieTrack(
            id: 1, isVideo: true, format: format, timescale: 90_000,
            samples: zip(times, syncs).map { MovieSample(offset: 0, time: $0, length: 1, duration: 3_000, isSync: $1) },
            shift: 0)
    }
}
