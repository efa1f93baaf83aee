import MP4
import Movies
import Primitives

@testable import Playback

/// A movie in memory whose samples have these lengths, durations and keyframes.
func playable(
    _ entry: SampleEntry, lengths: [Int], duration: UInt32, syncEvery: Int = 1, delay: TimeSpan = .zero
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
/// Parameter sets of x264, constrained baseline.
let sequenceSet: [UInt8] = [
    0x67, 0x42, 0xc0, 0x0a, 0xda, 0x25, 0xb0, 0x11, 0x00, 0x00, 0x03, 0x00, 0x01, 0x00, 0x00, 0x03, 0x00, 0x14, 0x0f,
    0x12, 0x26, 0xa0,
]
let pictureSet: [UInt8] = [0x68, 0xce, 0x01, 0x37, 0x20]
let h264 = SampleEntry.h264(sequenceSets: [sequenceSet], pictureSets: [pictureSet], size)
