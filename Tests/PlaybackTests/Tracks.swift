import MP4
import Primitives

@testable import Playback

/// A movie in memory whose samples have these lengths, durations and keyframes.
func playable(
    _ entry: SampleEntry, lengths: [Int], duration: UInt32, syncEvery: Int = 1, delay: TimeInterval = .zero
) throws -> PlayableTrack {
    var writer = FragmentWriter()
    var bytes = writer.begin(TrackFormat(entry: entry)).bytes
    let samples = lengths.enumerated().map { index, length in
        Sample(duration: duration, size: UInt32(length), isSync: index % syncEvery == 0)
    }
    for write in writer.append(samples, data: [UInt8](repeating: 0, count: lengths.reduce(0, +)), decodeTime: 0) {
        let end = Int(write.offset) + write.bytes.count
        if bytes.count < end { bytes += [UInt8](repeating: 0, count: end - bytes.count) }
        bytes.replaceSubrange(Int(write.offset)..<end, with: write.bytes)
    }
    var reader = MovieFileReader(fileLength: Int64(bytes.count))
    while !reader.isDone {
        let start = min(Int(reader.wanted.offset), bytes.count)
        reader.receive(Array(bytes[start..<min(start + reader.wanted.length, bytes.count)]).span.bytes)
    }
    return try PlayableTrack(try reader.movie().tracks[0], delay: delay)
}

let size = VideoSize(width: 640, height: 360)
let h264 = SampleEntry.h264(sequenceSets: [[0x67, 66, 0xc0, 30, 1]], pictureSets: [[0x68, 2, 3]], size)
