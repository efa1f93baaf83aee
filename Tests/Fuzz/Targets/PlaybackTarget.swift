import MP4
import Movies
import Playback
import Primitives
import TestSupport
import WebM

/// Files of other programs, and their samples: no sample lies outside of the file, a schedule hands out each once and in order, and no sample makes a
/// packet longer than what is sent.
@Sendable func fuzzPlayback(_ bytes: UnsafeRawBufferPointer) { fuzz(MovieFileReader.self, bytes) }

/// The same of WebM and Matroska.
@Sendable func fuzzMatroska(_ bytes: UnsafeRawBufferPointer) { fuzz(MatroskaReader.self, bytes) }

private func fuzz<Reader: MovieReading>(_: Reader.Type, _ bytes: UnsafeRawBufferPointer) {
    let file = Array(bytes)
    var reader = Reader(fileLength: Int64(file.count))
    var reads = 0
    while !reader.isDone {
        reads += 1
        precondition(reads <= file.count + 2, "reading ends")
        let start = min(max(0, Int(clamping: reader.wanted.offset)), file.count)
        reader.receive(Array(file[start..<min(file.count, start + reader.wanted.length)]).span.bytes)
    }
    guard let movie = try? reader.movie() else { return }
    var tracks: [PlayableTrack] = []
    for track in movie.tracks {
        for sample in track.samples {
            precondition(
                sample.offset >= 0 && sample.offset + Int64(sample.length) <= file.count, "a sample outside of the file"
            )
        }
        if let playable = try? PlayableTrack(track) { tracks.append(playable) }
    }
    guard !tracks.isEmpty else { return }
    play(tracks, of: bytes)
}

private func play(_ tracks: [PlayableTrack], of bytes: UnsafeRawBufferPointer) {
    var random = RandomSource(seed: 1)
    var packetizers = tracks.map { TrackPacketizer($0, ssrc: 1, payloadType: 96, random: &random) }
    var schedule = PlaybackSchedule(tracks, loops: false, at: .zero)
    var list = PacketList()
    var last = MonotonicTime.zero
    // A file of a million samples takes a while: its beginning is enough.
    for _ in 0..<2_000 {
        guard let step = schedule.next(upTo: .distantFuture, at: last) else { break }
        precondition(step.due >= last, "steps come in order")
        last = step.due
        let sample = tracks[step.track].samples[step.sample]
        let content = UnsafeRawBufferPointer(
            rebasing: bytes[Int(sample.offset)..<(Int(sample.offset) + Int(sample.length))])
        guard
            packetizers[step.track].packetize(
                content, isSync: sample.isSync, timestamp: step.timestamp, into: &list)
        else { continue }
        for index in 0..<list.count {
            precondition((13...1_200).contains(list.range(of: index).count), "a packet of a length that is sent")
        }
    }
    schedule.seek(to: .seconds(1), at: last)
    _ = schedule.position(at: last)
}

extension Seeds {
    /// Growing and finished files of the recorder's; what other programs write is in the corpus.
    @Sendable static func movies() throws -> [[UInt8]] {
        let size = VideoSize(width: 64, height: 48)
        let entries: [SampleEntry] = [
            .opus, .vp8(size), .vp9(profile: 0, level: 10, size),
            .h264(sequenceSets: [[0x67, 66, 0xc0, 30]], pictureSets: [[0x68, 1]], size),
            .av1(profile: 0, level: 1, isHighTier: false, sequenceHeader: [0x0a, 1, 0], size),
        ]
        return entries.flatMap { entry in
            var writer = FragmentWriter()
            var bytes = writer.begin(TrackFormat(entry: entry)).bytes
            let samples = [Sample(duration: 960, size: 6, isSync: true), Sample(duration: 960, size: 6, isSync: false)]
            let data: [UInt8] = [0, 0, 0, 2, 0x65, 1, 0, 0, 0, 2, 0x41, 1]
            let writes = writer.append(samples, data: data, decodeTime: 0)
            var end = bytes.count
            for write in writes { end = max(end, Int(write.offset) + write.bytes.count) }
            bytes += [UInt8](repeating: 0, count: end - bytes.count)
            for write in writes {
                bytes.replaceSubrange(Int(write.offset)..<(Int(write.offset) + write.bytes.count), with: write.bytes)
            }
            var scan = MovieScan(fileLength: Int64(bytes.count))
            while scan.outcome == nil {
                let start = min(Int(scan.wanted.offset), bytes.count)
                scan.receive(Array(bytes[start..<min(bytes.count, start + scan.wanted.length)]).span.bytes)
            }
            guard case .fragments(let table) = scan.outcome, let finish = table.finish() else { return [bytes] }
            var finished = bytes + finish.table.bytes
            let header = Int(finish.header.offset)
            finished.replaceSubrange(header..<(header + finish.header.bytes.count), with: finish.header.bytes)
            return [bytes, finished]
        }
    }

    /// A finished file and a live one of every codec, with each way in which blocks lie in clusters, and one of long audio.
    @Sendable static func matroska() throws -> [[UInt8]] {
        typealias Bytes = MatroskaBytes
        let avc: [UInt8] = [1, 66, 0xc0, 30, 0xff, 0xe1, 0, 4, 0x67, 66, 0xc0, 30, 1, 0, 2, 0x68, 1]
        let frame: [UInt8] = [0, 0, 0, 2, 0x65, 1]
        let videos = [
            Bytes.video("V_VP8"), Bytes.video("V_VP9"),
            Bytes.video("V_AV1", configuration: [0x81, 0, 0x0c, 0, 0x0a, 1, 0]),
            Bytes.video("V_MPEG4/ISO/AVC", configuration: avc),
        ]
        let audio = Bytes.audio(more: Bytes.number(0x56aa, 6_500_000))
        // Three frames with their lengths, more than fit into a packet.
        let music: [UInt8] = [0xff, 0x83, 252, 43, 252, 43] + [UInt8](repeating: 7, count: 1_272)
        let long =
            Bytes.header()
            + Bytes.segment(Bytes.info(), Bytes.tracks(audio), Bytes.cluster(at: 0, Bytes.block(2, at: 0, music)))
        return [long]
            + videos.flatMap { video -> [[UInt8]] in
                [true, false].map { isKnown -> [UInt8] in
                    let first = Bytes.cluster(
                        at: 0, isKnown: isKnown, Bytes.block(1, at: 0, frame), Bytes.block(2, at: 0, [1]))
                    let second = Bytes.cluster(
                        at: 40, isKnown: isKnown, Bytes.group(1, at: 0, duration: 40, refersTo: -40, frame),
                        Bytes.block(2, at: -20, [1]))
                    return Bytes.header()
                        + Bytes.segment(isKnown: isKnown, Bytes.info(), Bytes.tracks(video, audio), first, second)
                }
            }
    }
}
